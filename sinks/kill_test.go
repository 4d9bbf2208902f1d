package sinks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/sinks/alerts"
)

// killable is a server in a process of its own.
type killable struct {
	t    *testing.T
	dir  string
	port string
	cmd  *exec.Cmd
}

func (k *killable) start() (url string) {
	k.t.Helper()
	k.cmd = exec.Command(os.Args[0])
	k.cmd.Env = append(os.Environ(), serverEnv+"="+k.dir, serverPortEnv+"="+k.port)
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url = strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(url, "nats://") {
		k.t.Fatalf("the server says %q, %v", line, err)
	}
	k.port = url[strings.LastIndex(url, ":")+1:]
	return url
}

// kill ends the server with SIGKILL.
func (k *killable) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

// connect returns a connection that outlives the server.
func connect(t *testing.T, url string) *logOut {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &logOut{t: t, nc: nc, js: js}
}

// A broker that is killed under load, in the middle of batches, has every emission once
// when it is back, the bucket has the newest of every subject byte for byte, and
// followers have missed nothing.
func TestKilledBrokerLosesNothing(t *testing.T) {
	const kills, perKill = 4, 10
	k := &killable{t: t, dir: t.TempDir()}
	l := connect(t, k.start())
	var restarts sync.WaitGroup
	defer func() {
		restarts.Wait()
		k.kill()
	}()
	w := l.writer(run("a"))
	random := rand.New(rand.NewPCG(11, 12))
	file := filepath.Join(t.TempDir(), "lines")
	r := NewRunner(FollowConfig{
		Name: "file", JS: l.js, Reader: ReaderConfig{Names: DefaultNames(), Log: "log"},
		Open: func(context.Context) (Follower, Cursor, error) { return OpenLinesFile(file, "log") },
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	var want []Emission
	for p := range uint64(kills * perKill) {
		want = append(want, emissionAt(p+1, 1+random.IntN(1500)*int(p%5)/4))
	}
	newest := map[string]uint64{}
	for i, e := range want {
		for _, record := range e.Estimates {
			newest[record.Community] = e.Position
		}
		if i%perKill == perKill/2 {
			after := time.Duration(random.IntN(60)) * time.Millisecond
			restarts.Wait() // a server takes messages before it says that it has started
			restarts.Go(func() {
				time.Sleep(after)
				k.kill()
				k.start()
			})
			time.Sleep(after / 2)
		}
		if err := w.Publish(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	restarts.Wait()
	if err := r.CatchUp(ctx, w.Sequence()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	l.mustRead(want...)
	l.mustHaveLatest(newest)
	lines := 0
	for _, e := range want {
		lines += len(e.Estimates)
	}
	if got := strings.Count(contents(t, filepath.Dir(file))["lines"], "\n"); got != lines {
		t.Errorf("the file has %d lines, want %d", got, lines)
	}
}

// A broker that comes back without acknowledged messages must be noticed by the next
// emission or, without one, by the next audit. Records that a run then publishes again from
// a checkpoint must be read once, also by readers of the lost ones.
func TestLostEndOfTheOutputLogIsNoticed(t *testing.T) {
	for name, ask := range map[string]func(w *Writer) error{
		"publish": func(w *Writer) error {
			return w.Publish(context.Background(),
				emissionAt(8, 2))
		},
		"audit": func(w *Writer) error {
			w.audited = time.Time{}
			return w.Audit(context.Background())
		},
	} {
		k := &killable{t: t, dir: t.TempDir()}
		l := connect(t, k.start())
		w := l.writer(run("a"))
		for p := range uint64(4) {
			l.publish(w, emissionAt(p+1, 2))
		}
		k.kill()
		before := t.TempDir()
		if err := os.CopyFS(before, os.DirFS(k.dir)); err != nil {
			t.Fatal(err)
		}
		k.start()
		for p := range uint64(3) {
			l.publish(w, emissionAt(p+5, 3))
		}
		had := l.stored(ReaderConfig{Names: DefaultNames(), Log: "log"}, 7)
		k.kill()
		if err := errors.Join(os.RemoveAll(k.dir), os.CopyFS(k.dir, os.DirFS(before))); err != nil {
			t.Fatal(err)
		}
		k.start()
		if err := l.nc.FlushTimeout(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		if err := ask(w); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
		w = l.writer(run("b"))
		if w.Published() != 4 {
			t.Errorf("%s: published %d", name, w.Published())
		}
		var want []Emission
		for p := range uint64(9) {
			e := emissionAt(p+1, 2)
			if p >= 4 && p < 7 {
				e = emissionAt(p+1, 3)
			}
			l.publish(w, e)
			want = append(want, e)
		}
		l.mustRead(want...)
		rest := l.stored(ReaderConfig{Names: DefaultNames(), Log: "log", After: had[6].Cursor}, 2)
		if rest[0].Position != 8 || rest[1].Position != 9 || rest[0].Missed {
			t.Errorf("%s: who had read 7 reads %d and %d", name, rest[0].Position, rest[1].Position)
		}
		l.nc.Close()
		k.kill()
	}
}

// tornBatch returns a writer that has published position 1, and of position 2 the mark of three
// records with only two of them.
func tornBatch(t *testing.T, l *logOut) (*Writer, shardMark, []*nats.Msg) {
	t.Helper()
	w := l.writer(run("a"))
	l.publish(w, emissionAt(1, 3))
	records, err := w.records(emissionAt(2, 3).Estimates)
	if err != nil {
		t.Fatal(err)
	}
	mark := w.known.shardMark
	mark.Position, mark.Time, mark.Records = 2, alerts.TimeText(2*int64(time.Second)), 3
	return w, mark, records[:2]
}

// A batch without its end, as after a loss of power on a broker that does not sync, must be
// published again and read once.
func TestTornBatchIsPublishedAgain(t *testing.T) {
	l := startLogOut(t)
	w, mark, records := tornBatch(t, l)
	if err := w.store(t.Context(), mark, records); err != nil {
		t.Fatal(err)
	}
	w = l.writer(run("b"))
	if w.Published() != 1 {
		t.Errorf("published %d", w.Published())
	}
	l.publish(w, emissionAt(1, 3), emissionAt(2, 3), emissionAt(3, 1))
	l.mustRead(emissionAt(1, 3), emissionAt(2, 3), emissionAt(3, 1))
}

// A run that ends after a torn batch without an answer must not mark the position as
// complete: its records would be missing for good.
func TestTheEndOfARunDoesNotCompleteATornBatch(t *testing.T) {
	l := startLogOut(t)
	w, mark, records := tornBatch(t, l)
	batch, err := w.batch(&mark, records)
	if err == nil {
		_, err = publishAfter(
			t.Context(), w.nc, jetstream.ExpectedLastSubjSeqHeader, w.known.Sequence, batch,
		)
	}
	if err == nil {
		err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	w = l.writer(run("a"))
	if w.Published() != 1 {
		t.Errorf("published %d", w.Published())
	}
	l.publish(w, emissionAt(1, 3), emissionAt(2, 3))
	l.mustRead(emissionAt(1, 3), emissionAt(2, 3))
}

// The position of the last mark must be asked of the leader alone, even where the stream
// allows replicas to answer.
func TestReplicasAreNotAsked(t *testing.T) {
	l := startLogOut(t)
	l.publish(l.writer(run("a")), emissionAt(1, 3))
	stream, err := l.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.AllowDirect = true
	if _, err := l.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	asked, err := l.nc.SubscribeSync("$JS.API.DIRECT.GET.GQL_ESTIMATES.>")
	if err != nil {
		t.Fatal(err)
	}
	w := l.writer(run("b"))
	l.publish(w, emissionAt(1, 3), emissionAt(2, 3))
	all := l.stored(ReaderConfig{Names: DefaultNames(), Log: "log"}, 2)
	if got := l.stored(ReaderConfig{Names: DefaultNames(), Log: "log", After: all[0].Cursor},
		1); got[0].Position != 2 {
		t.Errorf("read %d", got[0].Position)
	}
	if n, _, err := asked.Pending(); n != 0 || err != nil {
		t.Errorf("replicas were asked %d times, %v", n, err)
	}
}

// Of three servers, the leader of the stream ends again and again. Acknowledged messages
// must stay, and each emission must be read once.
func TestClusterLosesNothingWithItsLeader(t *testing.T) {
	c := startCluster(t)
	l := c.connect()
	config := run("a")
	config.Streams.Replicas = 3
	w := l.writer(config)
	var want []Emission
	for p := range uint64(30) {
		e := emissionAt(p+1, 40)
		want = append(want, e)
		if p%10 == 5 {
			c.restartLeader(l, "GQL_ESTIMATES")
		}
		if err := w.Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	got := l.stored(ReaderConfig{Names: DefaultNames(), Log: "log"}, len(want))
	for i, e := range got {
		estimates, err := e.Estimates()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], Emission{
			Position: e.Position, Time: e.Time,
			Estimates: estimates,
		}); diff != "" {
			t.Fatal(diff)
		}
	}
	// a server may still be catching up
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		_, err := NewWriter(t.Context(), l.js, config)
		if err == nil {
			break
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatal(fmt.Errorf("a standby: %w", err))
		}
	}
}
