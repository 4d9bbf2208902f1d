package request

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Limits of a feed.
const (
	feedPullMax      = 4096     // messages requested from the broker at once
	feedPullBytesMax = 16 << 20 // and their bytes; the client holds at most twice this
	feedBuffer       = 16       // messages between the client's goroutine and the owner
	feedExpiry       = 30 * time.Second
	// interval of the broker's heartbeats; after twice this in silence the feed restarts
	feedHeartbeat    = 2 * time.Second
	feedInactiveMax  = 2 * time.Minute // after this the broker drops the consumer
	feedPlacesMax    = 40              // consumers that are made until one is on the wanted server
	feedRetryWaitMin = 50 * time.Millisecond
	feedRetryWaitMax = 500 * time.Millisecond
	eachSilenceMax   = 5 * time.Second // after this Each asks the broker whether there is more
	eachTriesMax     = 3               // attempts of Each without a message, after the first
)

// Feed delivers every message of a stream in order from a cursor on, over lost connections and
// restarts of the broker. The library's ordered consumer would skip discarded messages without
// notice, and would wait for ever after the stream was replaced. It has one owner.
type Feed struct {
	JS       jetstream.JetStream
	Stream   string
	Subjects []string // none: every message, so that discarded ones are noticed
	Newest   bool     // at each start, continue with the newest message of each subject
	Server   string   // read the copy of this server; empty: the broker chooses one
	Last     Message  // newest delivered message; at first the cursor

	// Verify compares the stream with the messages read earlier. The feed calls it at each start,
	// before it delivers. nil: if the stream has another message at the cursor, the feed reads from
	// the beginning, and the reader ignores messages that it knows.
	Verify func(context.Context) error

	// Trouble gets the reason for each restart of the feed. A non-nil result is final. nil: no
	// reports.
	Trouble func(error) error

	run     *feedRun
	status  chan nats.Status // of the connection, from the first start until Stop
	name    string           // of the consumer
	pending uint64           // messages that were waiting when the consumer was created
	barren  int              // attempts since the last message
	silence Silence
}

// feedRun is one consumer, and the messages that the client has received from it.
type feedRun struct {
	consume   jetstream.ConsumeContext
	messages  chan jetstream.Msg
	trouble   chan error // capacity 1; the first is enough
	stopped   chan struct{}
	delivered uint64 // messages of the consumer
}

// Message is one message of a stream, with the sequence and the time that identify it.
type Message struct {
	jetstream.Msg
	Sequence uint64
	Stamp    int64
	Behind   uint64 // messages that were in the stream after it
	Missed   bool   // messages before it were discarded unread
}

// anyStamp is the stamp of a message of unknown time.
const anyStamp = -1

// errRepeated is the error of a message that was delivered before.
var errRepeated = errors.New("a message that was delivered before")

// Next waits for the next message, however long the broker is away, and returns it.
func (f *Feed) Next(ctx context.Context) (Message, error) {
	for ctx.Err() == nil {
		m, err := f.receive(ctx)
		if err == nil {
			return m, nil
		}
		if ctx.Err() == nil && err != errRepeated {
			f.end()
			if f.Trouble != nil {
				if err := f.Trouble(err); err != nil {
					return m, err
				}
			}
		}
	}
	return Message{}, ctx.Err()
}

// Each calls visit for every message that the stream has now after a sequence, until visit returns
// false or an error. It gives up soon if the broker is away.
func (f *Feed) Each(
	ctx context.Context,
	after uint64,
	visit func(Message) (further bool, err error),
) error {
	f.Last = Message{Sequence: after}
	defer f.Close()
	for further, more := true, true; further && more; {
		if f.run == nil {
			// visited messages are not visited again, even if they have been removed since
			f.Last.Stamp = anyStamp
			if err := f.Open(ctx); err != nil || f.pending == 0 {
				return err
			}
		}
		waiting, cancel := context.WithTimeout(ctx, eachSilenceMax)
		m, err := f.receive(waiting)
		cancel()
		switch {
		case err == nil:
			if further, err = visit(m); err != nil {
				return err
			}
		case err == errRepeated:
		case ctx.Err() == nil && f.barren < eachTriesMax:
			// the rest was removed, or a cluster lost the consumer
			f.end()
			f.barren++
			continue
		default:
			return err
		}
		more = f.run == nil || m.Behind > 0
	}
	return nil
}

// receive returns the next message, after a restart if the feed was stopped.
func (f *Feed) receive(ctx context.Context) (m Message, err error) {
	if f.run == nil {
		if err := f.pause(ctx); err != nil {
			return m, err
		}
		f.barren++
		err := f.Open(ctx)
		if ctx.Err() == nil { // otherwise the owner has stopped waiting
			f.silence.After(f.JS.Conn(), err)
		}
		if err != nil {
			return m, err
		}
	}
	// with a message ready nothing else is checked: a select of four takes longer than a message
	select {
	case got := <-f.run.messages:
		return f.accept(got)
	default:
	}
	select {
	case got := <-f.run.messages:
		return f.accept(got)
	case err = <-f.run.trouble:
	case status := <-f.status:
		if err = nats.ErrDisconnected; status == nats.CLOSED {
			err = nats.ErrConnectionClosed
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	return m, err
}

// pause waits before another attempt, longer each time, but not before the first
// one since a message arrived, and not once the connection is restored.
func (f *Feed) pause(ctx context.Context) error {
	if f.barren > 0 {
		select {
		case <-time.After(min(feedRetryWaitMin<<min(f.barren, 10), feedRetryWaitMax)):
		case <-f.status:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// accept checks that a message is the consumer's next one and has not been delivered before.
// Messages that the client dropped are fetched again; other missing ones were discarded.
func (f *Feed) accept(got jetstream.Msg) (m Message, err error) {
	meta, err := got.Metadata()
	if err != nil {
		return m, err
	}
	if meta.Sequence.Consumer != f.run.delivered+1 {
		return m, fmt.Errorf("message %d of the consumer came after %d",
			meta.Sequence.Consumer, f.run.delivered)
	}
	f.run.delivered++
	m = Message{
		Msg:      got,
		Sequence: meta.Sequence.Stream,
		Stamp:    meta.Timestamp.UnixNano(),
		Behind:   meta.NumPending,
	}
	// from Newest, or from a lagging replica, which starts with its own first message
	if m.Sequence <= f.Last.Sequence {
		return m, errRepeated
	}
	m.Missed = len(f.Subjects) == 0 && m.Sequence != f.Last.Sequence+1
	f.Last, f.barren = m, 0
	return m, nil
}

// Open starts after the last message. Next does so by itself; calling Open first gives an error at
// once.
func (f *Feed) Open(ctx context.Context) error {
	if f.status == nil {
		f.status = f.JS.Conn().StatusChanged(nats.CONNECTED, nats.CLOSED)
	}
	c := jetstream.ConsumerConfig{
		FilterSubjects:    f.Subjects,
		AckPolicy:         jetstream.AckNonePolicy,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       f.Last.Sequence + 1,
		InactiveThreshold: feedInactiveMax,
		MemoryStorage:     true,
		Replicas:          1,
	}
	if f.Newest {
		c.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
		c.OptStartSeq = 0
	}
	asking, cancel := Context(ctx, f.JS.Conn())
	consumer, err := f.consumer(asking, c)
	cancel()
	if err != nil {
		return fmt.Errorf("consumer of stream %s: %w", f.Stream, err)
	}
	f.name, f.pending = consumer.CachedInfo().Name, consumer.CachedInfo().NumPending
	verify := f.verify
	if f.Verify != nil {
		verify = f.Verify
	}
	// checked last, so that no other stream can replace it unnoticed in between
	if err := verify(ctx); err != nil {
		return err
	}
	run := &feedRun{
		messages: make(chan jetstream.Msg, feedBuffer),
		trouble:  make(chan error, 1),
		stopped:  make(chan struct{}),
	}
	run.consume, err = consumer.Consume(run.deliver,
		jetstream.PullMaxMessagesWithBytesLimit(feedPullMax, feedPullBytesMax),
		jetstream.PullExpiry(feedExpiry), jetstream.PullHeartbeat(feedHeartbeat),
		jetstream.ConsumeErrHandler(run.report))
	if err != nil {
		return fmt.Errorf("consumer of stream %s: %w", f.Stream, err)
	}
	f.run = run
	return nil
}

// consumer makes a consumer on the wanted server. A cluster places a consumer without copies on any
// server that keeps the stream, so those on other servers are deleted again.
func (f *Feed) consumer(
	ctx context.Context, c jetstream.ConsumerConfig,
) (made jetstream.Consumer, err error) {
	for range feedPlacesMax {
		if made, err = f.JS.CreateConsumer(ctx, f.Stream, c); err != nil || f.Server == "" {
			return made, err
		}
		info := made.CachedInfo()
		if info.Cluster != nil && info.Cluster.Leader == f.Server {
			return made, nil
		}
		if err := f.JS.DeleteConsumer(ctx, f.Stream, info.Name); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no consumer can be made on server %s", f.Server)
}

// deliver runs in the client's goroutine.
func (r *feedRun) deliver(m jetstream.Msg) {
	select {
	case r.messages <- m:
		return
	default: // full, and the owner may not come back
	}
	select {
	case r.messages <- m:
	case <-r.stopped:
	}
}

// report runs in the client's goroutines.
func (r *feedRun) report(_ jetstream.ConsumeContext, err error) {
	select {
	case r.trouble <- err:
	default:
	}
}

// verify compares the stream with the messages read earlier. If they differ, its error makes the
// feed restart from the beginning.
func (f *Feed) verify(ctx context.Context) error {
	if f.Last.Sequence == 0 || f.Last.Stamp == anyStamp {
		return nil
	}
	ctx, cancel := Context(ctx, f.JS.Conn())
	defer cancel()
	stream, err := f.JS.Stream(ctx, f.Stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", f.Stream, err)
	}
	info := Leader(stream)
	if f.Last.Sequence < info.State.FirstSeq {
		return nil // missing messages will show as a gap
	}
	m, err := stream.GetMsg(ctx, f.Last.Sequence)
	switch {
	case err == nil && m.Time.UnixNano() == f.Last.Stamp:
		return nil
	case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
		return fmt.Errorf("stream %s: message %d: %w", f.Stream, f.Last.Sequence, err)
	}
	err = fmt.Errorf(
		"stream %s is another one at message %d than was read, and is read from its beginning",
		f.Stream, f.Last.Sequence)
	f.Last.Sequence = max(info.State.FirstSeq, 1) - 1
	return err
}

// end ends the current consumer.
func (f *Feed) end() {
	if f.run != nil {
		close(f.run.stopped)
		f.run.consume.Stop()
		f.run = nil
	}
}

// Stop ends the feed. The broker drops its consumer after feedInactiveMax; Close tells the broker
// at once, but has to wait for it.
func (f *Feed) Stop() {
	f.end()
	if f.status != nil {
		f.JS.Conn().RemoveStatusListener(f.status)
		f.status = nil
	}
}

// Close ends the feed and deletes its consumer, if the broker answers soon.
func (f *Feed) Close() {
	f.Stop()
	if f.name != "" && f.JS.Conn().IsConnected() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = f.JS.DeleteConsumer(ctx, f.Stream, f.name)
	}
}
