package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoSpace is what an error matches when the broker refused a message because
// the log, or the broker's whole store, is full. Nothing that was stored is lost.
var ErrNoSpace = errors.New("the stream is full and refuses new messages: raise its max_bytes," +
	" or free space for the broker")

// Error codes of the broker that mean "no space".
const (
	codeInsufficientResources jetstream.ErrorCode = 10023
	codeStorageExceeded       jetstream.ErrorCode = 10047
	codeStoreFailed           jetstream.ErrorCode = 10077
)

// explainPublish adds to an error of the broker what it means here.
func explainPublish(err error) error {
	var api *jetstream.APIError
	if errors.Is(err, ErrNoSpace) || !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode {
	case codeInsufficientResources, codeStorageExceeded, codeStoreFailed:
		return fmt.Errorf("%w (%w)", ErrNoSpace, err)
	}
	return err
}

// retryable reports whether an error can pass by itself.
func retryable(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrAsyncPublishTimeout) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// repeat publishes a message until it is stored, or its error is final, or time
// is up. Once one message could be repeated, the next is tried without a pause.
func (s *sender) repeat(ctx context.Context, o outstanding, err error) (*jetstream.PubAck, error) {
	deadline := time.Now().Add(s.config.retryFor)
	for wait := sendRetryWaitMin; ; {
		err = explainPublish(err)
		if !retryable(err) || s.config.retryFor < 0 {
			return nil, err
		}
		if !s.mended {
			if !time.Now().Before(deadline) {
				return nil, fmt.Errorf("gave up after %v: %w", s.config.retryFor, err)
			}
			s.config.report(fmt.Errorf("message %d is waiting: %w", o.number, err))
			if again := pause(ctx, wait); again != nil {
				return nil, fmt.Errorf("%w while waiting: %w", again, err)
			}
			wait = min(2*wait, sendRetryWaitMax)
		}
		ack, again := s.attempt(ctx, o.message)
		if s.mended = again == nil; s.mended {
			return ack, nil
		}
		err = again
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sender) attempt(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, sendAckWaitMax)
	defer cancel()
	m.Reply = ""
	return s.js.PublishMsg(ctx, m)
}
