package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/request"
)

// stored is a message of the log as the broker stored it.
type stored struct {
	request.Message
	Position event.Position
	Time     time.Time  // the broker's
	Log      event.Time // of the log, by received times; see logClock
}

// tail reads a log in order from a position. Invariant: the message it delivers has the position after the one
// before, in the stream in which it began; everything else is an error that matches ErrWrongHistory.
type tail struct {
	feed     request.Feed
	identity Identity // of the last message delivered; Digest "" stands for last
	last     stored
	before   Identity // of the log before the last message delivered, for the message previous
	previous stored
	clock    logClock
}

// openTail begins after the identity's position, where the log's time was at. An identity without Created is
// taken from the stream as it is.
func openTail(ctx context.Context, js jetstream.JetStream, id Identity, at event.Time) (*tail, error) {
	t := &tail{identity: id, clock: logClock{time: at}}
	t.feed = request.Feed{
		JS: js, Stream: id.Stream, Last: request.Message{Sequence: uint64(id.Position)}, Verify: t.verify, Trouble: t.finalError,
	}
	if err := t.feed.Open(ctx); err != nil {
		t.feed.Close()
		return nil, err
	}
	return t, nil
}

// next returns the next message of the log; it waits for it.
func (t *tail) next(ctx context.Context) (stored, error) {
	m, err := t.feed.Next(ctx)
	if err != nil {
		return stored{}, err
	}
	if m.Missed {
		return stored{}, t.identity.wrong("messages %d to %d are gone: they were deleted or purged, or the"+
			" broker lost them", t.identity.Position+1, m.Sequence-1)
	}
	at := time.Unix(0, m.Stamp)
	t.before, t.previous = t.identity, t.last
	t.identity.Position, t.identity.Digest = event.Position(m.Sequence), ""
	t.last = stored{Message: m, Position: t.identity.Position, Time: at, Log: t.clock.advance(at)}
	return t.last, nil
}

// whoAmI returns the identity of the log at the last message delivered.
func (t *tail) whoAmI() Identity { return t.identity.after(&t.last) }

// after returns an identity with its digest, which is that of the last message unless it is known.
func (id Identity) after(last *stored) Identity {
	if id.Position > 0 && id.Digest == "" {
		id.Digest = messageDigest(last.Subject(), last.Time, last.Data())
	}
	return id
}

// finalError returns the error with which reading ends, of what makes the feed begin anew; nil if it can. A
// stream that is not the same any more ends it. After silence the connection is made
// anew: the server at its other end may be gone without a word, and another be there.
func (t *tail) finalError(cause error) error {
	nc := t.feed.JS.Conn()
	switch {
	case errors.Is(cause, ErrWrongHistory):
		return cause
	case errors.Is(cause, jetstream.ErrStreamNotFound):
		return t.identity.wrong("it does not exist any more")
	case nc.IsClosed():
		return fmt.Errorf("ingest: stream %s: %w, after: %w", t.identity.Stream, nats.ErrConnectionClosed, cause)
	case errors.Is(cause, jetstream.ErrNoHeartbeat):
		_ = nc.ForceReconnect() // an error says that it is closed, which the next attempt finds
	}
	return nil
}

// verify compares the stream with the one that was read before.
func (t *tail) verify(ctx context.Context) error {
	return insist(ctx, func() error {
		ctx, cancel := request.Context(ctx, t.feed.JS.Conn())
		defer cancel()
		s, err := t.feed.JS.Stream(ctx, t.identity.Stream)
		if err != nil {
			return fmt.Errorf("ingest: stream %s: %w", t.identity.Stream, err)
		}
		if t.identity.Created.IsZero() {
			id, err := identityAt(ctx, s, t.identity.Position)
			if err != nil {
				return fmt.Errorf("%w; it cannot be read on from there", err)
			}
			t.identity = id
		}
		received, err := t.whoAmI().check(ctx, s)
		if err == nil {
			t.clock.begin(received)
		}
		return err
	})
}

// logClock is the log's time by the broker's. It advances by the differences between the
// times at which messages were received, and stands still where the broker's clock goes
// back: a clock that leapt an hour ahead and is set right again leaves the log's an hour
// ahead for good, and stops nothing. Where the broker's never goes back both are equal.
type logClock struct {
	received time.Time // of the last message; zero: none is known
	time     event.Time
}

// begin sets the receipt of the last message, unless that is known.
func (c *logClock) begin(received time.Time) {
	if c.received.IsZero() {
		c.received = received
	}
}

func (c *logClock) advance(received time.Time) event.Time {
	if c.received.IsZero() || c.time == 0 {
		c.time = max(c.time, event.Time(received.UnixNano()))
	} else {
		c.time += event.Time(max(received.Sub(c.received), 0))
	}
	c.received = received
	return c.time
}

// ahead returns the lead of the log's time over the broker's clock, or over ours, which is now:
// the broker's own may still be wrong.
func (c *logClock) ahead(now time.Time) time.Duration {
	if c.received.IsZero() {
		return 0
	}
	return time.Duration(c.time - event.Time(min(c.received.UnixNano(), now.UnixNano())))
}
