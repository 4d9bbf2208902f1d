package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/request"
)

// Defaults and limits of a publisher.
const (
	sendPendingDefault  = 256
	sendRetryForDefault = time.Minute
	sendPendingBytesMax = 64 << 20
)

type outstanding struct {
	message *nats.Msg
	future  jetstream.PubAckFuture
	unsent  error // not sent at all, so there is no future
}

// send sends m, after waiting for older messages if the window is full.
func (p *Publisher) send(ctx context.Context, m *nats.Msg) error {
	for p.err == nil && len(p.window) > 0 &&
		(len(p.window) >= p.config.Pending || p.bytes+len(m.Data) > sendPendingBytesMax) {
		p.settle(ctx)
	}
	if p.err != nil {
		return p.err
	}
	future, err := p.js.PublishMsgAsync(m)
	p.window = append(p.window, outstanding{message: m, future: future, unsent: err})
	p.bytes += len(m.Data)
	if err != nil { // the connection is gone, or the message is too large
		return p.Flush(ctx)
	}
	return nil
}

// Flush waits until every message is stored.
func (p *Publisher) Flush(ctx context.Context) error {
	for p.err == nil && len(p.window) > 0 {
		p.settle(ctx)
	}
	return p.err
}

// settle waits until the oldest pending message is stored, and publishes it again if need be. A
// repeat of a message that was stored after all is dropped by the broker, by its id.
func (p *Publisher) settle(ctx context.Context) {
	oldest := p.window[0]
	ack, err := oldest.await(ctx)
	if err != nil && ctx.Err() == nil {
		ack, err = p.repeat(ctx, oldest, err)
	}
	if err != nil {
		p.err = fmt.Errorf("ingest: publish as producer %s: message %d (%d are stored): %w",
			p.config.Producer, p.stored+1, p.stored, err)
		return
	}
	p.stored++
	p.last = max(p.last, ack.Sequence)
	p.bytes -= len(oldest.message.Data)
	p.window[0] = outstanding{}
	p.window = p.window[1:]
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
func (p *Publisher) repeat(ctx context.Context, o outstanding, err error) (*jetstream.PubAck, error) {
	deadline, silence := time.Now().Add(p.config.RetryFor), request.Unanswered // err is the first
	for wait := request.RetryWaitMin; ; {
		err = broker.ExplainError(err)
		if !request.Passes(err) || p.config.RetryFor < 0 {
			return nil, err
		}
		if !p.mended {
			if !time.Now().Before(deadline) {
				return nil, fmt.Errorf("gave up after %v: %w", p.config.RetryFor, err)
			}
			p.config.Report(fmt.Errorf("message %d is waiting: %w", p.stored+1, err))
			if again := request.Pause(ctx, wait); again != nil {
				return nil, fmt.Errorf("%w while waiting: %w", again, err)
			}
			wait = min(2*wait, request.RetryWaitMax)
		}
		asking, cancel := request.Context(ctx, p.js.Conn())
		o.message.Reply = ""
		ack, again := p.js.PublishMsg(asking, o.message)
		cancel()
		if p.mended = again == nil; p.mended {
			return ack, nil
		}
		silence.After(p.js.Conn(), again)
		err = again
	}
}
