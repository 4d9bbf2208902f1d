package ingest

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
)

// PublisherConfig describes a producer. The zero value is usable.
type PublisherConfig struct {
	Stream string // the log; empty: the default name

	// Producer names this producer. Together with the number of a message it makes the id by which
	// the broker drops repeats. So a name must not be used again for other messages within the
	// broker's window (2 minutes). Empty: a random name.
	Producer string

	// Pending bounds the messages that are sent and not yet stored; 0: 256. They
	// are also bounded by 64 MiB of payload.
	Pending int

	// RetryFor bounds how long to retry while the stream is full or the broker is away; 0: one
	// minute, < 0: no retries.
	RetryFor time.Duration

	// Report, when not nil, gets the reason of a wait before each retry.
	Report func(error)
}

// Outgoing is one message to publish. The publisher keeps Payload until the message is stored.
type Outgoing struct {
	Kind        event.Kind
	ContentType string
	Payload     []byte
}

// Publisher publishes messages to the log without waiting for each to be stored. Messages are
// stored in the order of the calls, except that a message which the broker refused for lack of
// space is stored after the ones sent behind it. It has one owner.
type Publisher struct {
	config PublisherConfig
	js     jetstream.JetStream
	window []outstanding // sent and not yet stored; bounded; settled in order
	bytes  int           // of window
	stored uint64        // messages that the broker has confirmed
	last   uint64        // the largest sequence among them
	err    error         // final
}

// NewPublisher returns a publisher on nc.
func NewPublisher(nc *nats.Conn, c PublisherConfig) (*Publisher, error) {
	c.Stream, c.Producer = cmp.Or(c.Stream,
		broker.DefaultStreamNames().Log), cmp.Or(c.Producer, nuid.Next())
	c.Pending, c.RetryFor = cmp.Or(c.Pending,
		sendPendingDefault), cmp.Or(c.RetryFor, sendRetryForDefault)
	if c.Report == nil {
		c.Report = func(error) {}
	}
	js, err := request.JetStream(nc, "", jetstream.WithPublishAsyncMaxPending(c.Pending+1),
		jetstream.WithPublishAsyncTimeout(
			request.AnswerWaitMax)) // the broker drops a repeat of a stored message by its id
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return &Publisher{config: c, js: js}, nil
}

// Publish sends a message. It first waits for older ones if too many are pending. An error may be
// about an older message, which it names; it is final.
func (p *Publisher) Publish(ctx context.Context, o Outgoing) error {
	if int(o.Kind) >= event.Kinds {
		return fmt.Errorf("publish: no such kind of event as %v", o.Kind)
	}
	m := nats.NewMsg(broker.Subject(p.config.Stream, o.Kind))
	if o.ContentType != "" {
		m.Header.Set(wire.HeaderContentType, o.ContentType)
	}
	m.Header.Set(wire.HeaderChecksum, wire.Checksum(o.Payload))
	m.Header.Set(jetstream.MsgIDHeader,
		p.config.Producer+"/"+strconv.FormatUint(p.stored+uint64(len(p.window))+1, 10))
	m.Data = o.Payload
	return p.send(ctx, m)
}

// Close frees the publisher's state on the connection. It does not wait for messages: call Flush
// first.
func (p *Publisher) Close() { p.js.CleanupPublisher() }

// Stored returns how many messages the broker has confirmed, and the position of the newest.
func (p *Publisher) Stored() (messages uint64, last event.Position) {
	return p.stored, event.Position(p.last)
}

// Defaults and limits of a publisher.
const (
	sendPendingDefault  = 256
	sendRetryForDefault = time.Minute
	sendPendingBytesMax = 64 << 20
)

type outstanding struct {
	message *nats.Msg
	future  jetstream.PubAckFuture
	unsent  error // why the message could not be sent; there is no future then
}

// send sends m, after waiting for older messages if the window is full.
func (p *Publisher) send(ctx context.Context, m *nats.Msg) error {
	for p.err == nil && len(p.window) > 0 &&
		(len(p.window) >= p.config.Pending || p.bytes+len(m.Data) > sendPendingBytesMax) {
		p.awaitOldest(ctx)
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
		p.awaitOldest(ctx)
	}
	return p.err
}

// awaitOldest waits until the oldest pending message is stored, and publishes it again if need
// be. If it was stored after all, the broker drops the repeat by its id.
func (p *Publisher) awaitOldest(ctx context.Context) {
	oldest := p.window[0]
	ack, err := oldest.await(ctx)
	if err != nil && ctx.Err() == nil {
		ack, err = p.repeat(ctx, oldest, err)
	}
	if err != nil {
		p.err = fmt.Errorf("publish as producer %s: message %d (%d are stored): %w",
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

// repeat publishes a message until it is stored, its error is final, or time is up. It reports only
// repeated failures: after an outage every pending message is repeated once.
func (p *Publisher) repeat(
	ctx context.Context,
	o outstanding,
	first error,
) (ack *jetstream.PubAck, err error) {
	last := broker.ExplainError(first)
	if p.config.RetryFor < 0 || !request.Passes(first) {
		return nil, last
	}
	until, cancel := context.WithTimeout(ctx, p.config.RetryFor)
	defer cancel()
	err = request.Retry(until, p.js.Conn(), func() (err error) {
		asking, cancel := request.Context(until, p.js.Conn())
		defer cancel()
		o.message.Reply = ""
		ack, err = p.js.PublishMsg(asking, o.message)
		return err
	}, func(err error) {
		last = broker.ExplainError(err)
		p.config.Report(fmt.Errorf("message %d is waiting: %w", p.stored+1, last))
	})
	switch {
	case err == nil:
		return ack, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w while waiting: %w", ctx.Err(), last)
	case until.Err() != nil:
		return nil, fmt.Errorf("gave up after %v: %w", p.config.RetryFor, last)
	}
	return nil, broker.ExplainError(err)
}
