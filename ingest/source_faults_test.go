package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// faultyBroker serves one stream from memory with all faults of a broker, a network and a
// client: it delivers again, late and too early, loses messages that it had delivered to a
// buffer, breaks the connection, falls silent, and refuses requests. The reader is the code
// of this package.
type faultyBroker struct {
	jetstream.JetStream // nil: nothing else is asked of it
	conn                nats.Conn
	messages            []*jetstream.RawStreamMsg // from sequence 1
	faulty              bool
	rand                *rand.Rand // of the owner of the source
	consumers           uint64
	count               [faultKinds]atomic.Int64
}

// Kinds of faults, to show that all happen.
const (
	faultRepeat = iota
	faultOld
	faultSkip
	faultDelay
	faultBreak
	faultRequest
	faultBadReply
	faultRestart
	faultDisk
	faultLag
	faultKinds
)

var created = time.Unix(1_700_000_000, 0).UTC()

func (b *faultyBroker) Conn() *nats.Conn { return &b.conn }

// request fails now and then.
func (b *faultyBroker) request() error {
	if b.faulty && b.rand.IntN(12) == 0 {
		b.count[faultRequest].Add(1)
		return nats.ErrTimeout
	}
	return nil
}

func (b *faultyBroker) Stream(context.Context, string) (jetstream.Stream, error) {
	return faultyStream{b: b}, b.request()
}

func (b *faultyBroker) CreateConsumer(
	_ context.Context,
	_ string,
	c jetstream.ConsumerConfig,
) (jetstream.Consumer, error) {
	b.consumers++
	from := c.OptStartSeq
	if b.faulty && b.rand.IntN(8) == 0 { // a replica that lags begins early
		b.count[faultLag].Add(1)
		from = 1 + b.rand.Uint64N(from)
	}
	return &faultyConsumer{
		b:    b,
		from: from,
		rand: rand.New(rand.NewPCG(b.rand.Uint64(), b.consumers)),
	}, b.request()
}

func (b *faultyBroker) DeleteConsumer(context.Context, string, string) error { return nil }

type faultyStream struct {
	jetstream.Stream
	b *faultyBroker
}

func (s faultyStream) CachedInfo() *jetstream.StreamInfo {
	return &jetstream.StreamInfo{
		Config: jetstream.StreamConfig{Name: "GQL"}, Created: created,
		State: jetstream.StreamState{FirstSeq: 1, LastSeq: uint64(len(s.b.messages))},
	}
}

func (s faultyStream) Info(
	context.Context,
	...jetstream.StreamInfoOpt,
) (*jetstream.StreamInfo, error) {
	return s.CachedInfo(), s.b.request()
}

func (s faultyStream) GetMsg(
	_ context.Context,
	sequence uint64,
	_ ...jetstream.GetMsgOpt,
) (*jetstream.RawStreamMsg, error) {
	return s.b.messages[sequence-1], s.b.request()
}

// faultyConsumer delivers from a goroutine, as the client does.
type faultyConsumer struct {
	jetstream.Consumer
	b            *faultyBroker
	from         uint64
	rand         *rand.Rand
	stop, closed chan struct{}
}

func (c *faultyConsumer) CachedInfo() *jetstream.ConsumerInfo {
	return &jetstream.ConsumerInfo{Name: "consumer"}
}

func (c *faultyConsumer) Consume(
	deliver jetstream.MessageHandler,
	_ ...jetstream.PullConsumeOpt,
) (jetstream.ConsumeContext, error) {
	c.stop, c.closed = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(c.closed)
		for next := c.from; ; {
			select {
			case <-c.stop:
				return
			default:
			}
			if next > uint64(len(c.b.messages)) {
				<-c.stop
				return
			}
			if c.b.faulty && c.fault(deliver, &next) {
				<-c.stop // silent from now on
				return
			}
			if next <= uint64(len(c.b.messages)) {
				deliver(c.message(next))
				next++
			}
		}
	}()
	return c, nil
}

// fault does something to the reader before the next message; it reports whether
// the consumer falls silent.
func (c *faultyConsumer) fault(deliver jetstream.MessageHandler, next *uint64) (silent bool) {
	n := &c.b.count
	switch c.rand.IntN(16) {
	case 0:
		if *next > c.from {
			n[faultRepeat].Add(1)
			deliver(c.message(*next - 1))
		}
	case 1:
		if *next > 1 {
			n[faultOld].Add(1)
			deliver(c.message(1 + c.rand.Uint64N(*next-1)))
		}
	case 2:
		n[faultDelay].Add(1)
		timer := time.NewTimer(time.Duration(c.rand.IntN(5000)) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.stop:
		}
	case 3:
		n[faultBadReply].Add(1)
		deliver(&faultyMessage{})
	case 4:
		n[faultBreak].Add(1)
		deliver(&faultyMessage{}) // the reader learns of it from this message
		return true
	case 5: // a buffer overflowed: the message comes only to a reader that asks for it
		if c.rand.IntN(2) == 0 && *next < uint64(len(c.b.messages)) {
			n[faultSkip].Add(1)
			*next++
		}
	}
	return false
}

func (c *faultyConsumer) Stop()                   { close(c.stop) }
func (c *faultyConsumer) Drain()                  { c.Stop() }
func (c *faultyConsumer) Closed() <-chan struct{} { return c.closed }

func (c *faultyConsumer) message(sequence uint64) jetstream.Msg {
	return &faultyMessage{
		nil,
		c.b.messages[sequence-1],
		sequence + 1 - c.from,
		uint64(len(c.b.messages)) - sequence,
	}
}

type faultyMessage struct {
	jetstream.Msg
	stored *jetstream.RawStreamMsg // nil: a reply that is no message
	number uint64                  // of those of the consumer
	behind uint64
}

func (m *faultyMessage) Metadata() (*jetstream.MsgMetadata, error) {
	if m.stored == nil {
		return nil, jetstream.ErrNotJSMessage
	}
	return &jetstream.MsgMetadata{
		Sequence: jetstream.SequencePair{
			Stream:   m.stored.Sequence,
			Consumer: m.number,
		}, NumPending: m.behind, Timestamp: m.stored.Time,
	}, nil
}
func (m *faultyMessage) Data() []byte         { return m.stored.Data }
func (m *faultyMessage) Headers() nats.Header { return m.stored.Header }
func (m *faultyMessage) Subject() string      { return m.stored.Subject }

// faultyLog is a small log of messages of all kinds.
func faultyLog(seed uint64) (log []*jetstream.RawStreamMsg) {
	rng := rand.New(rand.NewPCG(seed, 41))
	at := created
	for i := range 12 + rng.IntN(20) {
		kind, text := randomMessage(rng, float64(at.UnixNano())/1e9)
		text = strings.NewReplacer(`"src":"u`, `"src":"v`).Replace(text)
		if rng.IntN(5) == 0 {
			kind, text = event.KindMember, fmt.Sprintf(
				`{"community":"c%d","vertex":"v%d"}`,
				rng.IntN(2),
				rng.IntN(50),
			)
		}
		log = append(log, &jetstream.RawStreamMsg{
			Subject: "gql." + kind.String(), Sequence: uint64(i + 1), Data: []byte(text), Time: at,
			Header: nats.Header{},
		})
		at = at.Add(time.Duration(rng.IntN(80)) * time.Millisecond)
	}
	return log
}
