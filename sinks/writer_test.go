package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// logOut is a broker of a test that syncs every message.
type logOut struct {
	t  *testing.T
	s  *server.Server
	nc *nats.Conn
	js jetstream.JetStream
}

func startLogOut(t testing.TB) *logOut { return startLogOutIn(t, t.TempDir()) }

func startLogOutIn(tb testing.TB, dir string) *logOut {
	tb.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "test", DontListen: true, JetStream: true, StoreDir: dir, NoSigs: true,
		SyncAlways: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.Start()
	nc, err := nats.Connect(
		"",
		nats.InProcessServer(s),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
	if err != nil {
		tb.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	l := &logOut{s: s, nc: nc, js: js}
	l.t, _ = tb.(*testing.T)
	tb.Cleanup(l.stop)
	return l
}

func (l *logOut) stop() {
	l.nc.Close()
	l.s.Shutdown()
	l.s.WaitForShutdown()
}

// run is the configuration of a writer of a test by its name.
func run(name string) WriterConfig {
	return WriterConfig{
		Streams: StreamsConfig{Names: DefaultNames()}, Config: "digest", Log: "log",
		Writer: Identity{Host: name, PID: 7, Since: time.Unix(1_700_000_000, 0).UTC()},
	}
}

func (l *logOut) writer(c WriterConfig) *Writer {
	l.t.Helper()
	w, err := NewWriter(l.t.Context(), l.js, c)
	if err != nil {
		l.t.Fatal(err)
	}
	return w
}

// emissionAt has records of so many communities at a position; log time is as many
// seconds.
func emissionAt(position uint64, communities int) Emission {
	e := Emission{Position: position, Time: int64(position) * int64(time.Second)}
	for c := range communities {
		record := estimate(fmt.Sprintf("c%04d", c), "auto", position)
		record.Time = alerts.TimeText(e.Time)
		e.Estimates = append(e.Estimates, record)
	}
	return e
}

func (l *logOut) publish(w *Writer, emissions ...Emission) {
	l.t.Helper()
	for _, e := range emissions {
		if err := w.Publish(l.t.Context(), e); err != nil {
			l.t.Fatal(err)
		}
	}
}

// publishUnheard publishes an emission and loses the acknowledgement.
func (l *logOut) publishUnheard(w *Writer, e Emission) {
	l.t.Helper()
	known, end := w.known, w.Sequence()
	l.publish(w, e)
	w.known = known
	w.end.Store(end)
}

// readAll reads the expected number of emissions; a position twice, or out of order, is a
// failure.
func (l *logOut) readAll(c ReaderConfig, expected int) (all []Emission) {
	l.t.Helper()
	c.Names = cmpOr(c.Names, DefaultNames())
	if c.Log == "" {
		c.Log = "log"
	}
	r := newLogReader(l.js, c)
	defer r.Close()
	for {
		wait := 300 * time.Millisecond
		if len(all) < expected {
			wait = time.Minute
		}
		ctx, cancel := context.WithTimeout(l.t.Context(), wait)
		e, err := r.Next(ctx)
		cancel()
		if err != nil {
			return all
		}
		estimates, err := e.Estimates()
		if err != nil {
			l.t.Fatal(err)
		}
		if n := len(all); n > 0 && all[n-1].Position >= e.Position && c.Shards <= 1 {
			l.t.Fatalf("position %d after %d", e.Position, all[n-1].Position)
		}
		all = append(
			all,
			Emission{Position: e.Position, Time: e.Time, Estimates: estimates, Cut: e.Cut},
		)
	}
}

func cmpOr(a, b Names) Names {
	if a == (Names{}) {
		return b
	}
	return a
}

func (l *logOut) mustRead(want ...Emission) {
	l.t.Helper()
	for i := range want {
		want[i].Active = 0 // which readers are not told
	}
	if diff := cmp.Diff(want, l.readAll(ReaderConfig{}, len(want))); diff != "" {
		l.t.Fatalf("read, -want +got:\n%.2000s", diff)
	}
}

// An emission is read as it was published, whether it has no records, one, or more than
// a batch takes.
func TestEmissionsAreReadAsPublished(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	want := []Emission{
		emissionAt(1, 3),
		emissionAt(5, 2*partRecordsMax+1),
		emissionAt(7, 0),
		emissionAt(8, partRecordsMax),
		emissionAt(9, 1),
		{Position: 10, Time: 9 * int64(time.Second), Cut: true},
	}
	want[4].Estimates = append(
		want[4].Estimates,
		want[4].Estimates[0],
	) // a method that is configured twice
	l.publish(w, want...)
	l.mustRead(want...)
	if w.Published() != 10 {
		t.Errorf("published %d", w.Published())
	}
	stream, err := l.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), "gqlest.estimate.c0000.auto.1")
	if err != nil || !strings.HasPrefix(string(m.Data), `{"community":"c0000","position":9,`) {
		t.Errorf("the record of the second of two equal methods: %v, %v", m, err)
	}
}

// A shard without records says at most once a second of log time how far it is.
func TestHeartbeatsAreASecondApart(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	var want []Emission
	for i := range uint64(50) {
		e := Emission{Position: i + 1, Time: int64(i) * int64(time.Second) / 4}
		if i == 18 {
			e.Estimates = emissionAt(i+1, 1).Estimates
		}
		if i%4 == 0 && i > 0 && i < 18 || i == 18 || i > 18 && (i-18)%4 == 0 {
			want = append(want, e)
		}
		if i == 30 {
			w = l.writer(run("b")) // the run that continues keeps the rhythm
		}
		l.publish(w, e)
	}
	l.mustRead(want...)
}

// A run that is killed anywhere, also between the parts of an emission, and begins again
// before its last records, must leave each emission in the output log once.
func TestRestartedWriterNeitherRepeatsNorOmits(t *testing.T) {
	want := []Emission{emissionAt(1, 2), emissionAt(2, 2*partRecordsMax+5), emissionAt(4, 1)}
	for parts := range 6 {
		l := startLogOut(t)
		first := l.writer(run("a"))
		batches := 0
		for _, e := range want {
			records, err := first.records(e.Estimates)
			if err != nil {
				t.Fatal(err)
			}
			m := shardMark{
				Position: e.Position,
				Time:     alerts.TimeText(e.Time),
				Parts:    (len(records) + partRecordsMax - 1) / partRecordsMax,
				Config:   "digest",
				Log:      "log",
			}
			for m.Part = 1; m.Part <= m.Parts && batches < parts; m.Part, batches = m.Part+1,
				batches+1 {
				part := records[(m.Part-1)*partRecordsMax : min(m.Part*partRecordsMax,
					len(records))]
				m.Records = len(part)
				if err := first.store(t.Context(), m, part); err != nil {
					t.Fatal(err)
				}
			}
		}
		second := l.writer(run("b"))
		if want := []uint64{0, 1, 1, 1, 2, 4}[parts]; second.Published() != want {
			t.Errorf("after %d parts: published %d, want %d", parts, second.Published(), want)
		}
		l.publish(second, want...)
		l.mustRead(want...)
		l.stop()
	}
}

// A batch that was stored although its acknowledgement was lost is not stored twice.
func TestLostAcknowledgementIsAskedFor(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	l.publish(w, emissionAt(1, 3))
	l.publishUnheard(w, emissionAt(2, 3))
	l.publish(w, emissionAt(2, 3), emissionAt(3, 1))
	l.mustRead(emissionAt(1, 3), emissionAt(2, 3), emissionAt(3, 1))
}

// An acknowledgement that does not come must be given up within seconds and the emission be sent
// again, and be in the output log once in the end.
func TestAnUnansweredEmissionIsSentAgain(t *testing.T) {
	// the answer is waited for for three; the first edition waited for fifteen
	const againMax = 12 * time.Second
	l := startLogOut(t)
	w := l.writer(run("a"))
	l.publish(w, emissionAt(1, 1))
	stream, err := l.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err != nil {
		t.Fatal(err)
	}
	moveTo := func(subjects []string) {
		c := stream.CachedInfo().Config
		c.Subjects = subjects
		if _, err := l.js.UpdateStream(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	sent := make(chan time.Time, 2)
	somebody, err := l.nc.Subscribe("gqlest.estimate.>", func(m *nats.Msg) {
		if sent <- time.Now(); len(
			sent,
		) == 2 { // the first gets no answer, the second a refusal that passes
			moveTo(stream.CachedInfo().Config.Subjects)
			_ = m.Sub.Unsubscribe()
			_ = m.Respond(
				[]byte(`{"error": {"code": 503, "err_code": 10008, "description": "not ready"}}`),
			)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer somebody.Unsubscribe()
	moveTo([]string{"elsewhere"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Publish(ctx, emissionAt(2, 1)); err != nil {
		t.Fatalf("the emission was sent %d times: %v", len(sent), err)
	}
	if first, second := <-sent, <-sent; second.Sub(first) > againMax {
		t.Errorf("it was sent again after %v", second.Sub(first))
	}
	l.mustRead(emissionAt(1, 1), emissionAt(2, 1))
}

// Two runs of one configuration must publish each emission once between them, whoever is
// first, and neither may end; also with a run that begins in between.
func TestEqualRunsReplaceOneAnother(t *testing.T) {
	for seed := range uint64(5) {
		l := startLogOut(t)
		random := rand.New(rand.NewPCG(seed, 1))
		var want []Emission
		for p := range uint64(40) {
			want = append(want, emissionAt(p+1, random.IntN(3)))
		}
		names := 2
		runs, at := []*Writer{l.writer(run("1")), l.writer(run("2"))}, []int{0, 0}
		for slices.Min(at) < len(want) {
			i := random.IntN(len(runs))
			if at[i] < len(want) {
				l.publish(runs[i], want[at[i]])
				at[i]++
			}
			if random.IntN(20) == 0 { // killed, and begins from a checkpoint
				names++
				runs[i], at[i] = l.writer(run(fmt.Sprint(names))), random.IntN(at[i]+1)
			}
		}
		l.mustRead(want...)
		l.stop()
	}
}

// A run with another configuration, or of another log, is refused at its start by the
// name of the one that is there, which goes on; and may begin when that has ended or
// has been silent for a minute.
func TestOtherConfigurationIsRefused(t *testing.T) {
	for _, other := range []func(*WriterConfig){
		func(c *WriterConfig) { c.Config = "other" }, func(c *WriterConfig) { c.Log = "other" },
	} {
		l := startLogOut(t)
		w := l.writer(run("first"))
		l.publish(w, emissionAt(1, 1))
		c := run("second")
		other(&c)
		_, err := NewWriter(t.Context(), l.js, c)
		if !errors.Is(err, errOtherWriter) ||
			!strings.Contains(err.Error(), "host first, process 7") ||
			!strings.Contains(err.Error(), "since 2023-11-14T22:13:20Z") ||
			!strings.Contains(err.Error(), w.config.Config) &&
				!strings.Contains(err.Error(), w.config.Log) {
			t.Fatalf("refused with %v", err)
		}
		l.publish(w, emissionAt(2, 1))
		found, err := lastMark(t.Context(), w.js, w.config.Streams.Names, w.config.Shard, Mark{})
		if err != nil {
			t.Fatal(err)
		}
		found.age = markFreshMax + time.Second
		if err := (&Writer{config: c}).refuse(&found); err != nil {
			t.Errorf("after a minute of silence: %v", err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := l.writer(c)
		l.publish(after, emissionAt(3, 1))
		if err := w.Publish(t.Context(), emissionAt(4, 1)); !errors.Is(err, errOtherWriter) ||
			!strings.Contains(err.Error(), "host second") {
			t.Errorf("the run that has ended goes on: %v", err)
		}
		l.publish(after, emissionAt(4, 1))
	}
}

// A run that ends must say so also when its last batch was stored and the answer did not reach it,
// because the end cut the waiting off: another configuration would be refused for a minute.
func TestTheEndIsRecordedAfterALostAnswer(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("one"))
	l.publish(w, emissionAt(1, 1))
	l.publishUnheard(w, emissionAt(2, 1))
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := lastMark(t.Context(), w.js, w.config.Streams.Names, w.config.Shard,
		Mark{}); err != nil ||
		!found.Closed ||
		found.Position != 2 {
		t.Errorf("the last mark is closed: %t, at %d (%v)", found.Closed, found.Position, err)
	}
}

// A writer that has a mark of an older one before it, of another process with the same
// configuration, takes the fence over.
func TestFenceBehindIsTakenOver(t *testing.T) {
	l := startLogOut(t)
	ahead, behind := l.writer(run("a")), l.writer(run("b"))
	l.publish(behind, emissionAt(1, 1), emissionAt(2, 1))
	l.publish(ahead, emissionAt(5, 1))
	l.mustRead(emissionAt(1, 1), emissionAt(2, 1), emissionAt(5, 1))
}

// Messages of others on our subjects must not be read as ours, nor end the run.
func TestForeignMessagesAreIgnored(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	foreign := func() {
		t.Helper()
		for _, subject := range []string{
			"gqlest.estimate.c0000.auto", "gqlest.shard.0",
			"gqlest.shard.x", "gqlest.shard.7",
		} {
			if _, err := l.js.Publish(t.Context(), subject,
				[]byte(`{"position":3,"community":"c0000"}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	foreign()
	l.publish(w, emissionAt(1, 2))
	foreign()
	l.publish(w, emissionAt(2, 2))
	foreign()
	w = l.writer(run("b"))
	if w.Published() != 2 {
		t.Errorf("published %d", w.Published())
	}
	l.publish(w, emissionAt(2, 2), emissionAt(3, 2))
	l.mustRead(emissionAt(1, 2), emissionAt(2, 2), emissionAt(3, 2))
	l.publish(w, emissionAt(4, 9))
	if _, err := l.js.Publish(t.Context(), "gqlest.shard.0", nil); err != nil {
		t.Fatal(err)
	}
	// nothing that it knows of is lost
	if err := l.writer(run("c")).Audit(t.Context()); err != nil {
		t.Error(err)
	}
}

// While somebody floods the subject of a shard, a writer that looks for the newest mark again must
// not read all foreign messages again: it could never catch up with them.
func TestAFloodOfForeignMessagesIsReadOnce(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	l.publish(w, emissionAt(1, 2))
	flood := func(n int) {
		for range n {
			if _, err := l.js.Publish(t.Context(), "gqlest.shard.0", []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
	}
	known := Mark{}
	for _, n := range []int{300, 5} {
		flood(n)
		before := l.nc.Stats().OutMsgs
		var err error
		if known, err = lastMark(t.Context(), l.js, DefaultNames(), 0, known); err != nil {
			t.Fatal(err)
		}
		asked := l.nc.Stats().OutMsgs - before
		if known.Position != 1 || asked > uint64(n)+10 {
			t.Errorf(
				"after %d foreign messages: position %d, %d requests", n, known.Position, asked,
			)
		}
	}
}

// A stream that is deleted or emptied under a run is noticed by the next audit and by
// the next emission, and a new writer begins from nothing.
func TestStreamDeletedUnderARunIsMadeAgain(t *testing.T) {
	for name, ask := range map[string]func(*Writer) error{
		"audit":   func(w *Writer) error { return w.Audit(t.Context()) },
		"publish": func(w *Writer) error { return w.Publish(t.Context(), emissionAt(3, 1)) },
	} {
		for _, remove := range []func(*logOut) error{
			func(l *logOut) error { return l.js.DeleteStream(t.Context(), "GQL_ESTIMATES") },
			func(l *logOut) error {
				stream, err := l.js.Stream(t.Context(), "GQL_ESTIMATES")
				return errors.Join(err, stream.Purge(t.Context()))
			},
		} {
			l := startLogOut(t)
			w := l.writer(run("a"))
			l.publish(w, emissionAt(1, 1), emissionAt(2, 1))
			if err := remove(l); err != nil {
				t.Fatal(err)
			}
			if err := ask(w); !errors.Is(err, ErrLost) {
				t.Errorf("%s: %v", name, err)
			}
			w = l.writer(run("b"))
			l.publish(w, emissionAt(1, 1), emissionAt(2, 1), emissionAt(3, 1))
			l.mustRead(emissionAt(1, 1), emissionAt(2, 1), emissionAt(3, 1))
		}
	}
}

// Runs that begin together on a new server must not take the bucket from one another, and a
// bucket that copied an earlier stream must be made again.
func TestBucketCopiesThePresentStream(t *testing.T) {
	l := startLogOut(t)
	c := run("a").Streams
	created := func(stream string) time.Time {
		s, err := l.js.Stream(t.Context(), stream)
		if err != nil {
			t.Error(err)
			return time.Time{}
		}
		return s.CachedInfo().Created
	}
	var begun sync.WaitGroup
	var made [4]time.Time
	for i := range made {
		begun.Go(func() {
			if err := ensureStreams(t.Context(), l.js, c); err != nil {
				t.Error(err)
			}
			made[i] = created("KV_" + c.Names.Latest)
		})
	}
	begun.Wait()
	for _, at := range made {
		if !at.Equal(made[0]) {
			t.Errorf("the bucket was made again under a run that had begun: %v", made)
		}
	}
	if err := l.js.DeleteStream(t.Context(), c.Names.Estimates); err != nil {
		t.Fatal(err)
	}
	if err := ensureStreams(t.Context(), l.js, c); err != nil {
		t.Fatal(err)
	}
	if now := created("KV_" + c.Names.Latest); !now.After(made[0]) ||
		now.Before(created(c.Names.Estimates)) {
		t.Errorf("the bucket of %v is of an earlier stream", now)
	}
}

// No record may be published that would discard a record that the slowest follower has not
// taken.
func TestWriterWaitsForTheSlowestFollower(t *testing.T) {
	l := startLogOut(t)
	c := run("a")
	c.Streams.Bytes = 2 << 20
	taken := uint64(1)
	c.Needed = func() (string, uint64) { return "file", taken }
	w := l.writer(c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if s := w.State(); s.Condition == request.Holding &&
				strings.Contains(s.Reason, "file has not taken message 2") {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var err error
	position := uint64(1)
	for ; err == nil; position++ {
		err = w.Publish(ctx, emissionAt(position, 100))
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	stream, err := l.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err != nil {
		t.Fatal(err)
	}
	if s := stream.CachedInfo().State; s.FirstSeq > 2 || s.Bytes < 1<<20 {
		t.Errorf("%d bytes, the first is %d", s.Bytes, s.FirstSeq)
	}
	taken = 1 << 40
	l.publish(w, emissionAt(position-1, 100))
}

// Messages that a follower has not taken must be kept, even if the oldest messages are small and
// the newer ones large.
func TestSmallMessagesAreNotDiscardedForLargeOnes(t *testing.T) {
	l := startLogOut(t)
	c := run("a")
	c.Streams.Bytes = 8 << 20
	taken := uint64(1 << 40)
	c.Needed = func() (string, uint64) { return "file", taken }
	w := l.writer(c)
	publish := func(ctx context.Context, position uint64, n, bytes int) error {
		records := make([]*nats.Msg, n)
		for i := range records {
			records[i] = newMessage(
				c.Streams.Names.EstimateSubject("x", "auto", 0),
				"log",
				make([]byte, bytes),
			)
		}
		return w.store(
			ctx,
			shardMark{
				Writer:   c.Writer,
				Position: position,
				Part:     1,
				Parts:    1,
				Records:  n,
				Config:   c.Config,
				Log:      c.Log,
			},
			records,
		)
	}
	position := uint64(1)
	for ; position <= 3; position++ {
		if err := publish(t.Context(), position, partRecordsMax, 150); err != nil {
			t.Fatal(err)
		}
	}
	taken = 1_600
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if err := publish(ctx, position, 100, 10<<10); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		position++
	}
	stream, err := l.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err != nil {
		t.Fatal(err)
	}
	if s := stream.CachedInfo().State; s.FirstSeq > taken+1 || s.Bytes < 4<<20 {
		t.Errorf("%d bytes, the first is %d, and %d are taken", s.Bytes, s.FirstSeq, taken)
	}
}

// A shard that was silent until the stream was full must find room: followers take nothing more
// before it has published, so that to wait for them would be for ever.
func TestAFullStreamTakesTheShardThatOthersAwait(t *testing.T) {
	l := startLogOut(t)
	var taken atomic.Pointer[Cursor]
	taken.Store(new(Cursor))
	var writers [3]*Writer
	for k := range writers {
		c := run("w")
		c.Shard, c.Shards, c.Streams.Bytes = k, len(writers), 10<<20
		c.Needed = func() (string, uint64) { return "file", taken.Load().Sequence }
		writers[k] = l.writer(c)
	}
	r := newLogReader(l.js, ReaderConfig{Names: DefaultNames(), Shards: len(writers), Log: "log"})
	defer r.Close()
	follow := func(ctx context.Context, until uint64) {
		for position := taken.Load().Position + 1; position <= until; position++ {
			e, err := r.Next(ctx)
			if err != nil {
				return // the test has ended
			}
			if e.Position != position || e.Missed {
				t.Errorf("position %d is %d, missed before it: %v", position, e.Position, e.Missed)
			}
			taken.Store(&e.Cursor)
		}
	}
	for _, w := range writers {
		l.publish(w, emissionAt(1, 100))
	}
	follow(t.Context(), 1)
	fill := func(w *Writer, last uint64) uint64 { // until it waits
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
				if w.State().Condition == request.Holding {
					cancel()
				}
			}
		}()
		for w.Publish(ctx, emissionAt(last+1, 100)) == nil {
			last++
		}
		return last
	}
	// shard 2 has nothing to say, is ahead of all, and has room as far as it knows
	quiet := func(position uint64) {
		writers[2].passed, writers[2].renewed = Emission{Position: position}, time.Time{}
		if err := writers[2].moveWatermark(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	quiet(100_000)
	last := fill(writers[1], 1)
	quiet(100_001)
	if err := writers[2].Audit(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(writers[2], 100_001)
	late, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	var following sync.WaitGroup
	following.Go(func() { follow(late, last) })
	for position := uint64(2); position <= last; position++ {
		if err := writers[0].Publish(late, emissionAt(position, 100)); err != nil {
			t.Errorf("shard 0 at %d of %d: %v", position, last, err)
			end()
			break
		}
	}
	following.Wait()
}

// A new reader of an output log without its beginning must get an error: parts would claim to
// hold the beginning.
func TestANewReaderGetsAnErrorForMissedRecords(t *testing.T) {
	l := startLogOut(t)
	l.publish(l.writer(run("a")), emissionAt(1, 2), emissionAt(2, 2), emissionAt(3, 2))
	stream, err := l.js.Stream(t.Context(), "GQL_ESTIMATES")
	if err == nil {
		err = stream.Purge(t.Context(), jetstream.WithPurgeSequence(4)) // the first emission
	}
	if err != nil {
		t.Fatal(err)
	}
	r := newLogReader(l.js, ReaderConfig{Names: DefaultNames(), Log: "log"})
	defer r.Close()
	for position := uint64(2); position <= 3; position++ {
		e, err := r.Next(t.Context())
		if err != nil || e.Position != position || e.Missed != (position == 2) {
			t.Fatalf("position %d: %+v, %v", position, e, err)
		}
	}
}

// WatchMarks must report the marks of a stream that was deleted and created again, although the
// sequences start again at 1.
func TestMarksAreReadAfterTheStreamIsMadeAgain(t *testing.T) {
	l := startLogOut(t)
	heard := make(chan Mark, 16)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(
		func() { WatchMarks(ctx, l.js, DefaultNames(), "log", func(m Mark) { heard <- m }) },
	)
	defer watching.Wait()
	defer cancel()
	await := func(position uint64) {
		t.Helper()
		for deadline := time.After(30 * time.Second); ; {
			select {
			case m := <-heard:
				if m.Position == position {
					return
				}
			case <-deadline:
				t.Fatalf("the mark at %d is not heard", position)
			}
		}
	}
	l.publish(l.writer(run("a")), emissionAt(1, 2), emissionAt(2, 2), emissionAt(3, 2))
	await(3)
	if err := l.js.DeleteStream(t.Context(), "GQL_ESTIMATES"); err != nil {
		t.Fatal(err)
	}
	l.publish(l.writer(run("a")), emissionAt(4, 2))
	await(4)
}

// A mark that only moves the watermark, after a run with other classes, must be one of this run.
func TestAQuietMarkIsOfItsRun(t *testing.T) {
	l := startLogOut(t)
	before := run("a")
	before.Classes = []string{"x", "y"}
	w := l.writer(before)
	l.publish(w, emissionAt(1, 1))
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := run("b")
	c.Classes, c.Config, c.Shards = []string{"y", "x"}, "another", 2
	w = l.writer(c)
	w.beats.last = 1 << 60 // nothing is due
	w.Admit(&Emission{Position: 2, Time: 2})
	w.audited, w.renewed = time.Now(), time.Time{}
	if err := w.Audit(t.Context()); err != nil || w.Published() != 2 {
		t.Fatalf("published %d, %v", w.Published(), err)
	}
	if _, classes := l.writer(c).Before(); !slices.Equal(classes, c.Classes) {
		t.Errorf("classes %q", classes)
	}
}

func TestServerVersions(t *testing.T) {
	for text, want := range map[string]bool{
		"2.12.0": true, "2.15.2": true, "3.0.0": true, "2.12.0-RC.1": true, "2.11.9": false,
		"1.99.99": false, "": false, "dev": false,
	} {
		if got := !tooOld(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestPrefixNamesEverything(t *testing.T) {
	n, err := NewNames("Mid-terms")
	if err != nil || n.Estimates != "MID-TERMS_ESTIMATES" || n.Latest != "mid-terms_estimates" ||
		n.Alerts != "MID-TERMS_ALERTS" ||
		n.MarkSubject(3) != "mid-termsest.shard.3" ||
		n.EstimateSubject("a b", "auto", 1) != "mid-termsest.estimate.a=20b.auto.1" {
		t.Errorf("%+v, %v", n, err)
	}
	for _, bad := range []string{"a.b", "a b", "é", "*", strings.Repeat("x", 65)} {
		if _, err := NewNames(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	l := startLogOut(t)
	c := run("a")
	c.Streams.Names, c.Config = n, "other"
	l.publish(l.writer(run("b")), emissionAt(1, 1))
	l.publish(l.writer(c), emissionAt(2, 1))
	l.mustRead(emissionAt(1, 1))
	if got := l.readAll(ReaderConfig{Names: n}, 1); len(got) != 1 || got[0].Position != 2 {
		t.Errorf("read %v", got)
	}
}

// BenchmarkPublish stores emissions of 1,000 records, one in 100 ms, in a stream that syncs
// every batch before it acknowledges it, with a bucket that copies the records.
func BenchmarkPublish(b *testing.B) {
	for _, records := range []int{1, 100, 999, 1000} {
		b.Run(fmt.Sprint("records=", records), func(b *testing.B) { benchmarkPublish(b, records) })
	}
}

func benchmarkPublish(b *testing.B, records int) {
	l := startLogOut(b)
	w, err := NewWriter(b.Context(), l.js, run("a"))
	if err != nil {
		b.Fatal(err)
	}
	position := uint64(0)
	var took []time.Duration
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	for b.Loop() {
		position++
		e := emissionAt(position, records)
		for i := range e.Estimates {
			e.Estimates[i] = wide(e.Estimates[i])
		}
		<-beat.C
		begun := time.Now()
		if err := w.Publish(b.Context(), e); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // it waits between emissions
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
}

// wide fills an estimate to about 900 bytes of JSON, as ten classes have.
func wide(e quant.Estimate) quant.Estimate {
	numbers := make([]float64, 10)
	for k := range numbers {
		numbers[k] = 0.1234567 + float64(k)*0.0111
	}
	e.Prevalence, e.Low, e.High, e.SE, e.NEff = numbers, numbers, numbers, numbers, numbers
	if data, err := json.Marshal(e); err != nil || len(data) < 800 || len(data) > 1300 {
		panic(fmt.Sprint(len(data), err))
	}
	return e
}

// The time after which an emission without records is due must not depend on the times at
// which earlier ones are stored: a run that stands in finds emissions that were due long
// before it stores the first of them.
func TestHeartbeatsDoNotDependOnWhenMarksAreStored(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	first, second, empty := emissionAt(1, 1), emissionAt(2, 1), emissionAt(3, 0)
	second.Time, empty.Time = first.Time+heartbeatEvery/2, first.Time+heartbeatEvery+1
	if !w.Admit(&first) || !w.Admit(&second) {
		t.Fatal("emissions with records are not due")
	}
	if err := w.Store(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if w.Admit(&empty) {
		t.Error("an emission without records is due half a second after one with records")
	}
	other := l.writer(run("b")) // has found the first mark only
	if err := w.Store(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	third, later := emissionAt(4, 1), emissionAt(5, 0)
	third.Time, later.Time = second.Time+heartbeatEvery, second.Time+heartbeatEvery+1
	if !other.Admit(&third) {
		t.Fatal("an emission with records is not due")
	}
	// is stored already, which is found out
	if err := other.Store(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if other.Admit(&later) {
		t.Error("an emission without records is due at once after one with records")
	}
}

// An incomplete emission of another configuration must not be completed: the writer must publish
// all its parts again. This holds for an emission with missing parts and for one with a torn part.
func TestPartsOfAnotherConfigurationAreNotCompleted(t *testing.T) {
	for _, torn := range []bool{false, true} {
		w := &Writer{config: WriterConfig{Config: "new", Log: "log"}}
		w.adopt(
			Mark{
				shardMark: shardMark{Config: "old", Log: "log", Position: 5, Part: 2, Parts: 3},
				Sequence:  9,
				torn:      torn,
			},
		)
		if w.known.Part != 0 || w.Published() != 4 {
			t.Errorf(
				"torn %t: part %d, published up to %d; want 0 and 4", torn, w.known.Part,
				w.Published(),
			)
		}
	}
}

// The longer nothing was said, the further apart marks without records must be, up to three
// quarters of a minute, and records must bring them back to a second: in an idle day 16 shards
// write less than 20 MB.
func TestAnIdleLogOutWritesLittle(t *testing.T) {
	var beats Heartbeats
	said := emissionAt(1, 1)
	beats.Publishes(&said)
	const second = int64(time.Second)
	marks, last := 0, said.Time
	for at := said.Time; at < said.Time+24*3600*second; at += second {
		e := Emission{Position: 2, Time: at}
		if !beats.Publishes(&e) {
			continue
		}
		if at-last > 46*second {
			t.Fatalf("%v without a mark", time.Duration(at-last))
		}
		marks, last = marks+1, at
	}
	const markBytes, shards = 500, 16
	if bytes := marks * markBytes * shards; bytes > 20e6 {
		t.Errorf("%d marks a day and shard, %d bytes in all", marks, bytes)
	}
	said.Time = last + 50*second
	beats.Publishes(&said)
	soon := Emission{Time: said.Time + second}
	if !beats.Publishes(&soon) {
		t.Error("a second after records there is no mark")
	}
}

// Records must have the same bytes in the output log, in files and in a replay, for any
// characters in a name: <, > and & are not escaped.
func TestRecordsHaveTheBytesOfAReplay(t *testing.T) {
	e := quant.Estimate{Community: "a<b>&c", Method: "auto", Flags: []string{}}
	list, err := (&Writer{config: run("one")}).records([]quant.Estimate{e})
	if err != nil {
		t.Fatal(err)
	}
	want, err := alerts.PlainJSON(e)
	if err != nil || !strings.Contains(string(want), `"a<b>&c"`) ||
		string(list[0].Data) != string(want) {
		t.Errorf("the record is %s, in a file %s, %v", list[0].Data, want, err)
	}
}
