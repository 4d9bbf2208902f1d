package ingest

import (
	"context"
	"fmt"
	"time"

	"gqlstream/ingest/broker"
	"gqlstream/request"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// repeat publishes a message until it is stored, or its error is final, or time
// is up. Once one message could be repeated, the next is tried without a pause.
func (s *sender) repeat(ctx context.Context, o outstanding, err error) (*jetstream.PubAck, error) {
	deadline, silence := time.Now().Add(s.config.RetryFor), request.Unanswered // err is the first
	for wait := sendRetryWaitMin; ; {
		err = broker.ExplainError(err)
		if !request.Passes(err) || s.config.RetryFor < 0 {
			return nil, err
		}
		if !s.mended {
			if !time.Now().Before(deadline) {
				return nil, fmt.Errorf("gave up after %v: %w", s.config.RetryFor, err)
			}
			s.config.Report(fmt.Errorf("message %d is waiting: %w", o.number, err))
			if again := Pause(ctx, wait); again != nil {
				return nil, fmt.Errorf("%w while waiting: %w", again, err)
			}
			wait = min(2*wait, sendRetryWaitMax)
		}
		ack, again := s.attempt(ctx, o.message)
		if s.mended = again == nil; s.mended {
			return ack, nil
		}
		silence.After(s.js.Conn(), again)
		err = again
	}
}

// Pause waits for d, or for the end of ctx, whose error it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sender) attempt(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := request.Context(ctx, s.js.Conn())
	defer cancel()
	m.Reply = ""
	return s.js.PublishMsg(ctx, m)
}
