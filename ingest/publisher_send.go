package ingest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/request"
)

// Defaults and limits of a sender.
const (
	sendPendingDefault  = 256
	sendRetryForDefault = time.Minute
	sendPendingBytesMax = 64 << 20
)

// sender keeps a bounded window of messages that are sent and not yet stored. It
// settles them in order, and repeats those that the broker could not store.
type sender struct {
	config PublisherConfig
	js     jetstream.JetStream
	window []outstanding
	bytes  int
	next   uint64 // number of the next message, from 1
	stored uint64 // messages that the broker has
	last   uint64 // the largest sequence among them
	mended bool   // the last repeat succeeded
	err    error  // final
}

type outstanding struct {
	number  uint64
	message *nats.Msg
	future  jetstream.PubAckFuture
	unsent  error // not sent at all, so there is no future
}

func newSender(nc *nats.Conn, c PublisherConfig) (*sender, error) {
	c.Pending, c.RetryFor = cmp.Or(c.Pending, sendPendingDefault), cmp.Or(c.RetryFor, sendRetryForDefault)
	if c.Report == nil {
		c.Report = func(error) {}
	}
	js, err := request.JetStream(nc, "", jetstream.WithPublishAsyncMaxPending(c.Pending+1),
		jetstream.WithPublishAsyncTimeout(request.AnswerWaitMax)) // a repeat of what was stored is dropped by its id
	if err != nil {
		return nil, fmt.Errorf("ingest: publish: %w", err)
	}
	return &sender{config: c, js: js, next: 1}, nil
}

// send sends m, after waiting for older messages if the window is full.
func (s *sender) send(ctx context.Context, m *nats.Msg) error {
	for s.err == nil && len(s.window) > 0 &&
		(len(s.window) >= s.config.Pending || s.bytes+len(m.Data) > sendPendingBytesMax) {
		s.settle(ctx)
	}
	if s.err != nil {
		return s.err
	}
	future, err := s.js.PublishMsgAsync(m)
	s.window = append(s.window, outstanding{number: s.next, message: m, future: future, unsent: err})
	s.bytes += len(m.Data)
	s.next++
	if err != nil { // the connection is gone, or the message is too large
		return s.flush(ctx)
	}
	return nil
}

// flush waits until every message is stored.
func (s *sender) flush(ctx context.Context) error {
	for s.err == nil && len(s.window) > 0 {
		s.settle(ctx)
	}
	return s.err
}

func (s *sender) close() { s.js.CleanupPublisher() }

// settle waits until the oldest pending message is stored, and publishes it again if need be. A
// repeat of a message that was stored after all is dropped by the broker, by its id.
func (s *sender) settle(ctx context.Context) {
	oldest := s.window[0]
	ack, err := oldest.await(ctx)
	if err != nil && ctx.Err() == nil {
		ack, err = s.repeat(ctx, oldest, err)
	}
	if err != nil {
		s.err = fmt.Errorf("ingest: publish as producer %s: message %d (%d are stored): %w",
			s.config.Producer, oldest.number, s.stored, err)
		return
	}
	s.stored++
	s.last = max(s.last, ack.Sequence)
	s.bytes -= len(oldest.message.Data)
	s.window[0] = outstanding{}
	s.window = s.window[1:]
}

func (o outstanding) await(ctx context.Context) (*jetstream.PubAck, error) {
	if o.unsent != nil {
		return nil, o.unsent
	}
	select {
	case ack := <-o.future.Ok():
		return ack, nil
	case err := <-o.future.Err():
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// repeat publishes a message until it is stored, or its error is final, or time
// is up. Once one message could be repeated, the next is tried without a pause.
func (s *sender) repeat(ctx context.Context, o outstanding, err error) (*jetstream.PubAck, error) {
	deadline, silence := time.Now().Add(s.config.RetryFor), request.Unanswered // err is the first
	for wait := request.RetryWaitMin; ; {
		err = broker.ExplainError(err)
		if !request.Passes(err) || s.config.RetryFor < 0 {
			return nil, err
		}
		if !s.mended {
			if !time.Now().Before(deadline) {
				return nil, fmt.Errorf("gave up after %v: %w", s.config.RetryFor, err)
			}
			s.config.Report(fmt.Errorf("message %d is waiting: %w", o.number, err))
			if again := request.Pause(ctx, wait); again != nil {
				return nil, fmt.Errorf("%w while waiting: %w", again, err)
			}
			wait = min(2*wait, request.RetryWaitMax)
		}
		ack, again := s.attempt(ctx, o.message)
		if s.mended = again == nil; s.mended {
			return ack, nil
		}
		silence.After(s.js.Conn(), again)
		err = again
	}
}

func (s *sender) attempt(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := request.Context(ctx, s.js.Conn())
	defer cancel()
	m.Reply = ""
	return s.js.PublishMsg(ctx, m)
}
