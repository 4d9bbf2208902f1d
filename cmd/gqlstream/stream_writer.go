package main

import (
	"context"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// messageEventsMax bounds the events of a message that streamWriter makes; a
// message of so many stays well below the 1 MiB that a broker takes by default.
const messageEventsMax = 2048

// streamWriter publishes batches as messages that hold one kind of event each.
type streamWriter struct {
	publisher *ingest.Publisher
	rate      float64 // events a second; 0 is no limit
	begun     time.Time
	events    float64 // published
}

// write publishes the events of b, kind by kind, and waits where the rate is ahead
// of the clock.
func (s *streamWriter) write(ctx context.Context, b *event.Batch) error {
	for _, part := range []struct {
		kind event.Kind
		n    int
	}{
		{event.KindVertex, len(b.Vertices)},
		{event.KindMember, len(b.Members)},
		{event.KindEdge, len(b.Edges)},
		{event.KindLabel, len(b.Labels)},
		{event.KindPrediction, len(b.Predictions)},
	} {
		for from := 0; from < part.n; from += messageEventsMax {
			payload, form, err := encodeEvents("arrow", part.kind, b, from, min(from+messageEventsMax, part.n))
			if err != nil {
				return err
			}
			err = s.publisher.Publish(ctx, ingest.Outgoing{Kind: part.kind, ContentType: form, Payload: payload})
			if err != nil {
				return err
			}
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
