package main

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// messageEventsMax bounds the events of a message that streamWriter makes; such a
// message stays well below the 1 MiB that a broker takes by default.
const messageEventsMax = 2048

// streamWriter publishes batches as messages that hold one kind of event each.
type streamWriter struct {
	publisher *ingest.Publisher
	bytesMax  int64 // of a payload
	limiter   *rate.Limiter
}

// newStreamWriter returns a writer to the server at nc with at most perSecond events a second,
// without a limit if that is 0. Its publisher is the caller's to close.
func newStreamWriter(
	nc *nats.Conn,
	perSecond float64,
	conf ingest.PublisherConfig,
) (streamWriter, error) {
	publisher, err := ingest.NewPublisher(nc, conf)
	limiter := rate.NewLimiter(cmp.Or(rate.Limit(perSecond), rate.Inf), messageEventsMax)
	limiter.AllowN(time.Now(), messageEventsMax) // it begins with nothing saved up
	return streamWriter{publisher, nc.MaxPayload(), limiter}, err
}

// writeKinds are the kinds of events in the order of publishing within a batch.
var writeKinds = event.EachKindOnce(
	event.KindVertex, event.KindMember, event.KindEdge, event.KindLabel,
	event.KindPrediction, event.KindPost, event.KindControl,
)

// write publishes the events of b, kind by kind.
func (s *streamWriter) write(ctx context.Context, b *event.Batch) error {
	for _, kind := range writeKinds {
		n := b.Count(kind)
		for from := 0; from < n; from += messageEventsMax {
			if err := s.publish(ctx, kind, b, from, min(from+messageEventsMax, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish publishes the events [from, to) of a kind, in halves if the message would be too large,
// and waits until the rate allows as many more.
func (s *streamWriter) publish(
	ctx context.Context, kind event.Kind, b *event.Batch, from, to int,
) error {
	payload, form := wire.Encode(kind, b, from, to)
	if int64(len(payload)) > s.bytesMax && to-from > 1 {
		middle := (from + to) / 2
		if err := s.publish(ctx, kind, b, from, middle); err != nil {
			return err
		}
		return s.publish(ctx, kind, b, middle, to)
	}
	if err := s.publisher.Publish(ctx,
		ingest.Outgoing{Kind: kind, ContentType: form, Payload: payload}); err != nil {
		return err
	}
	return s.limiter.WaitN(ctx, to-from)
}
