package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/request"
)

const (
	auditEvery  = 4 * time.Second // how often Audit asks the broker, however often it is called
	ensureEvery = time.Minute     // how often it looks after the settings and the bucket as well
)

// foundMark is the last mark of a shard as the stream's leader has it.
type foundMark struct {
	shardMark
	sequence uint64 // 0: there is none
	age      time.Duration
	torn     bool // its records are not all there
}

// leader returns the stream, of which only the leader is asked: a replica that lags
// must not decide what was published.
func (w *Writer) leader(ctx context.Context) (jetstream.Stream, *jetstream.StreamInfo, error) {
	ctx, cancel := request.Context(ctx, w.js.Conn())
	defer cancel()
	stream, err := w.js.Stream(ctx, w.config.Streams.Names.Estimates)
	if err != nil {
		return nil, nil, err
	}
	return stream, request.Leader(stream), nil
}

// lastMark reads the last mark of the shard. What is on its subject and no mark is
// passed over with its sequence.
func (w *Writer) lastMark(ctx context.Context) (found foundMark, err error) {
	stream, info, err := w.leader(ctx)
	if err != nil {
		return found, err
	}
	m, err := stream.GetLastMsgForSubject(ctx, w.config.Streams.Names.MarkSubject(w.config.Shard))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	found.sequence, found.age = m.Sequence, max(info.TimeStamp.Sub(m.Time), 0)
	if found.shardMark, err = parseMark(m.Data); err != nil {
		return w.markBefore(ctx, stream, m.Sequence, info.State.FirstSeq)
	}
	found.torn, err = torn(ctx, stream, m, &found.shardMark)
	return found, err
}

// markBefore searches for the newest mark before a foreign message on the shard's
// subject. The fence must still follow that message.
func (w *Writer) markBefore(ctx context.Context, stream jetstream.Stream, foreign, first uint64) (found foundMark, err error) {
	found.sequence = foreign
	for at := foreign - 1; at >= max(first, 1); at-- {
		m, err := stream.GetMsg(ctx, at)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return found, err
		}
		if err != nil || m.Subject != w.config.Streams.Names.MarkSubject(w.config.Shard) {
			continue
		}
		if mark, err := parseMark(m.Data); err == nil {
			found.shardMark = mark
			break
		}
	}
	return found, nil
}

// torn reports whether the records of a mark are missing, as they can be when a broker
// that does not sync lost power in the middle of a batch.
func torn(ctx context.Context, stream jetstream.Stream, mark *jetstream.RawStreamMsg, m *shardMark) (bool, error) {
	if m.Records == 0 {
		return false, nil
	}
	last, err := stream.GetMsg(ctx, mark.Sequence+uint64(m.Records))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return last.Header.Get(request.HeaderBatchID) != mark.Header.Get(request.HeaderBatchID), nil
}

// resolve decides what to do about a part whose mark was refused, because the last
// mark is another one than was known. done is true when the part is stored, by an
// earlier attempt or by a standby; false, without an error, means to send it again.
func (w *Writer) resolve(ctx context.Context, sent *shardMark) (done bool, err error) {
	found, err := w.lastMark(ctx)
	switch {
	case err != nil:
		return false, err
	case found.sequence > 0 && found.Position > 0 && !w.sameWork(&found.shardMark):
		return false, w.otherWriter(&found.shardMark, found.age)
	case found.sequence < w.known.sequence, found.place().compare(w.known.place) < 0,
		found.sequence != w.known.sequence && found.sequence <= w.lastEnd:
		return false, fmt.Errorf("message %d: %w", max(w.known.sequence, w.lastEnd), ErrLost)
	}
	w.adopt(found)
	return w.known.place.compare(sent.place()) >= 0, nil
}

// missing reports whether an error says that nothing takes messages on the subject.
func missing(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrStreamNotFound)
}

// restore makes a stream that was deleted under the run again. What it held is lost,
// so that the run must publish it again.
func (w *Writer) restore(ctx context.Context, cause error) error {
	_, _, err := w.leader(ctx)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return cause // the stream is there, its leader is not
	}
	if err := ensureStreams(ctx, w.js, w.config.Streams); err != nil {
		return err
	}
	return fmt.Errorf("the stream was deleted, and is made again: %w", ErrLost)
}

// Audit asks the broker whether it still has what it acknowledged, and repeats the mark of a shard
// that has been silent for a while, so that others see that its writer lives. The owner calls it at
// least every few seconds, also while nothing is published; it does something every auditEvery.
// ErrLost is as with Store; while the broker is away it says nothing.
func (w *Writer) Audit(ctx context.Context) error {
	if time.Since(w.audited) < auditEvery {
		return w.moveWatermark(ctx)
	}
	w.audited = time.Now()
	err := w.audit(ctx)
	if err == nil || request.Passes(err) {
		return nil
	}
	return fmt.Errorf("sinks: stream %s: %w", w.config.Streams.Names.Estimates, err)
}

// moveWatermark says that a shard is complete up to what has passed without being due.
func (w *Writer) moveWatermark(ctx context.Context) error {
	if w.config.Shards <= 1 || w.passed <= w.Published() || time.Since(w.renewed) < markQuietEvery {
		return nil
	}
	m := w.known.mark
	if !w.sameWork(&m) {
		m.Time = ""
	}
	m.Writer, m.Config, m.Log, m.Closed, m.Cut = w.config.Writer, w.config.Config, w.config.Log, false, false
	m.Position, m.Part, m.Parts, m.Quiet = w.passed, 1, 1, true
	err := w.storeMark(ctx, m)
	if err == nil || request.Passes(err) {
		return nil
	}
	return err
}

func (w *Writer) audit(ctx context.Context) error {
	_, info, err := w.leader(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return w.restore(ctx, err)
	case err != nil:
		return err
	case info.State.LastSeq < max(w.lastEnd, w.known.sequence), info.State.FirstSeq > w.known.sequence && w.known.sequence > 0:
		return fmt.Errorf("message %d: %w", max(w.lastEnd, w.known.sequence), ErrLost)
	case time.Since(w.ensured) > ensureEvery:
		w.ensured = time.Now()
		return ensureStreams(ctx, w.js, w.config.Streams)
	case time.Since(w.renewed) < markRenewEvery:
		return nil
	}
	return w.renew(ctx, w.known.mark)
}

// roomLookEvery is how often a writer that waits for a follower looks again.
const roomLookEvery = 200 * time.Millisecond

// awaitRoom waits until the broker can store a batch without discarding what the
// slowest follower has not taken yet.
func (w *Writer) awaitRoom(ctx context.Context, batch []*nats.Msg) error {
	if w.config.Needed == nil {
		return nil
	}
	const overhead = 250 // of a message: headers and what the store adds
	bytes := 0
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
		_, info, err := w.leader(ctx)
		if err != nil {
			return err
		}
		s, bytesMax := info.State, info.Config.MaxBytes
		w.free = max(bytesMax-int64(s.Bytes)-int64(bytes), 0) / int64(max(w.config.Shards, 1)) // others publish meanwhile
		if bytesMax <= 0 || s.Msgs == 0 || w.free > 0 || taken >= s.LastSeq {
			return nil
		}
		over := s.Bytes + uint64(bytes) - uint64(bytesMax)
		discarded := over/(s.Bytes/s.Msgs+1) + batchMessagesMax // a batch more than the average says
		if taken >= s.FirstSeq+discarded {
			return nil
		}
		w.tracker.Hold(fmt.Sprintf("the stream is full, and %s has not taken message %d and those after it", follower, taken+1))
		if err := request.Pause(ctx, roomLookEvery); err != nil {
			return err
		}
	}
}
