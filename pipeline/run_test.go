package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/sinks/web"
)

// A start must wait for a cluster that elects and for a stream that is being made, and for nothing
// else.
func TestAStartWaitsForAnElection(t *testing.T) {
	for err, want := range map[error]bool{
		&jetstream.APIError{Code: 503, ErrorCode: 10008}: true,
		context.DeadlineExceeded:                         true,
		// the connection ended under the question
		context.Canceled:                                 true,
		jetstream.ErrStreamNotFound:                      true,  // another worker is making it
		&jetstream.APIError{Code: 503, ErrorCode: 10039}: false, // JetStream is not enabled
		errors.New("nats: no servers available"):         false,
	} {
		if got := elects(fmt.Errorf("broker: stream GQL: %w", err), false); got != want {
			t.Errorf("%v: waits %t", err, got)
		}
	}
	if elects(nil, true) {
		t.Error("a start that succeeds is taken for an election")
	}
}

// A worker that starts again must wait for a broker that it cannot connect to, whether that refuses
// or is silent; at its first start the address may be wrong.
func TestOnlyAKnownBrokerIsWaitedFor(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	for _, listener := range []net.Listener{silent, refusing} {
		_, err := broker.Connect(broker.ConnectConfig{URL: "nats://" + listener.Addr().String()})
		if err == nil || elects(err, false) {
			t.Errorf("%v: is waited for at the first start", err)
		}
		if !elects(err, true) {
			t.Errorf("%v: ends a worker that starts again", err)
		}
	}
	if err := errors.New("no such setting"); elects(err, true) {
		t.Errorf("%v: is waited for", err)
	}
}

// An interrupt of a run that is still starting must not be reported as a failure: in a
// group that is being stopped, workers start again because they get the shards of those
// that ended first.
func TestAStartThatIsInterruptedIsNoFailure(t *testing.T) {
	settings := config.Settings{State: t.TempDir(), Classes: config.Classes{"a", "b"}}
	ctx, interrupt := context.WithCancel(t.Context())
	read := func() (config.Settings, error) {
		interrupt()
		return settings, nil
	}
	if err := Run(ctx, read, Options{
		Out: io.Discard, Err: io.Discard,
		Log: slog.New(slog.DiscardHandler),
	}); err != nil {
		t.Error(err)
	}
}

// The same holds for one that waits for a cluster that elects, or for a stream that is being made.
func TestAStartThatWaitsCanBeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, interrupt)
		err := OnceElected(
			ctx, slog.New(slog.DiscardHandler), false,
			func() error { return jetstream.ErrStreamNotFound },
		)
		if !errors.Is(err, errInterrupted) {
			t.Error(err)
		}
	})
}

// settingsOfServer returns the settings of a run on a server of its own, without a page.
func settingsOfServer(t *testing.T) config.Settings {
	t.Helper()
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	settings := config.Settings{
		Classes:     config.Classes{"a", "b"},
		Communities: []config.Community{{Name: "all", Everyone: true}},
		State:       t.TempDir(),
	}
	settings.NATS.URL, settings.HTTP.Listen = server.URL(), web.ListenOff
	return settings
}

// A run must try a new address without a server only briefly. The run publishes nothing until it
// continues with the old address.
func TestANewAddressIsTriedOnce(t *testing.T) {
	settings := settingsOfServer(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	wrong := settings
	wrong.NATS.URL = "nats://" + silent.Addr().String()
	said := &sayings{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	again := &reloader{
		signals:  make(chan os.Signal, 1),
		read:     func() (config.Settings, error) { return wrong, nil },
		settings: settings,
	}
	go func() {
		ended <- runAgain(ctx, settings, again, Options{
			Err: said,
			Log: slog.New(slog.NewTextHandler(said, nil)),
		})
	}()
	for begun, starts := time.Now(), 0; starts < 2; time.Sleep(10 * time.Millisecond) {
		if now := strings.Count(said.String(), "reads      stream"); now > starts {
			if starts = now; starts == 1 {
				again.signals <- syscall.SIGHUP
			}
		}
		if time.Since(begun) > electionWaitMax/2 {
			t.Fatalf("the old address is not taken:\n%s", said)
		}
	}
	if cancel(); <-ended != nil ||
		!strings.Contains(said.String(), "not reloaded; the run continues with the old one") {
		t.Errorf("it says\n%s", said)
	}
}

// A run must say that the output log has begun to drop records, and end with the name of a
// setting of the input log that could drop events, also when either comes under the run.
func TestStreamsAreAuditedUnderARun(t *testing.T) {
	settings := settingsOfServer(t)
	said := &sayings{}
	p, err := Open(t.Context(), settings, Options{Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	p.observed.audits.every = time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	js := p.Broker.JS
	out, purged := p.names.Out, false
	for !strings.Contains(said.String(), "stream of estimates drops its oldest") {
		stream, err := js.Stream(ctx, out.Estimates)
		if err == nil && !purged {
			_, err = js.Publish(ctx, "gql.control", []byte(`{"op":"flush"}`)) // makes an emission
			if mark, e := stream.GetLastMsgForSubject(ctx, out.MarkSubject(0)); e == nil &&
				mark.Sequence > 1 {
				purged, err = true, stream.Purge(ctx, jetstream.WithPurgeSequence(mark.Sequence))
			}
		}
		if err != nil || request.Pause(ctx, 10*time.Millisecond) != nil {
			t.Fatalf("%v: nothing is said of what is dropped (purged %t):\n%s", err, purged, said)
		}
	}
	stream, err := js.Stream(ctx, p.names.In.Log)
	if err != nil {
		t.Fatal(err)
	}
	unsafe := stream.CachedInfo().Config
	unsafe.Discard, unsafe.MaxMsgs = jetstream.DiscardOld, 20
	if _, err := js.UpdateStream(ctx, unsafe); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "discard") || ctx.Err() != nil {
		t.Errorf("the run ended with %v\n%s", err, said)
	}
}

// A run must say that a stream has lost copies under it, and go on.
func TestALostCopyIsReportedAndEndsNothing(t *testing.T) {
	settings := config.Settings{
		Classes:     config.Classes{"a", "b"},
		Communities: []config.Community{{Name: "all", Everyone: true}},
		State:       t.TempDir(),
	}
	settings.HTTP.Listen = web.ListenOff
	said := &sayings{}
	p, err := Open(t.Context(), settings, Options{Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := p.auditStreams(t.Context()); err != nil ||
		strings.Contains(said.String(), "loss of one server") {
		t.Errorf("%v with all copies:\n%s", err, said)
	}
	p.names.In.Replicas = 3
	if err := p.auditStreams(t.Context()); err != nil ||
		strings.Count(said.String(), "kept by 1 server, nats.replicas wants 3") != 2 {
		t.Errorf("%v with one copy of three:\n%s", err, said)
	}
}
