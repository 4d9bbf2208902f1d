package main

import (
	"context"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// messageBytesAim is the size at which a message of several events is closed.
const messageBytesAim = 128 << 10

// streamWriter publishes batches as messages of NDJSON, one kind of event each.
type streamWriter struct {
	publisher *ingest.Publisher
	rate      float64 // events a second; 0 is no limit
	begun     time.Time
	events    float64 // published
}

// write publishes the events of b, kind by kind, and waits where the rate is ahead
// of the clock.
func (s *streamWriter) write(ctx context.Context, b *event.Batch) error {
	kinds := []func() error{
		func() error { return publishLines(ctx, s.publisher, event.KindVertex, b.Vertices) },
		func() error { return publishLines(ctx, s.publisher, event.KindMember, b.Members) },
		func() error { return publishLines(ctx, s.publisher, event.KindEdge, b.Edges) },
		func() error { return publishLines(ctx, s.publisher, event.KindLabel, b.Labels) },
		func() error { return publishLines(ctx, s.publisher, event.KindPrediction, b.Predictions) },
	}
	for _, publish := range kinds {
		if err := publish(); err != nil {
			return err
		}
	}
	return s.wait(ctx, b.Events())
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
	return sleepUntil(ctx, s.begun.Add(time.Duration(s.events/s.rate*float64(time.Second))))
}

// sleepUntil waits for a time, or for the end of ctx, whose error it returns.
func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publishLines publishes events of one kind as lines of JSON, in as few messages
// as their aimed size allows.
func publishLines[E any, P interface {
	*E
	AppendJSON(dst []byte) []byte
}](ctx context.Context, publisher *ingest.Publisher, kind event.Kind, events []E) error {
	var lines []byte // a new one for each message: the publisher keeps it
	for i := range events {
		lines = append(P(&events[i]).AppendJSON(lines), '\n')
		if len(lines) < messageBytesAim && i < len(events)-1 {
			continue
		}
		err := publisher.Publish(ctx, ingest.Outgoing{Kind: kind, ContentType: event.NDJSON, Payload: lines})
		if err != nil {
			return err
		}
		lines = nil
	}
	return nil
}
