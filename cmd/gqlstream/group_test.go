package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/campaign"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

const (
	groupShards  = 5
	groupWaitMax = 2 * time.Minute // for anything that a test of a group waits for; the machine may be busy
)

// groupConfig is crashConfig for a group.
var groupConfig = strings.Replace(crashConfig, "checkpoint: {every: 200ms}", "checkpoint: {every: 1s}", 1) + `
group: {shards: 5, copies: %d}
`

// groupRun is the life of one log that a group of workers follows.
type groupRun struct {
	crashRun
	servers []*server.Server
	nc      *nats.Conn
	js      jetstream.JetStream
	workers []*groupWorker

	kills, pauses, joins int
}

type groupWorker struct {
	name, dir, said string
	process         *exec.Cmd
	done            chan error
}

// newGroupRun starts a cluster of three servers.
func newGroupRun(t *testing.T, seed uint64, copies int) *groupRun {
	t.Helper()
	g := &groupRun{crashRun: crashRun{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 17))}}
	g.config = filepath.Join(t.TempDir(), "gqlstream.yaml")
	writeConfig(t, g.config, fmt.Sprintf(groupConfig, copies))
	g.startServers()
	var err error
	if g.nc, err = nats.Connect(g.url(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.nc.Close)
	if g.js, err = jetstream.New(g.nc); err != nil {
		t.Fatal(err)
	}
	g.wait("the cluster to keep streams", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return broker.EnsureStreams(ctx, g.js, broker.DefaultStreamNames()) == nil
	})
	t.Cleanup(func() {
		for _, w := range g.workers {
			if w.process != nil {
				_ = w.process.Process.Kill()
				<-w.done
			}
		}
	})
	return g
}

// startServers starts three servers in this process, which route to each other.
func (g *groupRun) startServers() {
	var routes []*url.URL
	var ports []int
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			g.t.Fatal(err)
		}
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: listener.Addr().String()})
		listener.Close()
	}
	for i := range 3 {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, NoSigs: true, StoreDir: g.t.TempDir(),
			Routes: routes, Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[i]},
		})
		if err != nil {
			g.t.Fatal(err)
		}
		s.Start()
		g.servers = append(g.servers, s)
		g.t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	}
	for _, s := range g.servers {
		if !s.ReadyForConnections(groupWaitMax) {
			g.t.Fatal("a server is not ready")
		}
	}
	g.address = strings.TrimPrefix(g.servers[0].ClientURL(), "nats://")
}

func (g *groupRun) url() string {
	var all []string
	for _, s := range g.servers {
		all = append(all, s.ClientURL())
	}
	return strings.Join(all, ",")
}

// wait waits until something is true.
func (g *groupRun) wait(what string, is func() bool) {
	g.t.Helper()
	for begun := time.Now(); !is(); pause(g.t.Context(), 10*time.Millisecond) {
		if time.Since(begun) > groupWaitMax {
			g.fail("seed %d: waited %v for %s", g.seed, groupWaitMax, what)
		}
	}
}

// fail ends the test with what the workers said.
func (g *groupRun) fail(format string, args ...any) {
	g.t.Helper()
	for _, w := range g.workers {
		text, _ := os.ReadFile(w.said)
		g.t.Logf("%s:\n%s", w.name, text)
	}
	g.t.Fatalf(format, args...)
}

// start starts a worker, a new one or one that was killed.
func (g *groupRun) start(w *groupWorker) {
	g.t.Helper()
	said, err := os.OpenFile(w.said, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	g.must(err)
	defer said.Close()
	process := exec.Command(os.Args[0], "run", "--config", g.config, "--state", w.dir, "--nats", g.url(), "--group", "g", "--worker", w.name)
	process.Env = append(os.Environ(), mainVariable+"=1")
	process.Stdout, process.Stderr = said, said
	g.must(process.Start())
	w.process, w.done = process, make(chan error, 1)
	go func(done chan<- error) { done <- process.Wait() }(w.done)
}

// add starts so many new workers.
func (g *groupRun) add(n int) {
	for range n {
		i := len(g.workers)
		w := &groupWorker{name: fmt.Sprint("w", i), dir: g.t.TempDir()}
		w.said = filepath.Join(w.dir, "said")
		g.workers = append(g.workers, w)
		g.start(w)
	}
}

// kill ends a worker as a power cut would end it.
func (g *groupRun) kill(w *groupWorker) {
	g.t.Helper()
	select {
	case err := <-w.done:
		g.fail("seed %d: worker %s ended by itself: %v", g.seed, w.name, err)
	default:
	}
	_ = w.process.Process.Kill()
	<-w.done
	w.process = nil
	g.kills++
}

// alive lists the workers that run.
func (g *groupRun) alive() []*groupWorker {
	return slices.DeleteFunc(slices.Clone(g.workers), func(w *groupWorker) bool { return w.process == nil })
}

// watermarks returns up to where each shard is complete.
func (g *groupRun) watermarks() (all [groupShards]uint64) {
	stream, err := g.js.Stream(g.t.Context(), "GQL_ESTIMATES")
	if err != nil {
		return all
	}
	stream.CachedInfo().Config.AllowDirect = false
	for shard := range all {
		m, err := stream.GetLastMsgForSubject(g.t.Context(), sinks.DefaultNames().MarkSubject(shard))
		var mark struct{ Position uint64 }
		if err == nil && json.Unmarshal(m.Data, &mark) == nil {
			all[shard] = mark.Position
		}
	}
	return all
}

// finish ends the log with a checkpoint, waits until all of it is published, and holds
// that against one core that nothing disturbed.
func (g *groupRun) finish(producer *producer) {
	g.t.Helper()
	if producer != nil {
		close(producer.stop)
		g.report.messages = <-producer.sent
	}
	ack, err := g.js.PublishMsg(g.t.Context(), controlMessage("flush", "checkpoint"))
	g.must(err)
	g.wait("all shards to be complete", func() bool {
		marks := g.watermarks()
		return slices.Min(marks[:]) >= ack.Sequence
	})
	for _, w := range g.alive() {
		if err := w.process.Process.Signal(syscall.SIGTERM); err != nil {
			g.fail("seed %d: worker %s has ended: %v", g.seed, w.name, err)
		}
		if err := <-w.done; err != nil {
			g.fail("seed %d: worker %s: %v", g.seed, w.name, err)
		}
		w.process = nil
	}
	g.compareGroup(ack.Sequence)
}

func controlMessage(ops ...string) *nats.Msg {
	m := nats.NewMsg(broker.Subject("GQL", event.KindControl))
	m.Header.Set("Content-Type", "application/x-ndjson")
	for _, op := range ops {
		m.Data = append(m.Data, `{"op":"`+op+"\"}\n"...)
	}
	return m
}

// compareGroup holds records and refusals against those of a twin, up to a position: ticks may
// have come after it.
func (g *groupRun) compareGroup(until uint64) {
	want := g.undisturbed(g.js)
	g.report.positions = int(until)
	got := map[string][]string{}
	for _, data := range g.records() {
		var e struct{ Community string }
		g.must(json.Unmarshal(data, &e))
		got[e.Community] = append(got[e.Community], string(data))
		g.report.records++
	}
	for _, all := range []map[string][]string{got, want.records} {
		for community, list := range all {
			all[community] = slices.DeleteFunc(list, func(record string) bool {
				var e struct{ Position uint64 }
				g.must(json.Unmarshal([]byte(record), &e))
				return e.Position > until
			})
		}
	}
	g.compareSequences(got, want)
	g.compareQuarantine(g.js, broker.DefaultStreamNames(), want)
	if g.report.different > 0 {
		g.fail("seed %d: %d differences", g.seed, g.report.different)
	}
}

// records returns what is in the log out, in the order in which it was stored.
func (g *groupRun) records() (all [][]byte) {
	ctx, cancel := context.WithTimeout(g.t.Context(), groupWaitMax)
	defer cancel()
	stream, err := g.js.Stream(ctx, "GQL_ESTIMATES")
	g.must(err)
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{"gqlest.estimate.>"}})
	g.must(err)
	info, err := consumer.Info(ctx)
	g.must(err)
	messages, err := consumer.Messages()
	g.must(err)
	defer messages.Stop()
	for range info.NumPending {
		m, err := messages.Next(jetstream.NextContext(ctx))
		g.must(err)
		all = append(all, m.Data())
	}
	return all
}

// However many workers there are, and whatever happens to them, a group must publish the
// records that one core makes of the log. GQLSTREAM_GROUP_FAULTS sets how many faults there
// are.
func TestGroupPublishesWhatOneWorkerDoes(t *testing.T) {
	faults := campaign.Size(t, "GQLSTREAM_GROUP_FAULTS", 3)
	seed := campaign.Seed(t, 1)
	g := newGroupRun(t, seed, 1)
	g.add(1)
	g.wait("the first estimates", func() bool { return slices.Max(slices.Collect(valuesOf(g.watermarks()))) > 0 })
	producer := startProducer(t.Context(), &g.crashRun)
	g.add(1)
	for range faults {
		pause(t.Context(), time.Duration(g.rand.Int64N(int64(time.Second))))
		g.fault()
	}
	living := g.alive()[0].name
	g.wait("the list of the group to name a worker and its shards", func() bool {
		out, _ := mustRun(t, "group", "g", "--nats", g.url())
		return strings.Contains(out, living) && strings.Contains(out, "\n4 ") && strings.Contains(out, "PUBLISHED BY")
	})
	g.finish(producer)
	t.Logf("%d kills, %d pauses, %d joins; %v", g.kills, g.pauses, g.joins, g.report)
}

func valuesOf(marks [groupShards]uint64) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for _, m := range marks {
			if !yield(m) {
				return
			}
		}
	}
}

// fault kills, stops, or starts a worker.
func (g *groupRun) fault() {
	alive := g.alive()
	dead := slices.DeleteFunc(slices.Clone(g.workers), func(w *groupWorker) bool { return w.process != nil })
	switch x := g.rand.IntN(6); {
	case len(alive) < 2 && len(dead) > 0:
		g.start(dead[g.rand.IntN(len(dead))])
		g.joins++
	case len(alive) < 2 || x == 0 && len(g.workers) < 4:
		g.add(1)
		g.joins++
	case x <= 2 && len(alive) < 4 && len(dead) > 0:
		g.start(dead[g.rand.IntN(len(dead))])
		g.joins++
	case x <= 4:
		g.kill(alive[g.rand.IntN(len(alive))])
	default:
		w := alive[g.rand.IntN(len(alive))]
		g.must(w.process.Process.Signal(syscall.SIGSTOP))
		pause(g.t.Context(), time.Duration(g.rand.Int64N(int64(4*time.Second))))
		g.must(w.process.Process.Signal(syscall.SIGCONT))
		g.pauses++
	}
}
