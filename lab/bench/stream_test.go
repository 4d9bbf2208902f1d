package bench

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// messageEvents is the number of edges in an Arrow message: one step.
const messageEvents = 4096

// publishPending bounds the messages that may wait for the disk: the server syncs them
// together.
const publishPending = 1 << 11

// openStream starts an embedded server with streams on disk, until the measurement ends.
func openStream(tb testing.TB) (jetstream.JetStream, *ingest.Publisher) {
	tb.Helper()
	server, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: tb.TempDir()})
	check(tb, err)
	tb.Cleanup(func() { check(tb, server.Close()) })
	nc, err := server.Connect()
	check(tb, err)
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	check(tb, err)
	check(tb, broker.EnsureStreams(tb.Context(), js, broker.DefaultStreamNames()))
	publisher, err := ingest.NewPublisher(nc, ingest.PublisherConfig{Pending: publishPending})
	check(tb, err)
	tb.Cleanup(publisher.Close)
	return js, publisher
}

// consume applies that many events of the log to a new core without communities and returns how
// long it took on the wall and of the processor, from the opening of the source on.
func consume(tb testing.TB, js jetstream.JetStream, events int) (wall, spent time.Duration) {
	tb.Helper()
	core, err := incremental.New(incremental.Config{Classes: 2})
	check(tb, err)
	defer core.Close()
	decoder, err := wire.NewDecoder(event.ClassSet{Count: 2})
	check(tb, err)
	begun, used := time.Now(), processTime()
	source, err := ingest.OpenJetStream(
		tb.Context(), js, decoder, ingest.JetStreamConfig{UntilLast: true},
	)
	check(tb, err)
	var batch event.Batch
	for done := 0; done < events; done += batch.Events() {
		check(tb, source.Next(tb.Context(), &batch))
		result := core.Step(&batch)
		if refused := len(batch.Refused) + len(result.Refused); refused > 0 {
			tb.Fatalf("%d events were refused", refused)
		}
	}
	wall, spent = time.Since(begun), processTime()-used
	check(tb, source.Close())
	return wall, spent
}

// throughput stores messages of some edges each in a log. It returns medians over three
// readings: the rate of applied edges, and the cost of an edge.
func throughput(
	tb testing.TB, s size, messages, each int, encode func(b *event.Batch) ingest.Outgoing,
) map[string]float64 {
	tb.Helper()
	js, publisher := openStream(tb)
	g := newGraph(tb, s.network())
	for range messages {
		g.batch.Reset()
		g.draw(tb, each)
		check(tb, publisher.Publish(tb.Context(), encode(&g.batch)))
	}
	check(tb, publisher.Flush(tb.Context()))
	var rates, costs []float64
	for range 3 {
		wall, spent := consume(tb, js, messages*each)
		rates = append(rates, float64(messages*each)/wall.Seconds())
		costs = append(costs, micros(spent, messages*each))
	}
	return map[string]float64{"edges/s-wall": median(rates), "us-cpu/edge": median(costs)}
}

// measureIngest stores Arrow messages and applies them from the log.
func measureIngest(tb testing.TB, s size) map[string]float64 {
	return throughput(
		tb,
		s,
		max(1, s.edges/messageEvents),
		messageEvents,
		func(b *event.Batch) ingest.Outgoing {
			payload, err := wire.EncodeArrow(event.KindEdge, b, 0, messageEvents)
			check(tb, err)
			return ingest.Outgoing{Kind: event.KindEdge, ContentType: wire.Arrow, Payload: payload}
		},
	)
}

// measureJSON does the same for messages of one event.
func measureJSON(tb testing.TB, s size) map[string]float64 {
	return throughput(tb, s, min(s.edges/4, 100_000), 1, func(b *event.Batch) ingest.Outgoing {
		return ingest.Outgoing{
			Kind:        event.KindEdge,
			ContentType: wire.JSON,
			Payload:     wire.AppendJSON(nil, b, event.KindEdge, 0),
		}
	})
}
