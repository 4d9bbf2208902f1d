package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
)

// JetStreamConfig configures a source: the part of the stream to read, and how to cut it.
type JetStreamConfig struct {
	Stream string // empty: the default name of the log
	Step   StepConfig

	// From is the step after which reading begins; the zero value is the beginning.
	From Resume

	// Identity, when not nil, must match the stream at From.Position.
	Identity *Identity

	// Recorded are other recorded places of the log. OpenJetStream looks all of them up, and the
	// source compares those that it reaches with the prefix that it has read.
	Recorded []Place

	// Until ends the source after this position; zero means never. The stream must have it when the
	// source is opened.
	Until event.Position

	// UntilLast ends the source after the last position that the stream holds when
	// the source is opened. Until, when given too, wins if it is smaller.
	UntilLast bool
}

// stored is a message of the log as the broker stored it.
type stored struct {
	request.Message
	Position event.Position
	Time     time.Time  // when the broker stored it
	Digest   Digest     // of the log up to this message
	Log      event.Time // log time by receipt; see logClock
}

// JetStreamSource delivers a stream as steps. Invariant: each message that it takes has the next
// position, in the same stream; everything else is an error that matches ErrWrongHistory. One
// goroutine owns it, except for the methods that say otherwise.
type JetStreamSource struct {
	decoder  *wire.Decoder
	feed     request.Feed
	began    Identity // the place after which reading began
	given    bool     // began is known
	recorded []Place  // recorded places that are still ahead, by position
	read     stored   // newest message read; at the start only its position
	taken    stored   // into a step
	clock    logClock
	cutter   *Cutter
	mode     TimeMode
	until    event.Position // 0: never
	prefix   string         // of the subjects of the log
	copies   int            // of the stream
	skipped  skips          // see Skip
	limits   event.Limits
	held     stored // message that did not fit into the last step; no Msg: none
	err      error  // final

	pending atomic.Bool
	behind  atomic.Uint64
	ahead   atomic.Int64
}

// OpenJetStream checks that the stream can be read from the configured place, and starts reading.
// The source owns the decoder from then on. Close the source to free its consumer on the broker.
func OpenJetStream(
	ctx context.Context, js jetstream.JetStream, decoder *wire.Decoder, c JetStreamConfig,
) (*JetStreamSource, error) {
	if err := c.Step.Validate(); err != nil {
		return nil, err
	}
	c.Stream = cmp.Or(c.Stream, broker.DefaultStreamNames().Log)
	id := Start(c.Stream)
	id.Position = c.From.Position
	if c.Identity != nil {
		if id = *c.Identity; id.Position != c.From.Position || id.Stream != c.Stream {
			return nil, fmt.Errorf(
				"identity of stream %s at %d given for reading stream %s from %d",
				id.Stream, id.Position, c.Stream, c.From.Position)
		}
	}
	stream, err := js.Stream(ctx, c.Stream)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", c.Stream, err)
	}
	until, err := lastWanted(stream, c)
	if err != nil {
		return nil, err
	}
	limits, err := recordedLimits(stream.CachedInfo().Config)
	if err != nil {
		return nil, err
	}
	skipped, err := skippedMessages(stream.CachedInfo().Config)
	if err != nil {
		return nil, err
	}
	s := &JetStreamSource{
		decoder: decoder, began: id, given: c.Identity != nil,
		recorded: slices.SortedFunc(slices.Values(c.Recorded), comparePlaces),
		read:     stored{Position: id.Position}, clock: logClock{time: c.From.Time},
		cutter: NewCutter(c.Step, c.From), mode: c.Step.Time, until: until, limits: limits,
		prefix: broker.Subjects(c.Stream), copies: stream.CachedInfo().Config.Replicas,
		skipped: skipped,
	}
	s.feed = request.Feed{
		JS:      js,
		Stream:  c.Stream,
		Last:    request.Message{Sequence: uint64(id.Position)},
		Verify:  s.verify,
		Trouble: s.finalError,
	}
	if err := s.feed.Open(ctx); err != nil {
		s.feed.Close()
		return nil, err
	}
	if (c.Until > 0 || c.UntilLast) && (until == 0 || until < c.From.Position) {
		s.err = io.EOF // everything has been read; at the very end an emission can still be due
	}
	return s, nil
}

func comparePlaces(a, b Place) int { return cmp.Compare(a.Position, b.Position) }

// lastWanted returns the position after which a finite source ends, or 0.
func lastWanted(stream jetstream.Stream, c JetStreamConfig) (event.Position, error) {
	if c.Until == 0 && !c.UntilLast {
		return 0, nil
	}
	last := event.Position(stream.CachedInfo().State.LastSeq)
	switch {
	case c.Until == 0:
		return last, nil
	case c.Until > last && !c.UntilLast:
		return 0, fmt.Errorf("stream %s ends at position %d, before %d: %w",
			c.Stream, last, c.Until, ErrPastEnd)
	}
	return min(c.Until, last), nil
}

// Next implements Source. On a live stream it waits until the log itself ends the step, so somebody
// must put ticks into the log (see Ticker).
func (s *JetStreamSource) Next(ctx context.Context, b *event.Batch) error {
	s.cutter.Begin(b)
	if s.err != nil {
		return s.err
	}
	for {
		m, err := s.nextMessage(ctx)
		if errors.Is(err, io.EOF) {
			if s.cutter.Finish() {
				s.stepped(b)
				return nil
			}
			s.err = io.EOF
			return s.err
		}
		if err != nil {
			return s.fail(b, err)
		}
		complete, err := s.add(m, b)
		if err != nil {
			return s.fail(b, err)
		}
		if complete {
			s.stepped(b)
			return nil
		}
	}
}

// Close frees the source's consumer on the broker.
func (s *JetStreamSource) Close() error {
	s.feed.Close()
	return nil
}

// Identity returns the identity for a checkpoint at the last position of Next. The owner calls it
// between two calls of Next.
func (s *JetStreamSource) Identity() Identity { return s.began.at(&s.taken) }

// Limits returns the limits recorded in the log; see RecordLimits.
func (s *JetStreamSource) Limits() event.Limits { return s.limits }

// Pending reports whether events wait for the log to pass a boundary. Any goroutine may call it.
func (s *JetStreamSource) Pending() bool { return s.pending.Load() }

// JetStreamStats are running totals of a source.
type JetStreamStats struct {
	Behind uint64 // messages in the stream after the last one read, when it was read
	// Ahead is how far the log's time is ahead of the broker's clock or ours: a clock leapt, or an
	// event did.
	Ahead time.Duration
}

// Stats returns the totals. Any goroutine may call it.
func (s *JetStreamSource) Stats() JetStreamStats {
	return JetStreamStats{Behind: s.behind.Load(), Ahead: time.Duration(s.ahead.Load())}
}

// nextMessage returns the next message to offer to the cutter.
func (s *JetStreamSource) nextMessage(ctx context.Context) (stored, error) {
	if s.held.Msg != nil {
		m := s.held
		s.held = stored{}
		return m, nil
	}
	if s.until > 0 && max(s.read.Position, s.cutter.last) >= s.until {
		return stored{}, io.EOF
	}
	return s.next(ctx)
}

// next waits for the next message of the log and returns it.
func (s *JetStreamSource) next(ctx context.Context) (stored, error) {
	m, err := s.feed.Next(ctx)
	if err != nil {
		return stored{}, err
	}
	if hole := (Range{s.read.Position + 1, event.Position(m.Sequence) - 1}); m.Missed {
		if !s.skipped.has(hole) {
			return stored{}, s.began.missing(hole, s.copies)
		}
		s.began.Digest.Prefix = 0
		s.read.Digest.Prefix = 0 // the skipped messages are unknown, so the chain starts anew
	}
	at := time.Unix(0, m.Stamp)
	read := stored{
		Message:  m,
		Position: event.Position(m.Sequence),
		Time:     at,
		Log:      s.clock.advance(at),
	}
	if err := s.checkMessage(&read); err != nil {
		return stored{}, err
	}
	s.read = read
	return s.read, nil
}

// add decodes m into the current step, or holds it for the next one.
func (s *JetStreamSource) add(m stored, b *event.Batch) (complete bool, err error) {
	received := m.Log
	by := event.Time(m.Time.UnixNano())
	if s.mode == ReceivedTime && s.cutter.crosses(by) {
		s.held = m
		_, complete = s.cutter.Offer(Unit{Time: received, Received: by})
		return complete, nil
	}
	at := b.Counts()
	if err := s.decode(m, received, b); err != nil {
		return false, err
	}
	u := UnitSince(at, b, s.mode)
	u.Position, u.Bytes = m.Position, len(m.Data())
	if s.mode == ReceivedTime {
		u.Time, u.Received = received, by
	} else if most := s.timeMax(m); most != 0 {
		u.Time = min(u.Time, most)
	}
	taken, complete := s.cutter.Offer(u)
	if !taken {
		b.Rollback(at)
		s.held = m
		return complete, nil
	}
	s.taken = m
	if u.SetClock {
		s.clock.set(m.Time)
	}
	s.behind.Store(m.Behind)
	if s.mode == EventTime {
		s.ahead.Store(int64(max(s.cutter.time-event.Time(m.Time.UnixNano()), 0)))
	}
	if holdsMoreThanTicks(at, b) {
		s.pending.Store(true)
	}
	return complete, nil
}

// decode appends the content of m to b: its events and refusals, or one refusal of the whole
// message.
func (s *JetStreamSource) decode(m stored, received event.Time, b *event.Batch) error {
	kind, ok := broker.SubjectKind(s.prefix, m.Subject())
	if !ok {
		kind = event.Kind(event.Kinds)
	}
	if s.refuseSkipped(m, kind, b) {
		return nil
	}
	if s.mode == EventTime {
		received = 0 // an event without a time must not move the log's, as in files
	}
	header := m.Headers()
	message := wire.Message{
		Kind:        kind,
		ContentType: header.Get(wire.HeaderContentType),
		Schema:      header.Get(wire.HeaderSchema),
		Checksum:    header.Get(wire.HeaderChecksum),
		Payload:     m.Data(),
		RefusalsMax: messageEntriesMax,
		Position:    m.Position,
		Received:    received,
	}
	if header.Get(headerRetry) == "" { // not a retry by an operator
		message.Late, message.Now = s.cutter.config.Late, s.cutter.Now(received)
		if by := event.Time(m.Time.UnixNano()); s.mode == ReceivedTime && by < message.Now {
			message.Now = by // the log's time stands still after a leap of the broker's clock
		}
	}
	message.TimeMax = s.timeMax(m)
	err := s.decoder.Decode(message, b)
	if errors.Is(err, wire.ErrMalformed) {
		refusal := &b.Refused[len(b.Refused)-1]
		refusal.ContentType = message.ContentType
		if !ok {
			refusal.Detail = fmt.Sprintf("subject %q names no kind of event", m.Subject())
		}
		return nil
	}
	return err
}

// timeMax returns the latest allowed time of an event of a message; 0: any.
func (s *JetStreamSource) timeMax(m stored) event.Time {
	if ahead := s.cutter.config.Ahead; s.mode == EventTime && ahead > 0 {
		return event.Time(m.Time.Add(ahead).UnixNano())
	}
	return 0
}

// stepped updates the totals after a step.
func (s *JetStreamSource) stepped(b *event.Batch) {
	if s.mode == ReceivedTime {
		s.ahead.Store(int64(s.clock.ahead(time.Now())))
	}
	if b.Emit {
		s.pending.Store(false)
	}
}

// fail empties the partly filled batch and makes err final.
func (s *JetStreamSource) fail(b *event.Batch, err error) error {
	s.err = fmt.Errorf("after position %d: %w", s.read.Position, err)
	b.Reset()
	b.First, b.Last = 1, 0
	return s.err
}
