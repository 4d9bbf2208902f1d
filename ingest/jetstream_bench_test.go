package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// benchLog makes a log of messages with perMessage edges each, and returns a function that
// opens a source on it.
func benchLog(b *testing.B, messages, perMessage int) func() *JetStreamSource {
	b.Helper()
	ctx := context.Background()
	e, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	nc, err := e.Connect()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := broker.EnsureLog(ctx, js, broker.DefaultStreamNames()); err != nil {
		b.Fatal(err)
	}
	p, err := NewPublisher(nc, PublisherConfig{Pending: 1024})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	var batch event.Batch
	for i := range messages {
		o := Outgoing{Kind: event.KindEdge, ContentType: wire.JSON, Payload: fmt.Appendf(nil,
			`{"src":%d,"dst":%d,"time":%d}`, i%170_000, (i*7919)%170_000+200_000, 1_700_000_000+i)}
		if perMessage > 1 {
			batch.Reset()
			for j := range perMessage {
				n := uint64(i*perMessage + j)
				batch.Edges = append(batch.Edges, event.Edge{
					Src: event.NumberID(
						n % 170_000,
					), Dst: event.NumberID(n*7919%170_000 + 200_000), Weight: 1,
					Time: event.Time(n+1) * 1e9,
				})
			}
			o.ContentType = wire.Arrow
			if o.Payload, err = wire.EncodeArrow(event.KindEdge, &batch, 0,
				perMessage); err != nil {
				b.Fatal(err)
			}
		}
		if err := p.Publish(ctx, o); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	return func() *JetStreamSource {
		decoder, err := wire.NewDecoder(event.ClassSet{Count: 2})
		if err != nil {
			b.Fatal(err)
		}
		s, err := OpenJetStream(ctx, js, decoder, JetStreamConfig{UntilLast: true})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
}

func benchSource(b *testing.B, messages, perMessage int) {
	open := benchLog(b, messages, perMessage)
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		s := open()
		var batch event.Batch
		for {
			err := s.Next(context.Background(), &batch)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			events += batch.Events()
		}
		s.Close()
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// Transport, decoding and cutting of single JSON events: the goal is 100,000 a
// second.
func BenchmarkSourceSingleJSONEvents(b *testing.B) { benchSource(b, 100_000, 1) }

// The same for Arrow messages of 4,096 events: the goal is 1,900,000 a second.
func BenchmarkSourceArrowMessages(b *testing.B) { benchSource(b, 500, 4096) }
