package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"gqlstream/alerts"
	"gqlstream/ingest"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// outsideBroker is a server of its own that comes and goes on one port and store.
type outsideBroker struct {
	t    *testing.T
	dir  string
	port int
	*server.Server
}

func (b *outsideBroker) start() {
	b.t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "outside", Host: "127.0.0.1", Port: b.port, JetStream: true, StoreDir: b.dir, SyncAlways: true, NoSigs: true,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(crashStartMax) {
		b.t.Fatal("the server does not start")
	}
	b.Server, b.port = s, s.Addr().(*net.TCPAddr).Port
}

func (b *outsideBroker) stop() {
	b.Shutdown()
	b.WaitForShutdown()
}

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A broker that goes away again and again, in the middle of whatever the run does,
// must not end the run, and all that it puts out must be that of an undisturbed one.
func TestRunOutlivesItsBroker(t *testing.T) {
	const seed, outages = 4, 4
	b := &outsideBroker{t: t, dir: t.TempDir(), port: server.RANDOM_PORT}
	b.start()
	defer func() { b.stop() }()
	r := outageRun(t, seed)
	settings, err := loadConfig(r.config)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.NATS.URL, settings.Output.File = r.dir, b.ClientURL(), r.output
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	p, said := openLogged(ctx, t, settings)
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.run(running) }()
	r.address = b.Addr().String()
	producer := startProducer(ctx, r)
	for range outages {
		pause(ctx, time.Duration(r.rand.Int64N(int64(400*time.Millisecond))))
		b.stop()
		for p.broker.nc.IsConnected() {
			pause(ctx, time.Millisecond)
		}
		b.start()
	}
	r.done = ended
	r.report.messages = producer.finish(r)
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the run ended by itself: %v\n%s", err, said)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "run", "--config", r.config, "--state", r.dir, "--nats", b.ClientURL(), "--output", r.output, "--exit-when-drained")
	compareOutside(t, r, settings)
	t.Logf("%d outages: %v", outages, r.report)
}

// An outside broker that was killed and comes back without the newest estimates that it
// had acknowledged must end the run, which the command then takes up from before them;
// none may be left out.
func TestBrokerThatForgetsIsNoticed(t *testing.T) {
	b := &outsideBroker{t: t, dir: t.TempDir(), port: server.RANDOM_PORT}
	b.start()
	defer func() { b.stop() }()
	r := outageRun(t, 8)
	writeConfig(t, r.config, oneCheckpointARun) // and none while it runs
	settings, err := loadConfig(r.config)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.NATS.URL = r.dir, b.ClientURL()
	r.output = ""
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, said := openLogged(ctx, t, settings)
	ended := make(chan error, 1)
	go func() { ended <- p.follow(ctx) }()
	r.address = b.Addr().String()
	producer := startProducer(ctx, r)
	published := func() uint64 {
		s, err := p.broker.js.Stream(ctx, ingest.DefaultStreamNames().Estimates)
		if err != nil {
			return 0
		}
		return s.CachedInfo().State.LastSeq
	}
	awaitMore := func() {
		for before := published(); published() < before+20 && ctx.Err() == nil; {
			pause(ctx, time.Millisecond)
		}
	}
	awaitMore()
	stream, old := filepath.Join(b.dir, "jetstream", "$G", "streams", "GQL_ESTIMATES"), filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(stream)); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	awaitMore()
	b.stop()
	if err := errors.Join(os.RemoveAll(stream), os.Rename(old, stream)); err != nil {
		t.Fatal(err)
	}
	b.start()
	r.report.messages = producer.finish(r)
	if err := <-ended; !errors.Is(err, sinks.ErrLost) {
		t.Fatalf("the run ended with %v\n%s", err, said)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "run", "--config", r.config, "--state", r.dir, "--nats", b.ClientURL(), "--exit-when-drained")
	compareOutside(t, r, settings)
	t.Logf("%v", r.report)
}

// openLogged opens a pipeline and returns what it says.
func openLogged(ctx context.Context, t *testing.T, settings fileConfig) (*pipeline, *logged) {
	t.Helper()
	said := &logged{}
	p, err := openPipeline(ctx, settings, pipelineOptions{log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return p, said
}

// compareOutside holds what an outside broker has against an undisturbed run.
func compareOutside(t *testing.T, r *crashRun, settings fileConfig) {
	t.Helper()
	outside, err := openBroker(settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.close()
	r.compareLog(outside.js, ingest.DefaultStreamNames().Log)
	r.compareWithTwin(outside.js)
}

func outageRun(t *testing.T, seed uint64) *crashRun {
	t.Helper()
	r := &crashRun{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 31)), dir: t.TempDir()}
	r.config = filepath.Join(t.TempDir(), "gqlstream.yaml")
	r.output = filepath.Join(t.TempDir(), "estimates.ndjson")
	writeConfig(t, r.config, crashConfig)
	return r
}

// flakyFile is a file of estimates, or of alerts, on a disk that fails as it likes.
type flakyFile struct {
	*sinks.Lines
	fail func() error
}

func (f flakyFile) Write(ctx context.Context, estimates []quant.Estimate) error {
	if err := f.fail(); err != nil {
		if len(estimates) > 1 { // a part is written
			_ = f.Lines.Write(ctx, estimates[:1])
		}
		return err
	}
	return f.Lines.Write(ctx, estimates)
}

func (f flakyFile) WriteAlerts(transitions []alerts.Transition) error {
	if err := f.fail(); err != nil {
		return errors.Join(err, f.Lines.WriteAlerts(transitions[:len(transitions)/2]))
	}
	return f.Lines.WriteAlerts(transitions)
}

// flakyParts is a directory of parts on such a disk.
type flakyParts struct {
	*sinks.Parts
	fail func() error
}

func (f flakyParts) Write(ctx context.Context, estimates []quant.Estimate) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Parts.Write(ctx, estimates)
}

func (f flakyParts) Cut(position uint64) error {
	return errors.Join(f.Parts.Cut(position), f.fail())
}

// flaky returns the outputs of a run on a disk that fails; it is safe for their
// goroutines.
func (r *crashRun) flaky(every time.Duration, fail func() error) []queued {
	var mu sync.Mutex
	locked := func() error {
		mu.Lock()
		defer mu.Unlock()
		return fail()
	}
	lines := func(path string) func(from uint64) (sinks.Sink, error) {
		return func(from uint64) (sinks.Sink, error) {
			lines, err := sinks.OpenLines(sinks.LinesConfig{Path: path, Log: "log", From: from})
			return flakyFile{lines, locked}, err
		}
	}
	return []queued{
		{name: "file", open: lines(r.output)},
		{name: alertsQueue, open: lines(r.alerts)},
		{name: "arrow", open: func(from uint64) (sinks.Sink, error) {
			parts, err := sinks.OpenParts(sinks.PartsConfig{Dir: r.parts, Format: "arrow", Every: every, Log: "log", From: from})
			return flakyParts{parts, locked}, err
		}},
	}
}

// drainTo runs over what the log holds, with outputs that fail, until the run has
// ended or its log says text.
func (h *history) drainTo(r *crashRun, text string, fail func() error) (said string, err error) {
	h.t.Helper()
	settings, err := loadConfig(h.config)
	if err != nil {
		h.t.Fatal(err)
	}
	settings.State, settings.HTTP.Listen = h.dir, httpOff
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	log := &logged{}
	p, err := openPipeline(ctx, settings, pipelineOptions{
		drain: true, log: slog.New(slog.NewTextHandler(log, nil)),
		queue: r.flaky(settings.Output.Every, fail),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	for text == "" || !strings.Contains(log.String(), text) {
		select {
		case err := <-ended:
			return log.String(), errors.Join(err, p.close())
		default:
			pause(ctx, time.Millisecond)
		}
	}
	cancel()
	err = <-ended
	return log.String(), errors.Join(err, p.close())
}

// Files that cannot be written for a while, parts and alerts too, must not hold the run
// up nor end it: what they get waits on the disk, also through restarts, and they have
// each of it once in the end; the parts are the same bytes.
func TestRunOutlivesItsFiles(t *testing.T) {
	for seed := range uint64(3) {
		r := outageRun(t, seed)
		r.parts = filepath.Join(t.TempDir(), "parts")
		r.alerts = filepath.Join(t.TempDir(), "alerts.ndjson")
		h := &history{t: t, rand: r.rand, dir: r.dir, config: r.config, events: &crashEvents{rand: r.rand}}
		h.publish(h.dir, 25)
		full := func() error { return syscall.ENOSPC }
		said, err := h.drainTo(r, "a sink fails and is tried again", full)
		if !errors.Is(err, context.Canceled) || !strings.Contains(said, "no space left") {
			t.Fatalf("seed %d: with a full disk: %v\n%s", seed, err, said)
		}
		h.publish(h.dir, 25)
		if said, err = h.drainTo(r, "msg=checkpoint", full); !errors.Is(err, context.Canceled) {
			t.Fatalf("seed %d: with a disk that is still full: %v\n%s", seed, err, said)
		}
		h.publish(h.dir, 25)
		if said, err = h.drainTo(r, "", func() error {
			if r.rand.IntN(3) == 0 {
				return syscall.ENOSPC
			}
			return nil
		}); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, said)
		}
		r.compareOutputs()
		t.Logf("seed %d: %v", seed, r.report)
	}
}
