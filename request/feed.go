package request

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Limits of a feed.
const (
	feedPullMax      = 1000 // messages asked of the broker at once; with a limit of bytes the client drops some
	feedExpiry       = 10 * time.Second
	feedHeartbeat    = 2 * time.Second // twice this without a word, and the feed begins anew
	feedInactiveMax  = time.Minute     // then the broker forgets a reader
	feedRetryWaitMin = 50 * time.Millisecond
	feedRetryWaitMax = 2 * time.Second
	eachSilenceMax   = 5 * time.Second // then Each asks the broker whether there is more
	eachTriesMax     = 3               // of Each without a message, after the first
)

// Feed delivers every message of a stream in order from a cursor on, for as long as it
// takes, over lost connections and restarts of the broker. The library's ordered
// consumer would jump over discarded messages without saying so, and wait for ever where a
// stream was made anew. A stream that has another message at the cursor than was read there is read
// from its beginning: who reads it leaves out what it knows. It has one owner.
type Feed struct {
	JS       jetstream.JetStream
	Stream   string
	Subjects []string    // none: every message, so that it shows what was discarded
	Newest   bool        // whenever it begins, it goes on with the newest message of each subject
	Last     Message     // the newest that was delivered; where it begins, what the cursor says
	Trouble  func(error) // is told why the feed begins anew; nil: nobody is

	run       jetstream.MessagesContext
	received  chan received // what it has received
	stopped   chan struct{} // closed when it is stopped
	name      string        // of the consumer
	pending   uint64        // messages that there were for it when it was made
	delivered uint64        // of those of the consumer
	barren    int           // attempts since the last message
}

type received struct {
	msg jetstream.Msg
	err error
}

// Message is one message of a stream, with the sequence and the time that identify it.
type Message struct {
	jetstream.Msg
	Sequence uint64
	Stamp    int64
	Behind   uint64 // messages that were in the stream after it
}

// anyStamp is that of a message whose time is not known.
const anyStamp = -1

// Next returns the next message; it waits for it, however long the broker is away. missed says that
// messages before it were discarded unread.
func (f *Feed) Next(ctx context.Context) (m Message, missed bool, err error) {
	for ctx.Err() == nil {
		got, err := f.receive(ctx)
		if err != nil && ctx.Err() == nil {
			if f.Trouble != nil {
				f.Trouble(fmt.Errorf("stream %s: %w", f.Stream, err))
			}
			f.Stop()
		}
		if err != nil {
			continue
		}
		if m, missed, ok := f.accept(got); ok {
			return m, missed, nil
		}
	}
	return m, false, ctx.Err()
}

// Each calls visit for every message that the stream has now after a sequence, until visit returns false or
// an error. It does not wait for long for a broker that is away.
func (f *Feed) Each(ctx context.Context, after uint64, visit func(Message) (further bool, err error)) error {
	f.Last = Message{Sequence: after}
	defer func() {
		f.Stop()
		_ = f.JS.DeleteConsumer(context.WithoutCancel(ctx), f.Stream, f.name)
	}()
	for further, more := true, true; further && more; {
		if f.run == nil {
			f.Last.Stamp = anyStamp // what was visited is not visited again, though it may have been removed since
			if err := f.open(ctx); err != nil || f.pending == 0 {
				return err
			}
		}
		waiting, cancel := context.WithTimeout(ctx, eachSilenceMax)
		got, err := f.wait(waiting)
		cancel()
		if err != nil && ctx.Err() == nil && f.barren < eachTriesMax { // the rest is removed, or a cluster lost the consumer
			f.Stop()
			f.barren++
			continue
		}
		if err != nil {
			return err
		}
		m, _, ok := f.accept(got)
		if ok {
			if further, err = visit(m); err != nil {
				return err
			}
		}
		more = f.run == nil || m.Behind > 0
	}
	return nil
}

// receive returns what comes, after it has begun anew where the feed was stopped.
func (f *Feed) receive(ctx context.Context) (jetstream.Msg, error) {
	if f.run == nil {
		if f.barren > 0 {
			if err := Pause(ctx, min(feedRetryWaitMin<<min(f.barren, 10), feedRetryWaitMax)); err != nil {
				return nil, err
			}
		}
		f.barren++
		if err := f.open(ctx); err != nil {
			return nil, err
		}
	}
	return f.wait(ctx)
}

// wait returns what comes, or the error of ctx when that ends.
func (f *Feed) wait(ctx context.Context) (jetstream.Msg, error) {
	select {
	case got := <-f.received:
		return got.msg, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accept checks that a message is the next one of the consumer, and that none before it has delivered it. Messages that the
// client dropped are fetched again; what else is missing was discarded.
func (f *Feed) accept(got jetstream.Msg) (m Message, missed, ok bool) {
	meta, err := got.Metadata()
	if err != nil || meta.Sequence.Consumer != f.delivered+1 {
		f.Stop()
		return m, false, false
	}
	f.delivered = meta.Sequence.Consumer
	m = Message{Msg: got, Sequence: meta.Sequence.Stream, Stamp: meta.Timestamp.UnixNano(), Behind: meta.NumPending}
	if f.Newest && m.Sequence <= f.Last.Sequence { // it came before the feed began anew
		return m, false, false
	}
	missed = len(f.Subjects) == 0 && m.Sequence != f.Last.Sequence+1
	f.Last, f.barren = m, 0
	return m, missed, true
}

func (f *Feed) open(ctx context.Context) error {
	ctx, cancel := Context(ctx, f.JS.Conn())
	defer cancel()
	if err := f.verify(ctx); err != nil {
		return err
	}
	c := jetstream.ConsumerConfig{
		FilterSubjects: f.Subjects, AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq: f.Last.Sequence + 1, InactiveThreshold: feedInactiveMax, MemoryStorage: true, Replicas: 1,
	}
	if f.Newest {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverLastPerSubjectPolicy, 0
	}
	consumer, err := f.JS.CreateConsumer(ctx, f.Stream, c)
	if err != nil {
		return err
	}
	f.name, f.pending, f.delivered = consumer.CachedInfo().Name, consumer.CachedInfo().NumPending, 0
	f.run, err = consumer.Messages(jetstream.PullMaxMessages(feedPullMax), jetstream.PullExpiry(feedExpiry),
		jetstream.PullHeartbeat(feedHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		f.run = nil
		return err
	}
	f.received, f.stopped = make(chan received), make(chan struct{})
	go pump(f.run, f.received, f.stopped)
	return nil
}

// pump passes on what is received until it is stopped. The library measures the silence of a broker from the beginning of
// each wait, and would never hear it if whoever reads waits for a moment only, however often.
func pump(run jetstream.MessagesContext, to chan<- received, stopped <-chan struct{}) {
	for {
		m, err := run.Next()
		select {
		case to <- received{m, err}:
		case <-stopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// verify compares the stream with what was read of it, and goes back to its beginning
// where the two differ.
func (f *Feed) verify(ctx context.Context) error {
	if f.Last.Sequence == 0 || f.Last.Stamp == anyStamp {
		return nil
	}
	stream, err := f.JS.Stream(ctx, f.Stream)
	if err != nil {
		return err
	}
	info := Leader(stream)
	if f.Last.Sequence < info.State.FirstSeq {
		return nil // the missing messages show as a gap
	}
	m, err := stream.GetMsg(ctx, f.Last.Sequence)
	switch {
	case err == nil && m.Time.UnixNano() == f.Last.Stamp:
		return nil
	case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
		return err
	}
	f.Last.Sequence = max(info.State.FirstSeq, 1) - 1
	return nil
}

// Stop ends the present consumer, which the broker forgets after feedInactiveMax: to tell it would
// be waited for.
func (f *Feed) Stop() {
	if f.run != nil {
		f.run.Stop()
		close(f.stopped)
		f.run = nil
	}
}
