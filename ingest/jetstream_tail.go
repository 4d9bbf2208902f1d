package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/request"
)

// Limits of a tail.
const (
	tailPullBytesMax  = 16 << 20 // asked of the broker at once; the client holds at most twice this
	tailBuffer        = 16       // messages between the client's goroutine and the owner
	tailInactiveMax   = 2 * time.Minute
	tailReopenWaitMin = 50 * time.Millisecond
	tailReopenWaitMax = 500 * time.Millisecond
	tailStopWaitMax   = time.Second
	tailPullExpiry    = 30 * time.Second
	tailHeartbeat     = 2 * time.Second // asked of the broker; twice this without a word is silence
)

// stored is a message as the broker stored it.
type stored struct {
	jetstream.Msg
	Position event.Position
	Time     time.Time  // the broker's
	Log      event.Time // of the log, by received times; see logClock
	Behind   uint64     // messages that were after it in the stream when it was delivered
}

// tail reads a stream in order from a position, without acknowledgements, and survives lost connections. Invariant:
// the message it delivers has the position after the one before, in the stream in which it began; everything else is
// an error that matches ErrWrongHistory. The library's ordered consumer does not promise that: it silently jumps over
// trimmed or recreated history. Messages that the client dropped, because a buffer overflowed, are fetched again.
type tail struct {
	js       jetstream.JetStream
	identity Identity // of the last message delivered; Digest "" stands for last
	last     stored
	before   Identity // of the log before the last message delivered, for the message previous
	previous stored
	clock    logClock

	run    *tailRun
	status chan nats.Status
	gapAt  event.Position // what was missing when a gap made the tail reopen; 0: none
	barren int            // times reopened since the last message
	closed bool

	removing sync.WaitGroup // consumers that the broker is told to forget

	reopened atomic.Uint64
}

// tailRun is one consumer on the broker and the goroutines that feed from it.
type tailRun struct {
	name     string
	context  jetstream.ConsumeContext
	messages chan jetstream.Msg
	trouble  chan error // capacity 1; the first is enough
	stop     chan struct{}
}

// openTail begins after the identity's position, where the log's time was at. An identity without Created is
// taken from the stream as it is.
func openTail(ctx context.Context, js jetstream.JetStream, id Identity, at event.Time) (*tail, error) {
	t := &tail{js: js, identity: id, clock: logClock{time: at}}
	t.status = js.Conn().StatusChanged(nats.CONNECTED, nats.CLOSED)
	if err := t.open(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// next returns the next message of the log; it waits for it.
func (t *tail) next(ctx context.Context) (stored, error) {
	for {
		ok, err := t.advance(ctx)
		if err != nil {
			return stored{}, err
		}
		if ok {
			return t.last, nil
		}
	}
}

// advance waits for what comes next and reports whether it is the next message. While messages
// are there nothing else is listened to: a select of four takes longer than a message.
func (t *tail) advance(ctx context.Context) (bool, error) {
	select {
	case m := <-t.run.messages:
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return t.accept(ctx, m)
	default:
	}
	select {
	case m := <-t.run.messages:
		return t.accept(ctx, m)
	case err := <-t.run.trouble:
		return false, t.reopen(ctx, err)
	case status := <-t.status:
		if status == nats.CLOSED {
			return false, fmt.Errorf("ingest: stream %s: %w", t.identity.Stream, nats.ErrConnectionClosed)
		}
		return false, t.reopen(ctx, nats.ErrDisconnected)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// accept checks that m is the next message and makes it the last one.
func (t *tail) accept(ctx context.Context, m jetstream.Msg) (bool, error) {
	meta, err := m.Metadata()
	if err != nil {
		return false, t.reopen(ctx, err)
	}
	at := event.Position(meta.Sequence.Stream)
	switch want := t.identity.Position + 1; {
	case at < want: // delivered twice
		return false, nil
	case at > want && t.gapAt == want:
		return false, t.identity.wrong("messages %d to %d are gone: they were deleted or purged, or the"+
			" broker lost them", want, at-1)
	case at > want:
		t.gapAt = want
		return false, t.reopen(ctx, fmt.Errorf("message %d came after %d", at, want-1))
	}
	t.before, t.previous = t.identity, t.last
	t.identity.Position, t.identity.Digest, t.barren = at, "", 0
	t.last = stored{
		Msg: m, Position: at, Time: meta.Timestamp, Log: t.clock.advance(meta.Timestamp), Behind: meta.NumPending,
	}
	return true, nil
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

// reopen starts over after the last message, however long the broker is away. A
// stream that is not the same any more ends it. After silence the connection is made
// anew: the server at its other end may be gone without a word, and another be there.
func (t *tail) reopen(ctx context.Context, cause error) error {
	t.reopened.Add(1)
	if errors.Is(cause, jetstream.ErrNoHeartbeat) {
		_ = t.js.Conn().ForceReconnect() // an error says that it is closed, which open finds
	}
	t.stop()
	var silence request.Silence
	for ; ; t.barren++ {
		if err := t.pause(ctx); err != nil {
			return err
		}
		err := t.open(ctx)
		silence.After(t.js.Conn(), err)
		switch {
		case err == nil:
			t.barren++
			return nil
		case errors.Is(err, ErrWrongHistory):
			return err
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return t.identity.wrong("it does not exist any more")
		case t.js.Conn().IsClosed():
			return fmt.Errorf("ingest: stream %s: %w, after: %w", t.identity.Stream, err, cause)
		}
	}
}

// pause waits before another attempt, longer each time, but not before the first
// one since a message arrived, and not once the connection is restored.
func (t *tail) pause(ctx context.Context) error {
	if t.barren == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(min(tailReopenWaitMin<<min(t.barren, 10), tailReopenWaitMax)):
	case <-t.status:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// open begins to read after the last message.
func (t *tail) open(ctx context.Context) error {
	return insist(ctx, func() error { return t.tryOpen(ctx) })
}

// tryOpen creates a consumer and only then looks at the stream, so that no other
// stream can take its place unseen in between.
func (t *tail) tryOpen(ctx context.Context) error {
	ctx, cancel := request.Context(ctx, t.js.Conn())
	defer cancel()
	consumer, err := t.js.CreateConsumer(ctx, t.identity.Stream, jetstream.ConsumerConfig{
		AckPolicy:         jetstream.AckNonePolicy,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       uint64(t.identity.Position) + 1,
		InactiveThreshold: tailInactiveMax,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return fmt.Errorf("ingest: stream %s: %w", t.identity.Stream, err)
	}
	name := consumer.CachedInfo().Name
	if err := t.verify(ctx); err != nil {
		t.remove(name)
		return err
	}
	run := &tailRun{
		name: name, messages: make(chan jetstream.Msg, tailBuffer),
		trouble: make(chan error, 1), stop: make(chan struct{}),
	}
	if run.context, err = consumer.Consume(run.deliver, jetstream.PullMaxBytes(tailPullBytesMax),
		jetstream.PullExpiry(tailPullExpiry), jetstream.PullHeartbeat(tailHeartbeat),
		jetstream.ConsumeErrHandler(run.report)); err != nil {
		t.remove(name)
		return fmt.Errorf("ingest: stream %s: %w", t.identity.Stream, err)
	}
	t.run = run
	return nil
}

// verify compares the stream with the one that was read before.
func (t *tail) verify(ctx context.Context) error {
	s, err := t.js.Stream(ctx, t.identity.Stream)
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

// stop ends the goroutines of the present consumer.
func (t *tail) stop() {
	if t.run == nil {
		return
	}
	close(t.run.stop)
	t.run.context.Stop()
	select {
	case <-t.run.context.Closed():
	case <-time.After(tailStopWaitMax): // the client does not say so when the connection closes meanwhile
	}
	t.remove(t.run.name)
	t.run = nil
}

func (t *tail) close() {
	if t.closed {
		return
	}
	t.closed = true
	t.stop()
	t.removing.Wait()
	t.js.Conn().RemoveStatusListener(t.status)
}

// remove deletes a consumer, which is waited for only at the end: a cluster that elects says nothing
// for long. If it fails, the broker does it after tailInactiveMax.
func (t *tail) remove(name string) {
	stream := t.identity.Stream // the owner's
	if t.js.Conn().IsConnected() {
		t.removing.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = t.js.DeleteConsumer(ctx, stream, name)
		})
	}
}

// deliver runs in the client's goroutine.
func (r *tailRun) deliver(m jetstream.Msg) {
	select {
	case r.messages <- m:
		return
	default: // it is full, and the owner may not come back
	}
	select {
	case r.messages <- m:
	case <-r.stop:
	}
}

// report runs in the client's goroutines.
func (r *tailRun) report(_ jetstream.ConsumeContext, err error) {
	select {
	case r.trouble <- err:
	default:
	}
}
