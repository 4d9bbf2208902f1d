package sinks

import (
	"context"
	"fmt"
	"net"
	"slices"
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
	stored := b.stored()
	for c := range communities {
		name := fmt.Sprint("c", c)
		var want []string
		for position := range emissions {
			want = append(want, brief(estimate(name, "auto", uint64(position+1))))
		}
		if got := ofCommunity(stored, name); !slices.Equal(got, want) {
			t.Fatalf("community %s:\n got %q\nwant %q", name, got, want)
		}
	}
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
