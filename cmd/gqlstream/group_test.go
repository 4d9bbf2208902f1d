//go:build unix && !race

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/campaign"
	"gqlstream/group"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

const (
	groupShards   = 5
	groupWaitMax  = 2 * time.Minute // for anything that a test of a group waits for; the machine may be busy
	groupWorkers  = 2               // that live but for faults
	groupLogFault = 40              // faults in the life of one log
)

// groupConfig is crashConfig for a group.
var groupConfig = strings.Replace(crashConfig, "checkpoint: {every: 200ms}", "checkpoint: {every: 1s}", 1) + `
group: {shards: 5, copies: %d}
`

// groupRun is the life of one log that a group of workers follows.
type groupRun struct {
	crashRun
	nodes   *nodes
	js      jetstream.JetStream
	workers []*groupWorker
	times   recoveries
}

// groupWorker is a worker with links of its own to all servers.
type groupWorker struct {
	name, dir, said string
	links           []*link
	process         *exec.Cmd
	done            chan error
}

// newGroupRun starts a cluster of three servers.
func newGroupRun(t *testing.T, seed uint64, copies int, times recoveries) *groupRun {
	t.Helper()
	g := &groupRun{
		crashRun: crashRun{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 17)), pace: 40 * time.Millisecond},
		nodes:    startNodes(t), times: times,
	}
	g.config = filepath.Join(t.TempDir(), "gqlstream.yaml")
	g.output, g.alerts = filepath.Join(t.TempDir(), "estimates.ndjson"), filepath.Join(t.TempDir(), "alerts.ndjson")
	writeConfig(t, g.config, fmt.Sprintf(strings.Replace(groupConfig, "every: 300ms", "every: 300ms, alerts: "+g.alerts, 1), copies))
	g.nodes.open()
	g.js = g.nodes.js
	g.address = strings.TrimPrefix(g.url(), "nats://")
	t.Cleanup(g.close)
	return g
}

// close ends the processes that are left.
func (g *groupRun) close() {
	for _, w := range g.alive() {
		_ = w.process.Process.Kill()
		<-w.done
		w.process = nil
	}
	for _, w := range g.workers {
		for _, l := range w.links {
			l.close()
		}
	}
	g.nodes.close()
}

func (g *groupRun) url() string { return g.nodes.urls(func(n *node) string { return n.address }) }

// wait waits until something is true.
func (g *groupRun) wait(what string, is func() bool) {
	g.t.Helper()
	for begun := time.Now(); !is(); pause(g.t.Context(), 50*time.Millisecond) {
		for _, w := range g.alive() {
			g.running(w)
		}
		if time.Since(begun) > groupWaitMax {
			g.fail("seed %d: waited %v for %s", g.seed, groupWaitMax, what)
		}
	}
}

// fail ends the test with what the workers said, and where they stand.
func (g *groupRun) fail(format string, args ...any) {
	g.t.Helper()
	for _, w := range g.alive() {
		_ = w.process.Process.Signal(syscall.SIGQUIT)
		<-w.done
		w.process = nil
	}
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
	var urls []string
	for _, l := range w.links {
		urls = append(urls, "nats://"+l.address())
	}
	process := exec.Command(os.Args[0], "run", "--config", g.config, "--state", w.dir, "--nats", strings.Join(urls, ","), "--group", "g", "--worker", w.name, "--output", g.output)
	process.Env = append(os.Environ(), mainVariable+"=1")
	process.Stdout, process.Stderr = said, said
	g.must(process.Start())
	w.process, w.done = process, make(chan error, 1)
	go func(done chan<- error) { done <- process.Wait() }(w.done)
}

// add starts a new worker, whose disk is empty.
func (g *groupRun) add() *groupWorker {
	w := &groupWorker{name: fmt.Sprint("w", len(g.workers)), dir: g.t.TempDir()}
	w.said = filepath.Join(w.dir, "said")
	for _, n := range g.nodes.list {
		w.links = append(w.links, newLink(g.t, n.address))
	}
	g.workers = append(g.workers, w)
	g.start(w)
	return w
}

// kill ends a worker as a power cut would end it.
func (g *groupRun) kill(w *groupWorker) {
	g.t.Helper()
	g.running(w)
	_ = w.process.Process.Kill()
	<-w.done
	w.process = nil
}

// running fails the test if a worker has ended.
func (g *groupRun) running(w *groupWorker) {
	g.t.Helper()
	select {
	case err := <-w.done:
		w.process = nil
		g.fail("seed %d: worker %s ended by itself: %v", g.seed, w.name, err)
	default:
	}
}

// alive lists the workers that run.
func (g *groupRun) alive() []*groupWorker {
	return slices.DeleteFunc(slices.Clone(g.workers), func(w *groupWorker) bool { return w.process == nil })
}

// watermarks returns up to where each shard is complete.
func (g *groupRun) watermarks() []uint64 {
	all := make([]uint64, groupShards)
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
	g.awaitShards(ack.Sequence)
	want := g.undisturbed(g.js)
	records := 0
	for community, list := range want.records {
		want.records[community] = g.until(ack.Sequence, list)
		records += len(want.records[community])
	}
	want.alerts = g.until(ack.Sequence, want.alerts)
	for path, n := range map[string]int{g.output: records, g.alerts: len(want.alerts)} {
		g.wait(fmt.Sprintf("%d lines in %s", n, path), func() bool { return len(g.until(ack.Sequence, g.lines(path))) >= n })
	}
	for _, w := range g.alive() {
		g.running(w)
		g.must(w.process.Process.Signal(syscall.SIGTERM))
		if err := <-w.done; err != nil {
			g.fail("seed %d: worker %s: %v", g.seed, w.name, err)
		}
		w.process = nil
	}
	g.compareGroup(ack.Sequence, want)
}

func controlMessage(ops ...string) *nats.Msg {
	m := nats.NewMsg(broker.Subject("GQL", event.KindControl))
	m.Header.Set("Content-Type", "application/x-ndjson")
	for _, op := range ops {
		m.Data = append(m.Data, `{"op":"`+op+"\"}\n"...)
	}
	return m
}

// until leaves of JSON objects those up to a position: ticks may have come after it.
func (g *groupRun) until(position uint64, list []string) []string {
	return slices.DeleteFunc(list, func(object string) bool {
		var e struct{ Position uint64 }
		g.must(json.Unmarshal([]byte(object), &e))
		return e.Position > position
	})
}

// lines returns what is in a file, but for a line that is being written.
func (g *groupRun) lines(path string) (list []string) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		g.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if text, whole := strings.CutSuffix(line, "\n"); whole {
			list = append(list, text)
		}
	}
	return list
}

// compareGroup holds records, alerts and refusals against those of a twin, up to a position.
func (g *groupRun) compareGroup(until uint64, want twin) {
	g.report.positions = int(until)
	g.compareLog(g.js, broker.DefaultStreamNames().Log)
	for _, list := range [][]string{g.stored("GQL_ESTIMATES", "gqlest.estimate.>"), g.lines(g.output)} {
		got := map[string][]string{}
		list = g.until(until, list)
		for _, record := range list {
			var e struct{ Community string }
			g.must(json.Unmarshal([]byte(record), &e))
			got[e.Community] = append(got[e.Community], record)
		}
		g.report.records = len(list)
		g.compareSequences(got, want)
	}
	for what, list := range map[string][]string{"stream of alerts": g.stored("GQL_ALERTS", "gqlest.alert.>"), "file of alerts": g.lines(g.alerts)} {
		list = g.until(until, list)
		g.report.alerts = len(list)
		g.compareLists(what, list, want.alerts)
	}
	g.compareQuarantine(g.js, broker.DefaultStreamNames(), want)
	if g.report.different > 0 {
		g.fail("seed %d: %d differences", g.seed, g.report.different)
	}
}

// stored returns what is in a stream, in the order in which it was stored.
func (g *groupRun) stored(name, subjects string) (all []string) {
	ctx, cancel := context.WithTimeout(g.t.Context(), groupWaitMax)
	defer cancel()
	stream, err := g.js.Stream(ctx, name)
	g.must(err)
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subjects}})
	g.must(err)
	info, err := consumer.Info(ctx)
	g.must(err)
	messages, err := consumer.Messages()
	g.must(err)
	defer messages.Stop()
	for range info.NumPending {
		m, err := messages.Next(jetstream.NextContext(ctx))
		g.must(err)
		all = append(all, string(m.Data()))
	}
	return all
}

// groupFault is what happens to a group, and whether others must take its work over before
// it is undone.
type groupFault struct {
	name   string
	strike func(*groupRun) (undo func())
}

// groupFaults are in the order in which the short form of the campaign has them.
var groupFaults = []groupFault{
	{"a worker killed", (*groupRun).killWorker},
	{"a worker drained", (*groupRun).drainWorker},
	{"a worker with an empty disk joins, another is killed", (*groupRun).replaceWorker},
	{"a worker silent for 10 s", (*groupRun).stopWorker},
	{"leader of the estimates killed", func(g *groupRun) func() { return g.killLeader(estimatesName) }},
	{"a worker cut off", (*groupRun).cutWorker},
	{"leader of the log killed", func(g *groupRun) func() { return g.killLeader(logName) }},
	{"leader of the estimates silent for 10 s", (*groupRun).stopLeader},
}

const (
	groupFaultsShort = 3
	groupSilence     = 10 * time.Second
)

// However many workers there are, and whatever happens to them and to the servers, a group
// must publish the records and alerts that one core makes of the log, once.
// GQLSTREAM_GROUP_FAULTS sets how many faults there are; every second log has copies: 2.
func TestGroupPublishesWhatOneWorkerDoes(t *testing.T) {
	count := campaign.Size(t, "GQLSTREAM_GROUP_FAULTS", groupFaultsShort)
	seed := campaign.Seed(t, 1)
	times := recoveries{}
	for done := 0; done < count; seed++ {
		n := min(count-done, groupLogFault)
		g := newGroupRun(t, seed, 1+int(seed%2), times)
		g.campaign(done, n)
		g.close()
		done += n
		t.Logf("seed %d, %d faults, %d workers: %v", seed, n, len(g.workers), g.report)
		t.Logf("%d faults so far, seconds until published again:\n%v", done, times)
	}
}

// campaign strikes the faults from the one of a number on.
func (g *groupRun) campaign(first, n int) {
	for range groupWorkers {
		g.add()
	}
	g.wait("the first estimates", func() bool { return slices.Max(g.watermarks()) > 0 })
	producer := startProducer(g.t.Context(), &g.crashRun)
	for i := range n {
		g.wait("all workers to have shards", func() bool { return g.shares() == len(g.alive()) })
		pause(g.t.Context(), time.Duration(g.rand.Int64N(int64(time.Second))))
		f := groupFaults[(first+i)%len(groupFaults)]
		begun := time.Now()
		undo := f.strike(g)
		stored := producer.stored.Load()
		g.wait("the producer to go on after: "+f.name, func() bool { return producer.stored.Load() > stored+pendingOfProducer })
		acknowledged := time.Since(begun)
		end := g.end()
		g.awaitShards(end)
		g.times.add(f.name, time.Since(begun), acknowledged)
		undo()
	}
	living := g.alive()[0].name
	g.wait("the list of the group to name a worker and its shards", func() bool {
		out, _ := mustRun(g.t, "group", "g", "--nats", g.url())
		return strings.Contains(out, living) && strings.Contains(out, "\n4 ") && strings.Contains(out, "PUBLISHED BY")
	})
	g.finish(producer)
}

// end returns the last position of the log.
func (g *groupRun) end() (last uint64) {
	g.wait("the log to answer", func() bool {
		s, err := g.js.Stream(g.t.Context(), logName)
		if err == nil {
			last = s.CachedInfo().State.LastSeq
		}
		return err == nil
	})
	return last
}

// awaitShards waits until all shards are complete up to a position.
func (g *groupRun) awaitShards(position uint64) {
	g.t.Helper()
	g.wait(fmt.Sprint("all shards up to ", position), func() bool { return slices.Min(g.watermarks()) >= position })
}

// shares returns how many workers say that they estimate shards.
func (g *groupRun) shares() (n int) {
	live, err := group.List(g.t.Context(), g.js, group.Bucket("", "g"))
	if err != nil {
		return 0
	}
	for _, p := range live {
		if len(p.Shards) > 0 && !p.Drains {
			n++
		}
	}
	return n
}

// any returns one of the workers that run.
func (g *groupRun) any() *groupWorker {
	alive := g.alive()
	return alive[g.rand.IntN(len(alive))]
}

func (g *groupRun) killWorker() func() {
	w := g.any()
	g.kill(w)
	return func() { g.start(w) }
}

func (g *groupRun) replaceWorker() func() {
	w := g.any()
	g.add()
	g.wait("the new worker to have shards", func() bool { return g.shares() == len(g.alive()) })
	g.kill(w)
	return func() {}
}

func (g *groupRun) drainWorker() func() {
	w := g.any()
	mustRun(g.t, "group", "g", "drain", w.name, "--nats", g.url())
	select {
	case err := <-w.done:
		if err != nil {
			g.fail("seed %d: worker %s that was drained: %v", g.seed, w.name, err)
		}
		w.process = nil
	case <-time.After(groupWaitMax):
		g.fail("seed %d: worker %s does not end", g.seed, w.name)
	}
	return func() { g.start(w) }
}

// forAWhile undoes a fault when groupSilence is over, whether or not others have recovered.
func (g *groupRun) forAWhile(undo func()) func() {
	undone := make(chan struct{})
	go func() {
		defer close(undone)
		pause(g.t.Context(), groupSilence)
		undo()
	}()
	return func() { <-undone }
}

func (g *groupRun) stopWorker() func() {
	w := g.any()
	g.running(w)
	process := w.process.Process
	g.must(process.Signal(syscall.SIGSTOP))
	return g.forAWhile(func() { _ = process.Signal(syscall.SIGCONT) })
}

func (g *groupRun) cutWorker() func() {
	w := g.any()
	for _, l := range w.links {
		l.cut()
	}
	return g.forAWhile(func() {
		for _, l := range w.links {
			l.mend()
		}
	})
}

func (g *groupRun) killLeader(stream string) func() {
	n := g.nodes.list[g.nodes.leader(stream)]
	n.kill()
	return func() { n.start(g.t) }
}

func (g *groupRun) stopLeader() func() {
	n := g.nodes.list[g.nodes.leader(estimatesName)]
	n.stop()
	return g.forAWhile(n.resume)
}
