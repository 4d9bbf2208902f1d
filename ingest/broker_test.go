package ingest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"gqlstream/ingest/broker"
)

// startedTooLate is a goroutine of the library that waits for ever on no channel when a
// publisher is cleaned up before it was scheduled for the first time.
const startedTooLate = "github.com/nats-io/nats.go/jetstream." +
	"(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(startedTooLate))
}

// testBroker is an embedded server and a connection to it.
type testBroker struct {
	t   *testing.T
	dir string
	*broker.Embedded
	nc *nats.Conn
	js jetstream.JetStream
}

// startBroker starts a server with the default streams in dir, or in a new
// directory if that is empty.
func startBroker(t *testing.T, dir string) *testBroker {
	t.Helper()
	b := bareBroker(t, broker.EmbeddedConfig{Dir: dir})
	if err := broker.EnsureStreams(testContext(t), b.js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	return b
}

func bareBroker(t *testing.T, c broker.EmbeddedConfig) *testBroker {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	e, err := broker.StartEmbedded(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &testBroker{t: t, dir: c.Dir, Embedded: e}
	t.Cleanup(b.stop)
	if b.nc, err = e.Connect(); err != nil {
		t.Fatal(err)
	}
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *testBroker) stop() {
	if b.nc != nil {
		b.nc.Close()
	}
	if err := b.Embedded.Close(); err != nil {
		b.t.Error(err)
	}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
