//go:build unix && !race

// Every part of the campaigns below is a process, which the race detector does not see.

package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gqlstream/ingest/broker"
	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
	"gqlstream/sinks"
)

// A fault of the cluster or of the run. Each returns when its effect is undone, or is sure
// to be. The campaign then waits until the estimates of all events in the log are
// published.
type fault struct {
	name   string
	strike func(*clusterRun)
}

// The short form of the campaign strikes with the faults in this order.
var faults = []fault{
	{"leader of the log killed", func(r *clusterRun) { r.killNode(r.nodes.leader(logName)) }},
	{"run killed", (*clusterRun).killRun},
	{"link cut without a word", (*clusterRun).cutLink},
	{"a copy lags, then the leader is killed", (*clusterRun).lagCopy},
	{
		"leader of the estimates stopped",
		func(r *clusterRun) { r.stopNode(r.nodes.leader(estimatesName)) },
	},
	{
		"leader of the estimates killed",
		func(r *clusterRun) { r.killNode(r.nodes.leader(estimatesName)) },
	},
	{"leader of the log stopped", func(r *clusterRun) { r.stopNode(r.nodes.leader(logName)) }},
	{"run stopped", (*clusterRun).stopRun},
	{"all three servers killed", (*clusterRun).killAll},
	{
		"run and leader of the log killed",
		func(r *clusterRun) { r.killRun(); r.killNode(r.nodes.leader(logName)) },
	},
	{"leader of the estimates cut off from the others", (*clusterRun).cutLeader},
}

// clockFaults need tests that were built with a clock that can be bent.
var clockFaults = []fault{
	{"clock of the log's leader an hour ahead", func(r *clusterRun) { r.bendServer(3600) }},
	{"clock of the log's leader an hour behind", func(r *clusterRun) { r.bendServer(-3600) }},
	{"clock of the run an hour ahead", func(r *clusterRun) { r.bendRun(3600) }},
	{"clock of the run an hour behind", func(r *clusterRun) { r.bendRun(-3600) }},
	{"clock of the log's leader an hour ahead, then it is killed", func(r *clusterRun) {
		i := r.nodes.leader(logName)
		bend(r.t, r.nodes.list[i].clock, 3600)
		pause(r.t.Context(), r.length())
		r.nodes.list[i].kill()
		bend(r.t, r.nodes.list[i].clock, 0)
		r.nodes.list[i].start(r.t)
	}},
}

const (
	faultsOfLog = 32 // faults in the life of one log: two rounds of all kinds
	// faultRecovered bounds the time until the run publishes again after a fault, on a busy machine
	faultRecovered = 5 * time.Minute
	faultLengthMax = 4 * time.Second // of a stop or a lag
)

// In a cluster of three servers under faults of all kinds, every acknowledged event must be in the
// log once, and the run must publish the records of an undisturbed run. GQLSTREAM_FAULTS sets the
// number of faults (make faults: 300). GQLSTREAM_CLOCKS=1 adds wrong clocks.
func TestClusterFaultsLoseAndRepeatNothing(t *testing.T) {
	count := campaign.Size(t, "GQLSTREAM_FAULTS", 3)
	seed := campaign.Seed(t, 1)
	times := recoveries{}
	if campaign.Size(t, "GQLSTREAM_CLOCKS", 0) > 0 {
		requireBentClock(t)
		faults = append(faults, clockFaults...)
	}
	for done := 0; done < count; seed++ {
		n := min(count-done, faultsOfLog)
		r := newClusterRun(t, seed, times)
		r.campaign(done, n)
		r.compare()
		done += n
		t.Logf(
			"seed %d, %d faults: %d messages, %d positions, %d estimates, %d refusals, %d "+
				"starts, %d differences",
			seed,
			n,
			r.report.messages,
			r.report.positions,
			r.report.records,
			r.report.refused,
			r.starts,
			r.report.different,
		)
		r.close()
		t.Logf("%d faults so far, seconds until published again:\n%v", done, times)
	}
}

// requireBentClock fails a test if the clock of its binary cannot be bent.
func requireBentClock(t *testing.T) {
	t.Helper()
	clock := filepath.Join(t.TempDir(), "clock")
	bend(t, clock, 3600)
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), nowVariable+"=1", clockVariable+"="+clock)
	said, err := process.Output()
	if err != nil {
		t.Fatal(err)
	}
	if now, err := strconv.ParseInt(strings.TrimSpace(string(said)), 10, 64); err != nil ||
		now < time.Now().Unix()+3000 {
		t.Fatalf(
			"the clock of this build cannot be bent (%s): go test -overlay, with what "+
				".ci/bent-clock makes",
			said,
		)
	}
}

// clusterRun is the life of one log on a cluster.
type clusterRun struct {
	*crashRun
	nodes  *nodes
	times  recoveries
	clock  string // as that of a node
	starts int
	tries  int // to start since the last fault
}

func newClusterRun(t *testing.T, seed uint64, times recoveries) *clusterRun {
	t.Helper()
	r := outageRun(t, seed)
	r.rand, r.pace = rand.New(rand.NewPCG(seed, 41)), 40*time.Millisecond
	testfile.Write(
		t,
		r.config,
		strings.Replace(crashConfig, crashStep, "step: {every: 50ms, emit_every: 50ms}", 1),
	)
	c := &clusterRun{
		crashRun: r,
		nodes:    startNodes(t),
		times:    times,
		clock:    filepath.Join(t.TempDir(), "clock"),
	}
	bend(t, c.clock, 0)
	c.nodes.open()
	t.Cleanup(c.close)
	return c
}

// close ends the processes that are left.
func (r *clusterRun) close() {
	if r.process != nil {
		_ = r.process.Process.Kill()
		<-r.done
		r.process = nil
	}
	r.nodes.close()
}

// start starts the run, through the links.
func (r *clusterRun) start(args ...string) {
	r.t.Helper()
	var err error
	if r.stderr, err = os.OpenFile(filepath.Join(filepath.Dir(r.config), "stderr"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		r.t.Fatal(err)
	}
	process := exec.Command(os.Args[0], append([]string{
		"run", "--config", r.config, "--state", r.dir, "--output", r.output,
		"--nats", r.nodes.urls(func(n *node) string { return n.link.address() }),
	}, args...)...)
	process.Env = append(os.Environ(), mainVariable+"=1", clockVariable+"="+r.clock)
	process.Stdout, process.Stderr = r.stderr, r.stderr
	if err := process.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.stderr.Close()
	r.starts++
	r.process, r.done = process, make(chan error, 1)
	go func(done chan<- error) { done <- process.Wait(); close(done) }(r.done)
}

// startsMax is how often a run may be started after a fault: one that begins while the
// cluster elects may end with a message, and a service manager starts it again.
const startsMax = 5

// revive starts the run again if it was killed or could not start.
func (r *clusterRun) revive() {
	r.t.Helper()
	select {
	case err := <-r.done:
		r.process = nil
		if r.tries++; r.tries > startsMax ||
			!strings.Contains(lastLine(r.said()), "context deadline exceeded") &&
				!strings.Contains(lastLine(r.said()), "10008") {
			r.t.Fatalf("seed %d: the run ended by itself: %v\n%s", r.seed, err, r.said())
		}
		r.start()
	default:
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// campaign strikes the faults from the one of a number on.
func (r *clusterRun) campaign(first, n int) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Duration(n)*faultRecovered)
	defer cancel()
	r.start()
	r.await(ctx, 1)
	r.address = strings.TrimPrefix(r.nodes.urls((*node).doorAddress), "nats://")
	producer := startProducer(ctx, r.crashRun)
	for i := range n {
		pause(ctx, time.Duration(r.rand.Int64N(int64(time.Second))))
		f := faults[(first+i)%len(faults)]
		begun := time.Now()
		over, cluster := make(chan struct{}), make(chan time.Duration, 1)
		go func() { cluster <- r.watchCluster(ctx, producer, over).Sub(begun) }()
		r.tries = 0
		f.strike(r)
		breath := time.AfterFunc(recoveryPatience, func() { producer.held.Store(true) })
		r.await(ctx, r.end(ctx)+1) // of something that was stored when the fault was over
		published := time.Since(begun)
		breath.Stop()
		producer.held.Store(false)
		close(over)
		ready := <-cluster
		r.times.add(f.name, published, ready)
		r.t.Logf(
			"seed %d: fault %d of %d: %s: %.1f s, the cluster %.1f s, load %s", r.seed, i+1, n,
			f.name, published.Seconds(), ready.Seconds(), machineLoad(),
		)
		if published-ready > recoveryMax {
			r.t.Logf(
				"seed %d: the run came late; it said:\n%s",
				r.seed,
				lastLines(r.said(), "msg=alert"),
			)
		}
	}
	r.report.messages = producer.finish(r.crashRun)
	r.await(ctx, r.end(ctx))
	r.drain()
}

// drain ends the run and lets another one publish what is left.
func (r *clusterRun) drain() {
	r.t.Helper()
	_ = r.process.Process.Kill()
	<-r.done
	for tries := 0; ; tries++ {
		r.start("--exit-when-drained")
		if err := <-r.done; err == nil {
			break
		} else if tries == startsMax {
			r.t.Fatalf("seed %d: draining: %v\n%s", r.seed, err, r.said())
		}
	}
	r.process = nil
}

// recoveryMax is the promised time until the run publishes again once its cluster has a majority. A
// busy machine breaks the promise. The test therefore prints late recoveries and does not fail.
const (
	recoveryMax = 10 * time.Second
	lateSaidMax = 30 // last lines of the log of a late run that the test prints
)

// lastLines returns the last lines of a log that do not hold a text.
func lastLines(log, without string) string {
	lines := slices.DeleteFunc(
		strings.Split(log, "\n"),
		func(line string) bool { return strings.Contains(line, without) },
	)
	return strings.Join(lines[max(0, len(lines)-lateSaidMax):], "\n")
}

// machineLoad returns the load averages of the machine, where they can be read.
func machineLoad() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:2], " ")
}

// watchCluster watches until over is closed and returns the last moment at which the
// cluster itself was away: it acknowledged nothing for clusterSilentMin, or a stream, or
// the cluster, had no leader.
func (r *clusterRun) watchCluster(
	ctx context.Context,
	p *producer,
	over <-chan struct{},
) (away time.Time) {
	away = time.Now()
	stored, since := p.stored.Load(), away
	for ; ; pause(ctx, 50*time.Millisecond) {
		now := time.Now()
		if n := p.stored.Load(); n > stored {
			stored, since = n, now
		}
		if now.Sub(since) > clusterSilentMin ||
			!r.nodes.leads(ctx, logName, estimatesName, quarantineName) {
			away = now
		}
		select {
		case <-over:
			return away
		default:
		}
	}
}

// recoveryPatience is how long a run that recovers gets new events all the while. A machine that
// is busy with other work might never catch up with them.
const recoveryPatience = 20 * time.Second

// clusterSilentMin is how long a cluster that stores 50 messages a second is silent that does not.
const clusterSilentMin = 500 * time.Millisecond

// end returns the last position of the log.
func (r *clusterRun) end(ctx context.Context) uint64 {
	r.t.Helper()
	for ; ; pause(ctx, 20*time.Millisecond) {
		if s, err := r.nodes.js.Stream(ctx, logName); err == nil {
			return s.CachedInfo().State.LastSeq
		} else if ctx.Err() != nil {
			r.t.Fatalf("seed %d: the log does not answer: %v", r.seed, err)
		}
	}
}

// await waits until the estimates up to a position of the log are published.
func (r *clusterRun) await(ctx context.Context, position uint64) {
	r.t.Helper()
	for deadline := time.Now().Add(faultRecovered); ; pause(ctx, 20*time.Millisecond) {
		if r.published(ctx) >= position {
			return
		}
		r.revive()
		if time.Now().After(deadline) || ctx.Err() != nil {
			r.t.Fatalf(
				"seed %d: published up to %d, want %d\n%s", r.seed, r.published(ctx), position,
				r.said(),
			)
		}
	}
}

// published returns the position up to which all estimates are published, 0 if no worker
// answers.
func (r *clusterRun) published(ctx context.Context) uint64 {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := r.nodes.js.Stream(ctx, logName)
	if err != nil {
		return 0
	}
	cursor, err := sinks.Newest(
		ctx,
		r.nodes.js,
		sinks.ReaderConfig{Names: defaultNames(), Log: broker.LogName(s)},
	)
	if err != nil {
		return 0
	}
	return cursor.Position
}

// length returns a random length for a fault.
func (r *clusterRun) length() time.Duration {
	return 300*time.Millisecond + time.Duration(r.rand.Int64N(int64(faultLengthMax)))
}

func (r *clusterRun) killNode(i int) {
	r.nodes.list[i].kill()
	pause(r.t.Context(), r.length()/4)
	r.nodes.list[i].start(r.t)
}

func (r *clusterRun) stopNode(i int) {
	r.nodes.list[i].stop()
	pause(r.t.Context(), r.length())
	r.nodes.list[i].resume()
}

// lagCopy stops a server that leads nothing, and ends the leader when it wakes.
func (r *clusterRun) lagCopy() {
	leader := r.nodes.leader(logName)
	r.stopNode((leader + 1 + r.rand.IntN(2)) % 3)
	r.killNode(leader)
}

func (r *clusterRun) killAll() {
	for _, n := range r.nodes.list {
		n.kill()
	}
	pause(r.t.Context(), r.length()/4)
	for _, n := range r.nodes.list {
		n.start(r.t)
	}
}

// cutLink makes the server silent that the run talks to, until it has found another.
func (r *clusterRun) cutLink() {
	i := slices.IndexFunc(r.nodes.list[:], func(n *node) bool { return n.link.carries() })
	if i < 0 {
		return // between two connections
	}
	cut, end := r.nodes.list[i].link, r.end(r.t.Context())
	cut.cut()
	r.await(r.t.Context(), end+1)
	cut.mend()
}

func (r *clusterRun) killRun() {
	_ = r.process.Process.Kill()
	<-r.done
	r.start()
}

func (r *clusterRun) stopRun() {
	_ = r.process.Process.Signal(syscall.SIGSTOP)
	pause(r.t.Context(), r.length())
	_ = r.process.Process.Signal(syscall.SIGCONT)
}

// bendServer bends the clock of the server that leads the log for a while.
func (r *clusterRun) bendServer(seconds int) {
	clock := r.nodes.list[r.nodes.leader(logName)].clock
	bend(r.t, clock, seconds)
	pause(r.t.Context(), r.length())
	bend(r.t, clock, 0)
}

func (r *clusterRun) bendRun(seconds int) {
	bend(r.t, r.clock, seconds)
	pause(r.t.Context(), r.length())
	bend(r.t, r.clock, 0)
}

// cutLeader cuts a server off from the others, and not from the run, until the others have
// elected another leader.
func (r *clusterRun) cutLeader() {
	i := r.nodes.leader(estimatesName)
	mend := r.nodes.isolate(i)
	for begun := time.Now(); r.nodes.leader(estimatesName) == i &&
		time.Since(begun) < crashStartMax; {
		pause(r.t.Context(), 50*time.Millisecond)
	}
	mend()
}

// compare compares the streams of the cluster with an undisturbed run.
func (r *clusterRun) compare() {
	r.compareLog(r.nodes.js, broker.DefaultStreamNames().Log)
	r.compareWithTwin(r.nodes.js)
}
