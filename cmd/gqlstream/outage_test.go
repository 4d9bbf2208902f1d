package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"gqlstream/ingest/broker"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
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
		ServerName: "outside", Host: "127.0.0.1", Port: b.port, JetStream: true, StoreDir: b.dir,
		SyncAlways: true, NoSigs: true,
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

// A broker that goes away again and again, at any moment of the run, must not end the run.
// All output must be that of an undisturbed run.
func TestRunOutlivesItsBroker(t *testing.T) {
	const seed, outages = 4, 4
	b := &outsideBroker{t: t, dir: t.TempDir(), port: server.RANDOM_PORT}
	b.start()
	defer func() { b.stop() }()
	r := outageRun(t, seed)
	settings, err := config.Load(r.config)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.NATS.URL, settings.Output.File = r.dir, b.ClientURL(), r.output
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	p, said := openLogged(ctx, t, settings)
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()
	r.address = b.Addr().String()
	producer := startProducer(ctx, r)
	for range outages {
		pause(ctx, time.Duration(r.rand.Int64N(int64(400*time.Millisecond))))
		b.stop()
		for p.Broker.NC.IsConnected() {
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
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	mustRun(
		t, "run", "--config", r.config, "--state", r.dir, "--nats", b.ClientURL(), "--output",
		r.output, "--exit-when-drained",
	)
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
	testfile.Write(t, r.config, oneCheckpointARun) // and none while it runs
	settings, err := config.Load(r.config)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.NATS.URL = r.dir, b.ClientURL()
	r.output = ""
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, said := openLogged(ctx, t, settings)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	r.address = b.Addr().String()
	producer := startProducer(ctx, r)
	published := func() uint64 {
		s, err := p.Broker.JS.Stream(ctx, defaultNames().Estimates)
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
	stream, old := filepath.Join(
		b.dir, "jetstream", "$G", "streams", "GQL_ESTIMATES",
	), filepath.Join(t.TempDir(), "old")
	// as a crash leaves it
	for err := os.CopyFS(old, os.DirFS(stream)); err != nil; err = os.CopyFS(old,
		os.DirFS(stream)) {
		if !errors.Is(err, fs.ErrNotExist) { // files of batches come and go meanwhile
			t.Fatal(err)
		}
		if err := os.RemoveAll(old); err != nil {
			t.Fatal(err)
		}
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
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	mustRun(
		t, "run", "--config", r.config, "--state", r.dir, "--nats", b.ClientURL(),
		"--exit-when-drained",
	)
	compareOutside(t, r, settings)
	t.Logf("%v", r.report)
}

// openLogged opens a pipeline and returns its log messages.
func openLogged(
	ctx context.Context,
	t *testing.T,
	settings config.Settings,
) (*pipeline.Pipeline, *logged) {
	t.Helper()
	said := &logged{}
	p, err := pipeline.Open(
		ctx,
		settings,
		pipeline.Options{Log: slog.New(slog.NewTextHandler(said, nil))},
	)
	if err != nil {
		t.Fatal(err)
	}
	return p, said
}

// compareOutside compares the streams of an outside broker with an undisturbed run.
func compareOutside(t *testing.T, r *crashRun, settings config.Settings) {
	t.Helper()
	outside, err := config.OpenBroker(settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	r.compareLog(outside.JS, broker.DefaultStreamNames().Log)
	r.compareWithTwin(outside.JS)
}

func outageRun(t *testing.T, seed uint64) *crashRun {
	t.Helper()
	r := &crashRun{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 31)), dir: t.TempDir()}
	r.config = filepath.Join(t.TempDir(), "gqlstream.yaml")
	r.output = filepath.Join(t.TempDir(), "estimates.ndjson")
	testfile.Write(t, r.config, crashConfig)
	return r
}

// drainTo runs a pipeline over the log until its log output contains text. If text is empty, the
// pipeline runs until it has drained.
func (h *history) drainTo(settings config.Settings, text string) (said string, err error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Minute)
	defer cancel()
	log := &logged{}
	p, err := pipeline.Open(
		ctx,
		settings,
		pipeline.Options{Drain: text == "", Log: slog.New(slog.NewTextHandler(log, nil))},
	)
	if err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for text == "" || !strings.Contains(log.String(), text) {
		select {
		case err := <-ended:
			return log.String(), errors.Join(err, p.Close())
		default:
			pause(ctx, time.Millisecond)
		}
	}
	cancel()
	err = <-ended
	return log.String(), errors.Join(err, p.Close())
}

// Files that cannot be written for a while, also those of parts and alerts, must neither
// stop the run nor end it. The output log keeps the records that they miss, also through
// restarts, and in the end each file has every record once, byte for byte.
func TestRunOutlivesItsFiles(t *testing.T) {
	for seed := range uint64(2) {
		r := outageRun(t, seed)
		away := filepath.Join(t.TempDir(), "away")
		r.output, r.parts, r.alerts = filepath.Join(away, "estimates.ndjson"), filepath.Join(
			away,
			"parts",
		), filepath.Join(away, "alerts.ndjson")
		testfile.Write(t, away, "a file, so that nothing can be in it")
		h := &history{
			t:      t,
			rand:   r.rand,
			dir:    r.dir,
			config: r.config,
			events: &crashEvents{rand: r.rand},
		}
		settings, err := config.Load(h.config)
		if err != nil {
			t.Fatal(err)
		}
		settings.State, settings.HTTP.Listen = h.dir, web.ListenOff
		settings.Output.File, settings.Output.Parquet, settings.Output.Alerts = r.output, r.parts,
			r.alerts
		for range 2 {
			h.publish(h.dir, 25)
			said, err := h.drainTo(settings, "tried again")
			if !errors.Is(err, context.Canceled) || !strings.Contains(said, "not a directory") {
				t.Fatalf("seed %d: with outputs that cannot be opened: %v\n%s", seed, err, said)
			}
		}
		if err := errors.Join(os.Remove(away), os.Mkdir(away, 0o755)); err != nil {
			t.Fatal(err)
		}
		h.publish(h.dir, 25)
		if said, err := h.drainTo(settings, ""); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, said)
		}
		r.compareOutputs()
		t.Logf("seed %d: %v", seed, r.report)
	}
}

// Before the broker would discard records that an output has not written, the run must wait
// and name the output. When the output works again, it must get every record, once.
func TestRunWaitsBeforeRecordsAreDiscarded(t *testing.T) {
	r := outageRun(t, 6)
	away := filepath.Join(t.TempDir(), "away")
	testfile.Write(t, away, "a file, so that nothing can be in it")
	// Many emissions that do not wait for labels.
	often := "step: {every: 1ms, emit_every: 1ms, time: event}\nemit: {threshold: 0}"
	testfile.Write(t, r.config, strings.Replace(crashConfig, crashStep, often, 1))
	h := &history{
		t: t, rand: r.rand, dir: r.dir, config: r.config,
		events: &crashEvents{rand: r.rand, at: crashEventsBegin},
	}
	settings, err := config.Load(h.config)
	if err != nil {
		t.Fatal(err)
	}
	settings.State, settings.HTTP.Listen = h.dir, web.ListenOff
	settings.Output.File, settings.Output.StreamBytesMax = filepath.Join(
		away,
		"estimates.ndjson",
	), 1<<20
	publishRandom(t, h.dir, h.events, 400)
	said, err := h.drainTo(settings, "the run waits")
	if !errors.Is(err, context.Canceled) || !strings.Contains(said, "for=GQL_ESTIMATES") ||
		!strings.Contains(said, "file has not taken message 1 ") {
		t.Fatalf("with an output that takes nothing: %v\n%s", err, said)
	}
	if err := errors.Join(os.Remove(away), os.Mkdir(away, 0o755)); err != nil {
		t.Fatal(err)
	}
	if said, err := h.drainTo(settings, ""); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	written, err := os.ReadFile(settings.Output.File)
	if err != nil {
		t.Fatal(err)
	}
	replayed, _ := mustRun(t, "replay", "--config", h.config, "--state", h.dir)
	sameLines(t, "replay", replayed, strings.Split(strings.TrimSpace(string(written)), "\n"))
}
