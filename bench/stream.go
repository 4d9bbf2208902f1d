package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
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

// stream is an embedded server with the log.
type stream struct {
	server    *broker.Embedded
	nc        *nats.Conn
	js        jetstream.JetStream
	publisher *ingest.Publisher
}

// openStream starts a server whose streams are on disk.
func (w *World) openStream(ctx context.Context) (s *stream, err error) {
	s = &stream{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	dir, err := w.tempDir()
	if err != nil {
		return s, err
	}
	if s.server, err = broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir}); err != nil {
		return s, err
	}
	if s.nc, err = s.server.Connect(); err != nil {
		return s, err
	}
	if s.js, err = jetstream.New(s.nc); err != nil {
		return s, err
	}
	if err = broker.EnsureStreams(ctx, s.js, broker.DefaultStreamNames()); err != nil {
		return s, err
	}
	s.publisher, err = ingest.NewPublisher(s.nc, ingest.PublisherConfig{Pending: publishPending})
	return s, err
}

func (s *stream) close() {
	if s.publisher != nil {
		s.publisher.Close()
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
}

// edgeMessages returns random edges, in whole messages of so many.
func (w *World) edgeMessages(ctx context.Context, events, each int, encode func(b *event.Batch) (ingest.Outgoing, error)) (messages []ingest.Outgoing, err error) {
	g, err := w.newGraph()
	if err != nil {
		return nil, err
	}
	defer g.store.Release()
	for range max(1, events/each) {
		g.batch.Reset()
		if err := g.draw(ctx, each); err != nil {
			return nil, err
		}
		m, err := encode(&g.batch)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// consume applies that many events of the log to a new core without communities
// and returns how long it took, from the opening of the source on.
func (s *stream) consume(ctx context.Context, events int) (time.Duration, error) {
	core, err := incremental.New(incremental.Config{Classes: 2})
	if err != nil {
		return 0, err
	}
	defer core.Close()
	decoder, err := wire.NewDecoder(wire.Config{Classes: event.ClassSet{Count: 2}})
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	source, err := ingest.OpenJetStream(ctx, s.js, decoder, ingest.JetStreamConfig{UntilLast: true})
	if err != nil {
		return 0, err
	}
	var batch event.Batch
	for done := 0; done < events && err == nil; {
		if err = source.Next(ctx, &batch); err != nil {
			break
		}
		result := core.Step(&batch)
		if refused := len(batch.Refused) + len(result.Refused); refused > 0 {
			err = fmt.Errorf("%d events were refused", refused)
		}
		done += batch.Events()
	}
	took := time.Since(begun)
	return took, errors.Join(err, source.Close())
}

// throughput stores messages, which hold so many events, in a log, and returns the median rate at
// which those are applied, in events a second.
func (w *World) throughput(ctx context.Context, messages []ingest.Outgoing, events int) (float64, error) {
	s, err := w.openStream(ctx)
	if err != nil {
		return 0, err
	}
	defer s.close()
	for _, m := range messages {
		if err := s.publisher.Publish(ctx, m); err != nil {
			return 0, err
		}
	}
	if err := s.publisher.Flush(ctx); err != nil {
		return 0, err
	}
	var rates []float64
	for range 3 {
		took, err := s.consume(ctx, events)
		if err != nil {
			return 0, err
		}
		rates = append(rates, float64(events)/took.Seconds())
	}
	return median(rates), nil
}

// measureIngest stores Arrow messages and applies them from the log.
func measureIngest(ctx context.Context, w *World) ([]Row, error) {
	messages, err := w.edgeMessages(ctx, w.pick(w.Edges, min(w.Edges, 400_000)), messageEvents, func(b *event.Batch) (ingest.Outgoing, error) {
		payload, err := wire.EncodeArrow(event.KindEdge, b, 0, messageEvents)
		return ingest.Outgoing{Kind: event.KindEdge, ContentType: wire.Arrow, Payload: payload}, err
	})
	if err != nil {
		return nil, err
	}
	events := len(messages) * messageEvents
	rate, err := w.throughput(ctx, messages, events)
	return []Row{Row{
		Name: "ingest", Value: rate, Unit: "events/s wall", Reference: "a prototype: 1.9 M",
		Note: fmt.Sprintf("stored log to core, no communities; %d edges over %d vertices in messages of %d; streams on disk", events, w.Vertices, messageEvents),
	}.atLeast(1e6)}, err
}

// measureJSON does the same for messages of one event.
func measureJSON(ctx context.Context, w *World) ([]Row, error) {
	events := min(w.Edges/4, w.pick(100_000, 30_000))
	messages, err := w.edgeMessages(ctx, events, 1, func(b *event.Batch) (ingest.Outgoing, error) {
		return ingest.Outgoing{Kind: event.KindEdge, ContentType: wire.JSON, Payload: wire.AppendJSON(nil, b, event.KindEdge, 0)}, nil
	})
	if err != nil {
		return nil, err
	}
	rate, err := w.throughput(ctx, messages, events)
	return []Row{Row{
		Name: "json", Value: rate, Unit: "events/s wall", Reference: "transport alone: 110,000 to 175,000",
		Note: fmt.Sprintf("%d messages of one edge, stored log to core", events),
	}.atLeast(100_000)}, err
}
