package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/request"
)

// messageEventsMax bounds the events of a message that streamWriter makes; a
// message of so many stays well below the 1 MiB that a broker takes by default.
const messageEventsMax = 2048

// streamWriter publishes batches as messages that hold one kind of event each.
type streamWriter struct {
	publisher *ingest.Publisher
	bytesMax  int64   // of a payload
	rate      float64 // events a second; 0 is no limit
	begun     time.Time
	events    float64 // published
}

// newStreamWriter returns a writer to the server at nc. Its publisher is the caller's to close.
func newStreamWriter(nc *nats.Conn, rate float64, conf ingest.PublisherConfig) (streamWriter, error) {
	publisher, err := ingest.NewPublisher(nc, conf)
	return streamWriter{publisher: publisher, bytesMax: nc.MaxPayload(), rate: rate}, err
}

// write publishes the events of b, kind by kind, and waits where the rate is ahead
// of the clock.
func (s *streamWriter) write(ctx context.Context, b *event.Batch) error {
	for _, kind := range []event.Kind{
		event.KindVertex, event.KindMember, event.KindEdge, event.KindLabel, event.KindPrediction, event.KindControl,
	} {
		n := b.Count(kind)
		for from := 0; from < n; from += messageEventsMax {
			if err := s.publish(ctx, kind, b, from, min(from+messageEventsMax, n)); err != nil {
				return err
			}
		}
	}
	return s.wait(ctx, b.Events())
}

// publish publishes the events [from, to) of a kind, in halves if the message would be too large.
func (s *streamWriter) publish(ctx context.Context, kind event.Kind, b *event.Batch, from, to int) error {
	payload, form := wire.Encode(kind, b, from, to)
	if int64(len(payload)) > s.bytesMax && to-from > 1 {
		middle := (from + to) / 2
		if err := s.publish(ctx, kind, b, from, middle); err != nil {
			return err
		}
		return s.publish(ctx, kind, b, middle, to)
	}
	return s.publisher.Publish(ctx, ingest.Outgoing{Kind: kind, ContentType: form, Payload: payload})
}

// wait sleeps until n more events fit the rate.
func (s *streamWriter) wait(ctx context.Context, n int) error {
	if s.rate == 0 {
		return nil
	}
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	s.events += float64(n)
	return request.Pause(ctx, time.Until(s.begun.Add(time.Duration(s.events/s.rate*float64(time.Second)))))
}
