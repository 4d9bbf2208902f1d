package sinks

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// restartable is a server that keeps its port and its store.
type restartable struct {
	t    *testing.T
	dir  string
	port int
	*server.Server
}

func (r *restartable) start() {
	r.t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "test", Host: "127.0.0.1", Port: r.port, JetStream: true, StoreDir: r.dir, NoSigs: true,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		r.t.Fatal("the server does not start")
	}
	r.Server, r.port = s, s.Addr().(*net.TCPAddr).Port
}

func (r *restartable) stop() {
	r.Shutdown()
	r.WaitForShutdown()
}

// A broker that goes away while estimates are written must have each of them once
// when it is back.
func TestEstimatesSurviveBrokerRestarts(t *testing.T) {
	r := &restartable{t: t, dir: t.TempDir(), port: server.RANDOM_PORT}
	r.start()
	defer func() { r.stop() }()
	nc, err := nats.Connect(r.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t, nc, js}
	b.makeStream("")
	sink := b.nats("log")
	const emissions, communities, restarts = 60, 20, 3
	written := make(chan error, 1)
	turn := make(chan struct{}, emissions)
	go func() { written <- writeEmissions(b.ctx(), sink, emissions, communities, turn) }()
	for range restarts {
		for range emissions / (restarts + 1) {
			<-turn
		}
		r.stop()
		r.start()
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	b.mustHave(emissions, communities)
}

// writeEmissions tells turn after each emission.
func writeEmissions(
	ctx context.Context, sink Sink, emissions, communities int, turn chan<- struct{},
) error {
	for position := range emissions {
		var emission []quant.Estimate
		for c := range communities {
			emission = append(emission, estimate(fmt.Sprint("c", c), "auto", uint64(position+1)))
		}
		if err := sink.Write(ctx, emission); err != nil {
			return err
		}
		turn <- struct{}{}
	}
	return nil
}

// A broker that refuses for want of room must hold the writer up, visibly, and have
// every record once when there is room again.
func TestFullStreamHoldsTheWriterUp(t *testing.T) {
	b := startBroker(t)
	config := jetstream.StreamConfig{
		Name: "GQL_ESTIMATES", Subjects: []string{"gqlest.>"}, Duplicates: 100 * time.Millisecond,
		MaxBytes: 20_000, Discard: jetstream.DiscardNew,
	}
	if _, err := b.js.UpdateStream(b.ctx(), config); err != nil {
		t.Fatal(err)
	}
	sink := b.nats("log")
	const emissions, communities = 40, 5
	written := make(chan error, 1)
	go func() {
		written <- writeEmissions(b.ctx(), sink, emissions, communities, make(chan struct{}, emissions))
	}()
	for sink.State().Condition != Holding {
		select {
		case err := <-written:
			t.Fatalf("the writer came to an end: %v", err)
		default:
			b.stored() // gives the writer time
		}
	}
	if s := sink.State(); !strings.Contains(s.Reason, "maximum bytes") || s.Name != "GQL_ESTIMATES" {
		t.Errorf("the state is %+v", s)
	}
	config.MaxBytes = -1
	if _, err := b.js.UpdateStream(b.ctx(), config); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if s := sink.State(); s.Condition != Delivering {
		t.Errorf("in the end the state is %+v", s)
	}
	b.mustHave(emissions, communities)
}

// mustHave checks that the stream holds what writeEmissions writes.
func (b *broker) mustHave(emissions, communities int) {
	b.t.Helper()
	stored := b.stored()
	for c := range communities {
		name := fmt.Sprint("c", c)
		var want []string
		for position := range emissions {
			want = append(want, brief(estimate(name, "auto", uint64(position+1))))
		}
		if got := ofCommunity(stored, name); !slices.Equal(got, want) {
			b.t.Fatalf("community %s:\n got %q\nwant %q", name, got, want)
		}
	}
}
