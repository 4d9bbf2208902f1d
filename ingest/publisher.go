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
)

// PublisherConfig describes a producer. The zero value is usable.
type PublisherConfig struct {
	Stream string // the log; empty: the default name

	// Producer names this producer. With the number of a message it makes the id
	// by which the broker drops repeats, so a name must not be used again for other
	// messages within the broker's window (2 minutes). Empty: a random one.
	Producer string

	// Pending bounds the messages that are sent and not yet stored; 0: 256. They
	// are also bounded by 64 MiB of payload.
	Pending int

	// RetryFor bounds how long to try again while the stream is full or the broker
	// is away; 0: one minute, < 0: not at all.
	RetryFor time.Duration

	// Report, when not nil, is told why the publisher waits, before each new try.
	Report func(error)
}

// Outgoing is one message to publish. The publisher keeps Payload until the message is stored.
type Outgoing struct {
	Kind        event.Kind
	ContentType string
	Payload     []byte
}

// Publisher publishes messages to the log without waiting for each to be stored. Messages are
// stored in the order of the calls; if the broker refused one in the midst, for want of space, it
// comes after those that were under way behind it. It has one owner.
type Publisher struct {
	stream string
	sender *sender
}

// NewPublisher returns a publisher on nc.
func NewPublisher(nc *nats.Conn, c PublisherConfig) (*Publisher, error) {
	if c.Producer == "" {
		c.Producer = nuid.Next()
	}
	s, err := newSender(nc, c)
	if err != nil {
		return nil, err
	}
	return &Publisher{stream: cmp.Or(c.Stream, broker.DefaultStreamNames().Log), sender: s}, nil
}

// Publish sends a message, after waiting for older ones if too many are pending.
// An error may be that of an older message; it says which, and is final.
func (p *Publisher) Publish(ctx context.Context, o Outgoing) error {
	if int(o.Kind) >= event.Kinds {
		return fmt.Errorf("ingest: publish: no such kind of event as %v", o.Kind)
	}
	m := nats.NewMsg(broker.Subject(p.stream, o.Kind))
	if o.ContentType != "" {
		m.Header.Set(wire.HeaderContentType, o.ContentType)
	}
	m.Header.Set(wire.HeaderChecksum, wire.Checksum(o.Payload))
	number := strconv.FormatUint(p.sender.next, 10)
	m.Header.Set(jetstream.MsgIDHeader, p.sender.config.Producer+"/"+number)
	m.Data = o.Payload
	return p.sender.send(ctx, m)
}

// Flush waits until every message is stored.
func (p *Publisher) Flush(ctx context.Context) error { return p.sender.flush(ctx) }

// Close frees what the publisher holds of the connection. It does not wait for
// messages: call Flush first.
func (p *Publisher) Close() { p.sender.close() }

// Stored returns the number of messages that the broker has confirmed, and the position of the
// newest of them.
func (p *Publisher) Stored() (messages uint64, last event.Position) {
	return p.sender.stored, event.Position(p.sender.last)
}
