package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"gqlstream/ingest"
	"gqlstream/internal/request"
	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
)

// mainVariable makes the test binary the program itself.
const mainVariable = "GQLSTREAM_TEST_MAIN"

func TestMain(m *testing.M) {
	if config := os.Getenv(serverVariable); config != "" {
		serveNATS(config)
		return
	}
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	if os.Getenv(nowVariable) != "" {
		fmt.Println(time.Now().Unix())
		return
	}
	os.Exit(m.Run())
}

// nowVariable makes the test binary print the time and end.
const nowVariable = "GQLSTREAM_TEST_NOW"

// serverVariable makes the test binary a NATS server with the configuration file that it names.
const serverVariable = "GQLSTREAM_TEST_SERVER"

// serveNATS runs a server until the process ends.
func serveNATS(config string) {
	options, err := server.ProcessConfigFile(config)
	if err == nil {
		var s *server.Server
		if s, err = server.NewServer(options); err == nil {
			s.ConfigureLogger()
			s.Start()
			s.WaitForShutdown()
			return
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// crashStep makes estimates at the end of each step.
const crashStep = "step: {every: 20ms, emit_every: 20ms}"

// crashConfig has short steps and checkpoints, so that a kill finds everything
// under way. Its last estimate reads every family of tallies.
const crashConfig = `
classes: [left, right]
communities:
  - {name: everyone, everyone: true}
  - {name: german, where: {language: de}}
estimates: [{method: auto}, {method: pcc}, {method: sis-nacc}]
` + crashStep + `
checkpoint: {every: 200ms}
windows: {edges: 5s, labels: 3s, predictions: 2s}
late: {after: 1s, divert: [members]}
output: {every: 300ms}
privacy: {min_members: 3}
http: {listen: "off"}
alerts:
  - {name: high, when: point > 0.5, recover: 0.48, suppress: []}
  - {name: held, when: low > 0.3, for: 150ms, suppress: []}
  - {name: jump, when: change over 500ms > 0.05, every: 100ms, suppress: []}
  - {name: sum, when: cusum > 2, every: 200ms, suppress: [], no_data: alert}
  - {name: some, communities: "g*", classes: left, when: high < 0.6, for: 2s,
     suppress: [thin], no_data: ok}
`

const (
	crashStartMax   = 60 * time.Second // for a process to start; the machine may be busy
	crashKillsOfLog = 30               // kills in the life of one log
	crashUptimeMax  = 900 * time.Millisecond
)

// However often the process is killed, at whatever moment, the log must hold every event
// once. Estimates, refused events and the final state must be those of an undisturbed run
// over the same log. GQLSTREAM_KILLS sets the number of kills (make faults: 300).
func TestKilledRunsLoseAndRepeatNothing(t *testing.T) {
	kills := campaign.Size(t, "GQLSTREAM_KILLS", 10)
	seed := campaign.Seed(t, 1)
	total := crashReport{}
	for ; kills > 0; kills -= crashKillsOfLog {
		r := newCrashRun(t, seed)
		r.campaign(min(kills, crashKillsOfLog))
		r.compare()
		total.add(r.report)
		t.Logf("seed %d: %v", seed, r.report)
		seed++
	}
	t.Logf("altogether: %v", total)
	if total.midCheckpoint == 0 {
		t.Error("no kill fell into a checkpoint")
	}
}

// crashReport counts the kills and restarts of a campaign by their effects.
type crashReport struct {
	kills, midCheckpoint, starting, restored         int
	messages, positions, records, refused, different int
	checkpoints, wentBack, parts, alerts, rollups    int
}

func (r *crashReport) add(o crashReport) {
	r.kills, r.midCheckpoint, r.starting = r.kills+o.kills, r.midCheckpoint+o.midCheckpoint,
		r.starting+o.starting
	r.restored, r.messages, r.positions = r.restored+o.restored, r.messages+o.messages,
		r.positions+o.positions
	r.records, r.refused, r.different = r.records+o.records, r.refused+o.refused,
		r.different+o.different
	r.checkpoints, r.wentBack = r.checkpoints+o.checkpoints, r.wentBack+o.wentBack
	r.parts += o.parts
	r.alerts, r.rollups = r.alerts+o.alerts, r.rollups+o.rollups
}

func (r crashReport) String() string {
	return fmt.Sprintf(
		"%d kills (%d while a checkpoint was being written, %d before the process was ready), "+
			"%d starts from a checkpoint (%d from an older one, for lost outputs), %d "+
			"checkpoints; %d messages published, %d positions, %d estimates, "+
			"%d files of them, %d beginnings and ends of alerts, %d roll-ups and notes, %d "+
			"refusals, %d differences",
		r.kills,
		r.midCheckpoint,
		r.starting,
		r.restored,
		r.wentBack,
		r.checkpoints,
		r.messages,
		r.positions,
		r.records,
		r.parts,
		r.alerts,
		r.rollups,
		r.refused,
		r.different,
	)
}

// crashRun is the life of one log: a process that is killed again and again
// while a producer publishes.
type crashRun struct {
	t       *testing.T
	seed    uint64
	rand    *rand.Rand
	dir     string // state
	config  string // file
	output  string // file of estimates, or empty
	parts   string // directory of parts, or empty
	alerts  string // file of alerts, or empty
	address string
	pace    time.Duration // between two messages at most; 0: 4 ms
	logPace time.Duration // of log time, that the events of a message have; 0: they have none
	process *exec.Cmd
	stderr  *os.File
	done    chan error
	report  crashReport
}

func newCrashRun(t *testing.T, seed uint64) *crashRun {
	t.Helper()
	r := &crashRun{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 11)), dir: t.TempDir()}
	r.config = filepath.Join(t.TempDir(), "gqlstream.yaml")
	r.output = filepath.Join(t.TempDir(), "estimates.ndjson")
	r.parts = filepath.Join(t.TempDir(), "parts")
	r.alerts = filepath.Join(t.TempDir(), "alerts.ndjson")
	config := strings.Replace(crashConfig, "every: 300ms", "every: 300ms, alerts: "+r.alerts, 1)
	testfile.Write(t, r.config, config)
	r.address = freeAddress(t)
	t.Cleanup(func() {
		if r.process != nil {
			_ = r.process.Process.Kill()
			<-r.done
		}
	})
	return r
}

// start starts the program on the state directory.
func (r *crashRun) start(args ...string) {
	r.t.Helper()
	var err error
	if r.stderr, err = os.Create(filepath.Join(filepath.Dir(r.config), "stderr")); err != nil {
		r.t.Fatal(err)
	}
	r.done = make(chan error, 1)
	process := exec.Command(os.Args[0], append([]string{
		"run", "--config", r.config, "--state", r.dir, "--listen", r.address, "--output", r.output,
		"--parquet", r.parts,
	}, args...)...)
	process.Env = append(os.Environ(), mainVariable+"=1")
	process.Stdout, process.Stderr = r.stderr, r.stderr
	if err := process.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.process = process
	r.stderr.Close() // the process has its own
	go func(p *exec.Cmd, done chan<- error) { done <- p.Wait(); close(done) }(process, r.done)
}

// kill ends the process as a power cut would end it, and checks that it did not
// end by itself before.
func (r *crashRun) kill() {
	r.t.Helper()
	_ = r.process.Process.Kill()
	r.process = nil
	var exit *exec.ExitError
	if err := <-r.done; !errors.As(err, &exit) ||
		exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		r.t.Fatalf(
			"seed %d kill %d: the process ended by itself: %v\n%s", r.seed, r.report.kills, err,
			r.said(),
		)
	}
	r.tally()
}

// said returns the standard error of the process.
func (r *crashRun) said() string {
	text, err := os.ReadFile(r.stderr.Name())
	if err != nil {
		r.t.Error(err)
	}
	return string(text)
}

// tally counts effects that the log of the process names.
func (r *crashRun) tally() {
	log := r.said()
	r.report.checkpoints += strings.Count(log, "msg=checkpoint")
	r.report.wentBack += strings.Count(log, "going back to an older checkpoint")
	if strings.Contains(log, "msg=restored") {
		r.report.restored++
	}
}

// campaign kills the process again and again under a live producer, then lets it
// drain the log.
func (r *crashRun) campaign(kills int) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Minute)
	defer cancel()
	r.start()
	r.await(ctx)
	producer := startProducer(ctx, r)
	for i := range kills {
		if i > 0 {
			r.start()
		}
		if i%2 == 0 {
			r.awaitCheckpoint(ctx)
		} else {
			pause(ctx, time.Duration(r.rand.Int64N(int64(crashUptimeMax))))
		}
		ready := strings.Contains(r.said(), "publishes")
		r.kill()
		r.report.kills++
		if !ready {
			r.report.starting++
		}
		if half, _ := filepath.Glob(filepath.Join(r.dir, "checkpoints", "*.tmp")); len(half) > 0 {
			r.report.midCheckpoint++
		}
	}
	r.start()
	r.report.messages = producer.finish(r)
	r.kill() // the last one, with all events stored
	r.start("--exit-when-drained")
	r.process = nil // it ends by itself
	if err := <-r.done; err != nil {
		r.t.Fatalf("seed %d: draining: %v\n%s", r.seed, err, r.said())
	}
	r.tally()
}

// await returns when the process takes connections.
func (r *crashRun) await(ctx context.Context) {
	r.t.Helper()
	for deadline := time.Now().Add(crashStartMax); ; {
		if c, err := net.Dial("tcp", r.address); err == nil {
			c.Close()
			return
		}
		select {
		case err := <-r.done:
			r.process = nil
			r.t.Fatalf("seed %d: the process ended: %v\n%s", r.seed, err, r.said())
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("seed %d: no connection after %v\n%s", r.seed, crashStartMax, r.said())
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// awaitCheckpoint returns at a random moment while a checkpoint is written.
func (r *crashRun) awaitCheckpoint(ctx context.Context) {
	for deadline := time.Now().Add(crashStartMax); time.Now().Before(deadline); {
		names, _ := os.ReadDir(filepath.Join(r.dir, "checkpoints"))
		for _, n := range names {
			if info, err := n.Info(); err == nil && strings.HasSuffix(n.Name(), ".tmp") &&
				info.ModTime().After(time.Now().Add(-20*time.Millisecond)) {
				pause(ctx, time.Duration(r.rand.Int64N(int64(4*time.Millisecond))))
				return
			}
		}
		pause(ctx, 200*time.Microsecond)
	}
}

// pause waits; a kill needs a moment, and this chooses it.
func pause(ctx context.Context, d time.Duration) { _ = request.Pause(ctx, d) }

// pendingOfProducer is how many messages may be sent and not yet acknowledged.
const pendingOfProducer = 32

// producer publishes random messages until it is told to finish, through every
// death of the server.
type producer struct {
	stop   chan struct{}
	sent   chan int
	stored atomic.Uint64 // messages that are acknowledged
	held   atomic.Bool   // nothing is sent for now
}

func startProducer(ctx context.Context, r *crashRun) *producer {
	r.t.Helper()
	nc, err := nats.Connect(
		"nats://"+r.address,
		nats.MaxReconnects(-1),
		nats.ReconnectWait(5*time.Millisecond),
		nats.ReconnectJitter(0, 0), // so that it is there at every kill
		nats.PingInterval(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
	if err != nil {
		r.t.Fatal(err)
	}
	publisher, err := ingest.NewPublisher(
		nc,
		ingest.PublisherConfig{
			Producer: "crash",
			RetryFor: crashStartMax,
			Pending:  pendingOfProducer,
		},
	)
	if err != nil {
		r.t.Fatal(err)
	}
	p := &producer{stop: make(chan struct{}), sent: make(chan int, 1)}
	events := &crashEvents{rand: rand.New(rand.NewPCG(r.seed, 12))}
	go func() {
		defer nc.Close()
		defer publisher.Close()
		sent := 0
		defer func() { p.sent <- sent }()
		for {
			select {
			case <-p.stop:
				if err := publisher.Flush(ctx); err != nil && ctx.Err() == nil {
					r.t.Errorf("seed %d: the producer: %v", r.seed, err)
				}
				return
			default:
			}
			if r.logPace > 0 {
				events.at = crashEventsBegin.Add(time.Duration(sent) * r.logPace)
			}
			if err := publisher.Publish(ctx, events.next()); err != nil {
				if ctx.Err() == nil {
					r.t.Errorf("seed %d: the producer: %v", r.seed, err)
				}
				return
			}
			sent++
			stored, _ := publisher.Stored()
			p.stored.Store(stored)
			pause(ctx, time.Duration(events.rand.Int64N(int64(cmp.Or(r.pace, 4*time.Millisecond)))))
			for p.held.Load() && ctx.Err() == nil {
				pause(ctx, 20*time.Millisecond)
			}
		}
	}()
	return p
}

// finish waits until all messages are stored and returns how many there are.
func (p *producer) finish(r *crashRun) int {
	close(p.stop)
	select {
	case sent := <-p.sent:
		return sent
	case err := <-r.done:
		r.process = nil
		r.t.Fatalf("seed %d: the process ended by itself: %v\n%s", r.seed, err, r.said())
		return 0
	}
}
