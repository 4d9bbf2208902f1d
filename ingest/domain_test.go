package ingest

import (
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/request"
)

// If a leaf node keeps no streams itself, all streams must be those of the configured
// domain: the log, published messages, and the quarantine.
func TestLogAndQuarantineOfADomainBehindALeafNode(t *testing.T) {
	start := func(o server.Options) *server.Server {
		o.Host, o.Port, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true
		s, err := server.NewServer(&o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(time.Minute) {
			t.Fatalf("a server takes nobody after %v", time.Minute)
		}
		return s
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	leaves := port.Addr().(*net.TCPAddr)
	_ = port.Close()
	start(
		server.Options{
			JetStream:       true,
			JetStreamDomain: "hub",
			StoreDir:        t.TempDir(),
			LeafNode:        server.LeafNodeOpts{Host: "127.0.0.1", Port: leaves.Port},
		},
	)
	remote := &url.URL{Scheme: "nats", Host: leaves.String()}
	leaf := start(
		server.Options{
			LeafNode: server.LeafNodeOpts{
				Remotes: []*server.RemoteLeafOpts{{URLs: []*url.URL{remote}}},
			},
		},
	)
	nc, err := nats.Connect(leaf.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	names := broker.DefaultStreamNames()
	names.Domain = "hub"
	js, err := request.JetStream(nc, names.Domain)
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err = broker.EnsureStreams(testContext(t), js, names); err == nil {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("waited a minute for the streams behind the leaf node: %v", err)
		}
	}
	w, err := NewQuarantineWriter(testContext(t), nc, names)
	if err != nil {
		t.Fatal(err)
	}
	refusal := event.Refusal{
		Position: 1,
		Kind:     event.KindEdge,
		Reason:   event.SelfLoop,
		Original: []byte("a"),
	}
	go w.Run(testContext(t))
	refuse(t, w, []event.Refusal{refusal})
	stream, err := js.Stream(testContext(t), names.Quarantine)
	if err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Fatalf("the quarantine has not the one refusal: %v", err)
	}
}
