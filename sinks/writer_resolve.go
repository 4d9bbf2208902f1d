package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

const (
	auditEvery  = 4 * time.Second // how often Audit asks the broker, however often it is called
	ensureEvery = time.Minute     // how often it looks after the settings and the bucket as well
)

// resolve decides the next attempt after the broker refused a part because the last mark was not
// the expected one. done is true if the part is stored, by an earlier attempt or by a standby;
// false without an error means to send it again.
func (w *Writer) resolve(ctx context.Context, sent *shardMark) (done bool, err error) {
	found, err := lastMark(ctx, w.js, w.config.Streams.Names, w.config.Shard, w.known)
	switch {
	case err != nil:
		return false, err
	case found.Position > 0 && !w.sameWork(&found.shardMark):
		return false, w.otherWriter(&found.shardMark, found.age)
	case found.Sequence < w.known.Sequence, found.place().Compare(w.known.place()) < 0,
		found.Sequence != w.known.Sequence && found.Sequence <= w.Sequence():
		return false, fmt.Errorf("message %d: %w", max(w.known.Sequence, w.Sequence()), ErrLost)
	}
	w.adopt(found)
	return w.known.place().Compare(sent.place()) >= 0, nil
}

// missing reports whether an error says that nothing takes messages on the subject.
func missing(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrStreamNotFound)
}

// restore recreates a stream that was deleted during the run. Its records are lost, so the run must
// publish them again.
func (w *Writer) restore(ctx context.Context, cause error) error {
	_, _, err := leader(ctx, w.js, w.config.Streams.Names.Estimates)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return cause // the stream is there, its leader is not
	}
	if err := ensureStreams(ctx, w.js, w.config.Streams); err != nil {
		return err
	}
	return fmt.Errorf("the stream was deleted and is made again: %w", ErrLost)
}

// Audit asks the broker whether it still has all acknowledged messages, and repeats the mark of a
// silent shard, so that others see that its writer is alive. The owner calls it at least every few
// seconds, also while nothing is published; it acts every auditEvery. ErrLost is as with Store;
// while the broker is away it does nothing.
func (w *Writer) Audit(ctx context.Context) error {
	look := w.moveWatermark
	if time.Since(w.audited) >= auditEvery {
		w.audited, look = time.Now(), w.audit
	}
	err := look(ctx)
	if err == nil || request.Passes(err) {
		return nil
	}
	return fmt.Errorf("stream %s: %w", w.config.Streams.Names.Estimates, err)
}

// moveWatermark publishes that a shard is complete up to the last emission that was not due.
func (w *Writer) moveWatermark(ctx context.Context) error {
	if w.config.Shards <= 1 || w.passed.Position <= w.Published() ||
		time.Since(w.renewed) < markQuietEvery {
		return nil
	}
	if w.config.Awaited != nil && w.config.Awaited() <= w.Published() {
		return nil
	}
	m := w.known.shardMark
	if !w.sameWork(&m) {
		m.Time = ""
	}
	m.Writer = w.config.Writer
	m.Config = w.config.Config
	m.Classes = w.config.Classes
	m.Log = w.config.Log
	m.Closed, m.Cut = false, false
	m.Position, m.Digest = w.passed.Position, w.passed.Digest
	m.Part, m.Parts, m.Quiet = 1, 1, true
	return w.storeMark(ctx, m)
}

func (w *Writer) audit(ctx context.Context) error {
	w.free = 0 // others have published since, and the next batch looks again
	_, info, err := leader(ctx, w.js, w.config.Streams.Names.Estimates)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return w.restore(ctx, err)
	case err != nil:
		return err
	case info.State.LastSeq < max(w.Sequence(), w.known.Sequence),
		info.State.FirstSeq > w.known.Sequence && w.known.Sequence > 0:
		return fmt.Errorf("message %d: %w", max(w.Sequence(), w.known.Sequence), ErrLost)
	case time.Since(w.ensured) > ensureEvery:
		w.ensured = time.Now()
		return ensureStreams(ctx, w.js, w.config.Streams)
	case time.Since(w.renewed) < markRenewEvery:
		return nil
	}
	return w.renew(ctx, w.known.shardMark)
}

const (
	// how often a writer that waits for a follower looks again
	roomLookEvery = 200 * time.Millisecond
	// roomReserve: one part in this many of a stream is reserved for the slowest shard. Followers
	// merge all shards: while one is silent they take nothing, and it must find space when it
	// continues.
	roomReserve = 16
)

// awaitSpace waits until the broker can store a batch without discarding records that the slowest
// follower has not taken yet.
func (w *Writer) awaitSpace(ctx context.Context, batch []*nats.Msg) error {
	if w.config.Needed == nil {
		return nil
	}
	const overhead = 250   // of a message: headers and what the store adds
	const leastBytes = 300 // of a message of ours in the stream
	margin, bytes := uint64(len(batch)), 0
	if w.config.Shards > 1 { // others publish meanwhile
		margin = batchMessagesMax
	}
	for _, m := range batch {
		bytes += len(m.Subject) + len(m.Data) + overhead
	}
	if w.free -= int64(bytes); w.free > 0 {
		return nil
	}
	for {
		follower, taken := w.config.Needed()
		if follower == "" {
			return nil
		}
		_, info, err := leader(ctx, w.js, w.config.Streams.Names.Estimates)
		if err != nil {
			return err
		}
		s, bytesMax := info.State, info.Config.MaxBytes
		fits := func(most int64) bool {
			over := int64(s.Bytes) + int64(bytes) - most
			// Other shards publish meanwhile, so this one counts on its share of the free bytes
			// alone.
			w.free = max(-over, 0) / int64(max(w.config.Shards, 1))
			discarded := uint64(max(over, 0)/leastBytes) + margin // at most, of any size
			return w.free > 0 || taken >= s.FirstSeq+discarded
		}
		if bytesMax <= 0 || s.Msgs == 0 || taken >= s.LastSeq ||
			fits(bytesMax-bytesMax/roomReserve) ||
			w.isAwaited(ctx) && fits(bytesMax) {
			return nil
		}
		w.tracker.Hold(fmt.Sprintf(
			"the stream is full, and %s has not taken message %d and those after it",
			follower, taken+1))
		if err := request.Pause(ctx, roomLookEvery); err != nil {
			return err
		}
	}
}

// isAwaited reports whether followers can wait for this shard: all are complete up to where it is.
func (w *Writer) isAwaited(ctx context.Context) bool {
	if w.config.Shards <= 1 || w.Published() == 0 {
		return true
	}
	marks, err := Marks(ctx, w.js, w.config.Streams.Names)
	marks = slices.DeleteFunc(marks, func(m Mark) bool {
		return m.Log != w.config.Log || m.Shard >= w.config.Shards || m.complete() < w.Published()
	})
	return err == nil && len(marks) == w.config.Shards
}
