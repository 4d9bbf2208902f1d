package ingest

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/request"
)

// silentLink forwards connections to a server. It can stop forwarding on open connections
// without closing them, like a host that dies or a firewall that drops packets.
type silentLink struct {
	net.Listener
	server string
	made   atomic.Int64 // connections; those up to silent pass nothing any more
	silent atomic.Int64
	wait   sync.WaitGroup
}

func newSilentLink(t *testing.T, server string) *silentLink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &silentLink{Listener: listener, server: strings.TrimPrefix(server, "nats://")}
	l.wait.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", l.server)
			if err != nil {
				client.Close()
				continue
			}
			number := l.made.Add(1)
			for _, way := range [2][2]net.Conn{{client, onward}, {onward, client}} {
				l.wait.Go(func() {
					defer way[1].Close()
					_, _ = io.Copy(&quiet{way[1], l, number}, way[0])
				})
			}
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.wait.Wait()
	})
	return l
}

// quiet discards all data written to a connection.
type quiet struct {
	net.Conn
	link   *silentLink
	number int64
}

func (q *quiet) Write(p []byte) (int, error) {
	if q.number <= q.link.silent.Load() {
		return len(p), nil
	}
	return q.Conn.Write(p)
}

// A link that is dead without a word must be given up soon, and the log be read on over
// another one.
func TestASilentLinkIsGivenUp(t *testing.T) {
	b := bareBroker(t, broker.EmbeddedConfig{Listen: "127.0.0.1:0"})
	if err := broker.EnsureStreams(testContext(t), b.js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	link := newSilentLink(t, b.URL())
	nc, err := broker.Connect(broker.ConnectConfig{URL: "nats://" + link.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	source, err := OpenJetStream(testContext(t), js, testDecoder(t), JetStreamConfig{
		Step: singles,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var batch event.Batch
	for i := range 2 {
		b.edges(10*i+1, 1)
		begun := time.Now()
		if err := source.Next(testContext(t), &batch); err != nil || len(batch.Edges) != 1 {
			t.Fatalf("edge %d: %d edges, %v", i, len(batch.Edges), err)
		}
		if took := time.Since(begun); took > 20*request.AnswerWaitMax {
			t.Errorf("edge %d came after %v", i, took)
		}
		link.silent.Store(link.made.Load())
	}
	if link.made.Load() < 2 {
		t.Error("the dead link is still in use")
	}
}
