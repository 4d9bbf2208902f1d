//go:build unix && !race

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
	"gqlstream/pipeline/group"
)

const (
	groupShards = 8
	// for anything that a test of a group waits for; the machine may be busy
	groupWaitMax  = 5 * time.Minute
	groupWorkers  = 2  // that live but for faults, in the short form
	groupLogFault = 56 // faults in the life of one log: two rounds of them
)

// groupConfig is crashConfig for a group.
var groupConfig = strings.NewReplacer(
	"checkpoint: {every: 200ms}", "checkpoint: {every: 1s}",
	crashStep, "step: {every: 100ms, emit_every: 100ms}",
).
	Replace(crashConfig) +
	`
group: {shards: 8, copies: %d}
`

// groupRun is the life of one log that a group of workers follows.
type groupRun struct {
	crashRun
	nodes    *nodes
	js       jetstream.JetStream
	workers  []*groupWorker
	producer *producer
	copies   int
	times    recoveries
	last     string         // the last fault
	begun    time.Time      // when it did
	pending  sync.WaitGroup // faults that are not undone yet
	ill      atomic.Int32   // servers that are silent or cut off
}

// groupWorker is a worker with links of its own to all servers.
type groupWorker struct {
	name, dir, said string
	links           []*link
	process         *exec.Cmd
	done            chan error
	since           time.Time   // when its process was started
	away            atomic.Bool // silent or cut off
}

// newGroupRun starts a cluster of three servers.
func newGroupRun(t *testing.T, seed uint64, copies int, times recoveries) *groupRun {
	t.Helper()
	g := &groupRun{
		crashRun: crashRun{
			t:    t,
			seed: seed,
			rand: rand.New(rand.NewPCG(seed, 17)),
			pace: 40 * time.Millisecond,
		},
		nodes: startNodes(t), copies: copies, times: times,
	}
	g.config = filepath.Join(t.TempDir(), "gqlstream.yaml")
	g.output, g.alerts = filepath.Join(t.TempDir(), "estimates.ndjson"), filepath.Join(
		t.TempDir(),
		"alerts.ndjson",
	)
	testfile.Write(
		t,
		g.config,
		fmt.Sprintf(
			strings.Replace(groupConfig, "every: 300ms", "every: 300ms, alerts: "+g.alerts, 1),
			copies,
		),
	)
	g.nodes.open()
	g.js = g.nodes.js
	g.address = strings.TrimPrefix(g.nodes.urls((*node).doorAddress), "nats://")
	t.Cleanup(g.close)
	return g
}

func (w *groupWorker) String() string { return w.name }

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

// await returns the next value of a channel.
func await[T any](g *groupRun, what string, from <-chan T) (v T) {
	g.t.Helper()
	select {
	case v = <-from:
	case <-time.After(groupWaitMax):
		g.fail("seed %d: waited %v for %s", g.seed, groupWaitMax, what)
	}
	return v
}

// ended waits until a worker has ended, without an error, after something.
func (g *groupRun) ended(w *groupWorker, after string) {
	g.t.Helper()
	err := await(g, fmt.Sprintf("worker %s to end after %s", w.name, after), w.done)
	if w.process = nil; err != nil {
		g.fail("seed %d: worker %s ended after %s: %v", g.seed, w.name, after, err)
	}
}

// fail ends the test with the output and the positions of the workers.
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
	process := exec.Command(
		os.Args[0], "run", "--config", g.config, "--state", w.dir, "--nats",
		strings.Join(urls, ","), "--group", "g", "--worker", w.name, "--output", g.output,
	)
	process.Env = append(os.Environ(), mainVariable+"=1")
	process.Stdout, process.Stderr = said, said
	w.since = time.Now()
	g.must(process.Start())
	w.process, w.done = process, make(chan error, 1)
	go func(done chan<- error) { done <- process.Wait(); close(done) }(w.done)
}

// add starts a new worker with an empty disk.
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
	g.begun = time.Now()
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
	return slices.DeleteFunc(
		slices.Clone(g.workers),
		func(w *groupWorker) bool { return w.process == nil },
	)
}

// watermarks returns up to where each shard is complete.
func (g *groupRun) watermarks() []uint64 {
	ctx, cancel := context.WithTimeout(
		g.t.Context(),
		time.Second,
	) // a cluster that elects says nothing
	defer cancel()
	all := make([]uint64, groupShards)
	stream, err := g.js.Stream(ctx, "GQL_ESTIMATES")
	if err != nil {
		return all
	}
	stream.CachedInfo().Config.AllowDirect = false
	for shard := range all {
		m, err := stream.GetLastMsgForSubject(ctx, defaultNames().MarkSubject(shard))
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
		g.report.messages = await(g, "the producer to have stored everything", producer.sent)
	}
	ack, err := g.js.PublishMsg(g.t.Context(), controlMessage("flush", "checkpoint"))
	g.must(err)
	g.awaitShards(ack.Sequence)
	want := g.undisturbed(g.js)
	for community, list := range want.records {
		want.records[community] = g.until(ack.Sequence, list)
	}
	want.lines = g.until(ack.Sequence, want.lines)
	want.alerts = g.until(ack.Sequence, want.alerts)
	want.history = g.rolledUp(g.js, twinNames, ack.Sequence)
	for path, n := range map[string]int{g.output: len(want.lines), g.alerts: len(want.alerts)} {
		g.wait(
			fmt.Sprintf("%d lines in %s", n, path),
			func() bool { return len(g.until(ack.Sequence, g.lines(path))) >= n },
		)
	}
	g.wait("the roll-ups", func() bool {
		return len(g.rolledUp(g.js, defaultNames(), ack.Sequence)) >= len(want.history)
	})
	for _, w := range g.alive() {
		g.running(w)
		g.must(w.process.Process.Signal(syscall.SIGTERM))
		g.ended(w, "SIGTERM")
	}
	g.compareLog(g.js, broker.DefaultStreamNames().Log)
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

// A group must be listed although its servers elect when they are asked: the command asks again.
func TestAGroupIsListedWhenServersHaveElected(t *testing.T) {
	c := startNodes(t)
	c.open()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	member, err := group.Join(t.Context(), group.Config{
		JS: c.js, Bucket: group.Bucket("", "g"), Replicas: len(c.list),
		Log: slog.New(slog.DiscardHandler), Self: group.Presence{
			Worker: "w",
			Since:  time.Now(),
		},
	})
	must(err)
	defer func() { _ = member.Leave() }()
	for _, name := range []string{logName, estimatesName} {
		_, err := c.js.CreateStream(
			t.Context(),
			jetstream.StreamConfig{Name: name, Replicas: len(c.list)},
		)
		must(err)
	}
	leader := c.leader("KV_" + group.Bucket("", "g"))
	asked := c.list[(leader+1)%len(c.list)]
	silent := []*node{c.list[leader], c.list[(leader+2)%len(c.list)]}
	for _, n := range silent {
		n.stop()
	}
	said, read := make(chan string, 1000), &strings.Builder{}
	ended := make(chan int, 1)
	go func() {
		ended <- execute(t.Context(), []string{"group", "g", "--nats", "nats://" + asked.address},
			console{In: strings.NewReader(""), Out: read, Err: writerTo(said)})
	}()
	g := &groupRun{crashRun: crashRun{t: t}}
	for !strings.Contains(await(g, "the command to ask again", said), "trying again") {
	}
	for _, n := range silent {
		n.resume()
	}
	if code := await(g, "the list", ended); code != exitFine ||
		!strings.Contains(read.String(), "PUBLISHED BY") {
		close(said)
		for line := range said {
			t.Log(line)
		}
		t.Errorf("exit %d\n%s", code, read)
	}
}

// writerTo sends the written text to a channel.
type writerTo chan string

func (w writerTo) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// until leaves of JSON objects those up to a position: ticks may have come after it.
func (g *groupRun) until(position uint64, list []string) []string {
	return slices.DeleteFunc(list, func(object string) bool {
		var e struct{ Position uint64 }
		g.must(json.Unmarshal([]byte(object), &e))
		return e.Position > position
	})
}

// lines returns the complete lines of a file.
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
	got := map[string][]string{}
	list := g.until(until, g.stored("GQL_ESTIMATES", "gqlest.estimate."))
	for _, record := range list {
		var e struct{ Community string }
		g.must(json.Unmarshal([]byte(record), &e))
		got[e.Community] = append(got[e.Community], record)
	}
	g.report.records = len(list)
	g.compareSequences(got, want)
	g.compareLists(
		"file of estimates",
		g.until(until, g.lines(g.output)),
		g.until(until, want.lines),
	)
	for what, list := range map[string][]string{"stream of alerts": g.stored("GQL_ALERTS",
		"gqlest.alert."), "file of alerts": g.lines(g.alerts)} {
		if g.alerts == "" {
			break
		}
		list = g.until(until, list)
		g.report.alerts = len(list)
		g.compareLists(what, list, want.alerts)
	}
	history := g.rolledUp(g.js, defaultNames(), until)
	g.report.rollups = len(history)
	g.compareLists("stream of history", history, want.history)
	g.compareQuarantine(g.js, broker.DefaultStreamNames(), want)
	if g.report.different > 0 {
		g.fail("seed %d: %d differences", g.seed, g.report.different)
	}
}

// stored returns the messages of a stream below a subject, in the order of storage.
func (g *groupRun) stored(name, subject string) (all []string) {
	g.eachMessage(g.js, name, func(m jetstream.Msg) {
		if strings.HasPrefix(m.Subject(), subject) {
			all = append(all, string(m.Data()))
		}
	})
	return all
}

// groupFault is a fault of a group. strike returns a function that is run when the others
// have recovered.
type groupFault struct {
	name   string
	times  int  // in a round of the campaign
	shaken bool // needs all servers to answer
	strike func(*groupRun) (undo func())
}

// The short form of the campaign strikes with the faults in this order.
var groupFaults = []groupFault{
	{"a worker killed", 7, false, (*groupRun).killWorker},
	{"a worker drained", 2, true, (*groupRun).drainWorker},
	{"a worker with an empty disk joins, another is killed", 2, true, (*groupRun).replaceWorker},
	{"a worker reads its configuration again", 1, true, (*groupRun).reloadWorker},
	{"two workers killed at once", 4, false, (*groupRun).killTwo},
	{"a worker silent for 10 s", 5, false, (*groupRun).stopWorker},
	{"a worker cut off for 10 s", 2, false, (*groupRun).cutWorker},
	{
		"leader of the estimates killed",
		2,
		true,
		func(g *groupRun) func() { return g.killLeader(estimatesName) },
	},
	{
		"leader of the log killed",
		1,
		true,
		func(g *groupRun) func() { return g.killLeader(logName) },
	},
	{
		"leader of the estimates cut off for 10 s, with half of the workers",
		1,
		true,
		(*groupRun).cutLeader,
	},
	{"leader of the estimates silent for 10 s", 1, true, (*groupRun).stopLeader},
}

const (
	groupFaultsShort = 4
	groupSilence     = 10 * time.Second
	groupSlow        = 5 * time.Second // after which a recovery is looked at
)

// groupRound lists the faults of a round: one of each, and then the others at random.
func groupRound(random *rand.Rand) (round []groupFault) {
	var more []groupFault
	for _, f := range groupFaults {
		round = append(round, f)
		more = append(more, slices.Repeat([]groupFault{f}, f.times-1)...)
	}
	random.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	return append(round, more...)
}

// However many workers a group has, and whatever happens to them and to the servers, the
// group must publish the records and alerts of a single core over the log, once. Lasting
// faults overlap with others. GQLSTREAM_GROUP_FAULTS sets the number of faults; every
// second log has copies: 2.
func TestGroupPublishesTheRecordsOfOneWorker(t *testing.T) {
	count := campaign.Size(t, "GQLSTREAM_GROUP_FAULTS", groupFaultsShort)
	seed := campaign.Seed(t, 1)
	times := recoveries{}
	for done := 0; done < count; seed++ {
		n := min(count-done, groupLogFault)
		g := newGroupRun(t, seed, 1+int(seed%2), times)
		workers := groupWorkers
		if count > groupFaultsShort {
			workers *= 2
		}
		g.campaign(workers, n)
		g.close()
		done += n
		t.Logf("seed %d, %d faults, %d workers: %v", seed, n, len(g.workers), g.report)
		t.Logf("%d faults so far, seconds until published again:\n%v", done, times)
	}
}

// campaign strikes faults under a number of workers.
func (g *groupRun) campaign(workers, n int) {
	for range workers {
		g.add()
	}
	g.wait("the first estimates", func() bool { return slices.Max(g.watermarks()) > 0 })
	g.producer = startProducer(g.t.Context(), &g.crashRun)
	var round []groupFault
	for i := range n {
		if len(round) == 0 {
			round = groupRound(g.rand)
		}
		g.suffer(round[0])
		g.t.Logf("seed %d: fault %d of %d: %v", g.seed, i+1, n, g.last)
		round = round[1:]
	}
	g.pending.Wait()
	living := g.alive()[0].name
	g.wait("the list of the group to name a worker and its shards", func() bool {
		code, out, _ := runCommand("group", "g", "--nats", g.url())
		return code == exitFine && strings.Contains(out, living) && strings.Contains(out, "\n7 ") &&
			strings.Contains(out, "PUBLISHED BY")
	})
	g.finish(g.producer)
}

// beforeHeld holds the producer after recoveryPatience, until the returned function is called.
func (g *groupRun) beforeHeld() (release func()) {
	hold := time.AfterFunc(recoveryPatience, func() { g.producer.held.Store(true) })
	return func() {
		hold.Stop()
		g.producer.held.Store(false)
	}
}

// suffer strikes a fault and waits until everything is published that was in the log then.
func (g *groupRun) suffer(f groupFault) {
	defer g.beforeHeld()()
	g.wait("all shards to be estimated by as many as shall", func() bool { return g.covered() })
	if f.shaken {
		g.wait("servers that answer", func() bool { return g.ill.Load() == 0 })
	}
	pause(g.t.Context(), time.Duration(g.rand.Int64N(int64(500*time.Millisecond))))
	g.begun = time.Now()
	undo := f.strike(g)
	position := g.note(f.name)
	g.wait("the estimates to have a leader", func() bool {
		ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
		defer cancel()
		_, err := g.js.Stream(ctx, estimatesName)
		return err == nil
	})
	acknowledged := time.Since(g.begun)
	g.awaitShards(position)
	g.last = fmt.Sprintf(
		"%s, copies %d: %.1f s, the cluster %.1f s", f.name, g.copies,
		time.Since(g.begun).Seconds(), acknowledged.Seconds(),
	)
	g.times.add(fmt.Sprintf("%s, copies: %d", f.name, g.copies), time.Since(g.begun), acknowledged)
	undo()
}

// note publishes a message that every shard answers with a mark, as soon as the cluster
// takes it.
func (g *groupRun) note(text string) (position uint64) {
	m := controlMessage("note")
	m.Data = fmt.Appendf(nil, `{"op":"note","text":%q}`, text)
	m.Header.Set(jetstream.MsgIDHeader, fmt.Sprint("note ", g.begun))
	g.wait("the log to take a note of: "+text, func() bool {
		ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
		defer cancel()
		ack, err := g.js.PublishMsg(ctx, m)
		if err == nil {
			position = ack.Sequence
		}
		return err == nil
	})
	return position
}

// awaitShards waits until all shards are complete up to a position.
func (g *groupRun) awaitShards(position uint64) {
	g.t.Helper()
	begun := time.Now()
	said := begun
	g.wait(fmt.Sprint("all shards up to ", position), func() bool {
		marks := g.watermarks()
		if time.Since(said) > groupSlow {
			said = time.Now()
			g.t.Logf(
				"after %v up to %v of %d; shards by worker: %v",
				time.Since(begun).Round(time.Second), marks, position, g.serving(),
			)
		}
		return slices.Min(marks) >= position
	})
}

// serving returns the shards of the workers that run, are heard of, and say that they have any.
func (g *groupRun) serving() map[*groupWorker][]int {
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
	defer cancel()
	live, err := group.List(ctx, g.js, group.Bucket("", "g"))
	if err != nil {
		return nil
	}
	list := map[*groupWorker][]int{}
	for _, w := range g.alive() {
		for _, p := range live {
			if p.Worker == w.name && len(p.Shards) > 0 && !p.Drains && !w.away.Load() &&
				p.Since.After(w.since) {
				list[w] = p.Shards
			}
		}
	}
	return list
}

// covered reports whether each shard is estimated by as many workers as the configuration
// says, and one of them can be missed.
func (g *groupRun) covered() bool {
	serving := g.serving()
	times := make([]int, groupShards)
	for _, shards := range serving {
		for _, shard := range shards {
			times[shard]++
		}
	}
	return len(serving) > 1 && slices.Min(times) >= g.copies
}

// any returns one of the workers that have shards.
func (g *groupRun) any() (w *groupWorker) {
	g.wait("a worker with shards", func() bool {
		serving := g.serving()
		if len(serving) > 1 {
			list := slices.SortedFunc(
				maps.Keys(serving),
				func(a, b *groupWorker) int { return strings.Compare(a.name, b.name) },
			)
			w = list[g.rand.IntN(len(list))]
		}
		return w != nil
	})
	return w
}

func (g *groupRun) killWorker() func() {
	w := g.any()
	g.kill(w)
	return func() { g.start(w) }
}

// killTwo ends two workers, if there are three.
func (g *groupRun) killTwo() func() {
	again := []func(){g.killWorker()}
	for w := range g.serving() {
		if begun := g.begun; len(again) == 1 && w.process != nil && len(g.alive()) > 1 {
			g.kill(w)
			again, g.begun = append(again, func() { g.start(w) }), begun
		}
	}
	return func() {
		for _, start := range again {
			start()
		}
	}
}

func (g *groupRun) replaceWorker() func() {
	w, added := g.any(), g.add()
	g.wait("the new worker to follow the log", func() bool {
		live, err := group.List(g.t.Context(), g.js, group.Bucket("", "g"))
		return err == nil &&
			slices.ContainsFunc(
				live,
				func(p group.Presence) bool { return p.Worker == added.name && p.Position > 0 },
			)
	})
	g.kill(w)
	return func() {}
}

func (g *groupRun) drainWorker() func() {
	w := g.any()
	drained := make(chan string, 1)
	go func() {
		code, out, diagnostics := runCommand("group", "g", "drain", w.name, "--nats", g.url())
		drained <- fmt.Sprint("exit ", code, "\n", out, diagnostics)
	}()
	g.ended(w, "a drain")
	if said := await(g, "the command that drains to end", drained); !strings.HasPrefix(
		said,
		"exit 0\n",
	) {
		g.fail("seed %d: a drain of %s: %s", g.seed, w.name, said)
	}
	return func() { g.start(w) }
}

// forAWhile undoes a fault when groupSilence is over, whether or not others have recovered, and
// does not wait for that.
func (g *groupRun) forAWhile(undo func()) func() {
	g.pending.Go(func() {
		pause(g.t.Context(), groupSilence)
		undo()
	})
	return func() {}
}

// reloadWorker lets a worker leave the group and join it again, in one process.
func (g *groupRun) reloadWorker() func() {
	w := g.any()
	again := func() int {
		text, err := os.ReadFile(w.said)
		g.must(err)
		return strings.Count(string(text), "the configuration has been read again")
	}
	before := again()
	g.must(w.process.Process.Signal(syscall.SIGHUP))
	g.wait("worker "+w.name+" to read its configuration", func() bool { return again() > before })
	return func() {}
}

func (g *groupRun) stopWorker() func() {
	w := g.any()
	w.away.Store(true)
	process := w.process.Process
	g.must(process.Signal(syscall.SIGSTOP))
	return g.forAWhile(func() {
		_ = process.Signal(syscall.SIGCONT)
		w.away.Store(false)
	})
}

func (g *groupRun) cutWorker() func() {
	w := g.any()
	w.away.Store(true)
	for _, l := range w.links {
		l.cut()
	}
	return g.forAWhile(func() {
		for _, l := range w.links {
			l.mend()
		}
		w.away.Store(false)
	})
}

func (g *groupRun) killLeader(stream string) func() {
	n := g.nodes.list[g.nodes.leader(stream)]
	n.kill()
	return func() { n.start(g.t) }
}

func (g *groupRun) stopLeader() func() {
	n := g.nodes.list[g.nodes.leader(estimatesName)]
	g.ill.Add(1)
	n.stop()
	return g.forAWhile(func() { n.resume(); g.ill.Add(-1) })
}

// cutLeader cuts the leader off from the other servers, and half of the workers from it: the
// others can talk to it, and must find out that it decides nothing any more.
func (g *groupRun) cutLeader() func() {
	i := g.nodes.leader(estimatesName)
	g.ill.Add(1)
	mend := g.nodes.isolate(i)
	var cut []*link
	for j, w := range g.workers {
		if j%2 == 0 && !w.away.Load() {
			cut = append(cut, w.links[i])
			w.links[i].cut()
		}
	}
	return g.forAWhile(func() {
		mend()
		for _, l := range cut {
			l.mend()
		}
		g.ill.Add(-1)
	})
}
