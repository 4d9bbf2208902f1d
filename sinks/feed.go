package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/request"
)

// Limits of a feed.
const (
	feedPullMax      = 1000 // messages asked of the broker at once; with a limit of bytes the client drops some
	feedExpiry       = 10 * time.Second
	feedHeartbeat    = 2 * time.Second // twice this without a word, and the feed begins anew
	feedInactiveMax  = time.Minute     // then the broker forgets a reader
	feedRetryWaitMin = 50 * time.Millisecond
	feedRetryWaitMax = 2 * time.Second
)

// feed delivers every message of a stream in order from a cursor on, for as long as it
// takes, over lost connections and restarts of the broker. The library's ordered
// consumer would jump over discarded messages without saying so. A stream that has
// another message at the cursor than was read there is read from its beginning: its
// reader leaves out the positions that it knows. It has one owner.
type feed struct {
	js     jetstream.JetStream
	stream string
	last   feedMessage // the newest that was delivered; where it begins, what the cursor says

	run     jetstream.MessagesContext
	gapAt   uint64 // what was missing when a gap made the feed begin anew; 0: nothing
	missed  bool   // the next message follows a gap
	barren  int    // attempts since the last message
	trouble func(error)
}

// feedMessage is one message of the stream, with the sequence and the time that identify it.
type feedMessage struct {
	jetstream.Msg
	sequence uint64
	stamp    int64
	behind   uint64
}

// next returns the next message; it waits for it, however long the broker is away. missed says that
// messages before it were discarded unread.
func (f *feed) next(ctx context.Context) (m feedMessage, missed bool, err error) {
	for ctx.Err() == nil {
		got, err := f.receive(ctx)
		if err != nil && ctx.Err() == nil {
			f.trouble(fmt.Errorf("sinks: stream %s: %w", f.stream, err))
			f.stop()
		}
		if err != nil {
			continue
		}
		if m, ok := f.accept(got); ok {
			missed, f.missed = f.missed, false
			return m, missed, nil
		}
	}
	return m, false, ctx.Err()
}

// receive returns what comes, after it has begun anew where the feed was stopped.
func (f *feed) receive(ctx context.Context) (jetstream.Msg, error) {
	if f.run == nil {
		if f.barren > 0 {
			if err := request.Pause(ctx, min(feedRetryWaitMin<<min(f.barren, 10), feedRetryWaitMax)); err != nil {
				return nil, err
			}
		}
		f.barren++
		if err := f.open(ctx); err != nil {
			return nil, err
		}
	}
	return f.run.Next(jetstream.NextContext(ctx))
}

// accept checks that a message is the next one. Messages that the client dropped are
// fetched again; what is missing even then was discarded.
func (f *feed) accept(got jetstream.Msg) (m feedMessage, ok bool) {
	meta, err := got.Metadata()
	if err != nil {
		return m, false // not a message of a consumer
	}
	at := meta.Sequence.Stream
	switch want := f.last.sequence + 1; {
	case at < want: // delivered twice
		return m, false
	case at > want && f.gapAt != want:
		f.gapAt = want
		f.stop()
		return m, false
	case at > want:
		f.missed = true
	}
	f.last = feedMessage{Msg: got, sequence: at, stamp: meta.Timestamp.UnixNano(), behind: meta.NumPending}
	f.barren = 0
	return f.last, true
}

func (f *feed) open(ctx context.Context) error {
	ctx, cancel := request.Context(ctx, f.js.Conn())
	defer cancel()
	if err := f.verify(ctx); err != nil {
		return err
	}
	consumer, err := f.js.CreateConsumer(ctx, f.stream, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq: f.last.sequence + 1, InactiveThreshold: feedInactiveMax, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return err
	}
	f.run, err = consumer.Messages(jetstream.PullMaxMessages(feedPullMax), jetstream.PullExpiry(feedExpiry),
		jetstream.PullHeartbeat(feedHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	return err
}

// verify compares the stream with what was read of it, and goes back to its beginning
// where the two differ.
func (f *feed) verify(ctx context.Context) error {
	if f.last.sequence == 0 {
		return nil
	}
	stream, err := f.js.Stream(ctx, f.stream)
	if err != nil {
		return err
	}
	info := request.Leader(stream)
	if f.last.sequence < info.State.FirstSeq {
		return nil // the missing messages show as a gap
	}
	m, err := stream.GetMsg(ctx, f.last.sequence)
	switch {
	case err == nil && m.Time.UnixNano() == f.last.stamp:
		return nil
	case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
		return err
	}
	f.last.sequence = max(info.State.FirstSeq, 1) - 1
	return nil
}

// stop ends the present consumer, which the broker forgets after feedInactiveMax: to tell it would
// be waited for.
func (f *feed) stop() {
	if f.run != nil {
		f.run.Stop()
		f.run = nil
	}
}
