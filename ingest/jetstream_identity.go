package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/internal/request"
)

// ErrWrongHistory is matched by an error that says that the stream is not, or no longer, the log
// that was read before. No message of it was applied. Going on would mix two histories, so the
// pipeline must stop.
var ErrWrongHistory = errors.New("the stream is not the log that was read before")

// ErrPastEnd says that the stream does not have a requested position yet.
var ErrPastEnd = errors.New("the stream ends earlier")

// Identity names a place of the log by the log's content up to there. A checkpoint stores it; Check
// compares it with a stream before anything is consumed. The creation time of the stream does not
// matter, so a restored backup with the same content is accepted. The zero Position is the
// beginning of the log, which has no message to compare.
type Identity struct {
	Stream   string         `json:"stream"`
	Position event.Position `json:"position"`
	Digest   Digest         `json:"digest,omitzero"`
}

// Place is a recorded identity: of a checkpoint, a mark, or a position file beside an output.
type Place struct {
	Identity
	RecordedBy string // the record, in words
}

// Start returns the identity of the beginning of a log.
func Start(stream string) Identity {
	return Identity{Stream: stream, Digest: Digest{Prefix: prefixStart}}
}

// identityAt reads the identity of a log at a position that it has. Its prefix is unknown, except
// at the beginning.
func identityAt(ctx context.Context, s jetstream.Stream, p event.Position) (Identity, error) {
	id := Start(request.Leader(s).Config.Name)
	if p == 0 {
		return id, nil
	}
	m, err := s.GetMsg(ctx, uint64(p))
	if err != nil {
		return id, fmt.Errorf("stream %s: message %d: %w", id.Stream, p, err)
	}
	id.Position, id.Digest = p, Digest{Message: messageDigest(m.Subject, m.Time, m.Data)}
	return id, nil
}

// Check compares the identity with the broker's stream. An error that matches ErrWrongHistory says
// what differs and how to go on.
func (id Identity) Check(ctx context.Context, js jetstream.JetStream) error {
	return insist(ctx, func() error {
		s, err := js.Stream(ctx, id.Stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return id.wrong("it does not exist any more")
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", id.Stream, err)
		}
		_, err = id.check(ctx, s)
		return err
	})
}

const (
	// settledWithin is how long a server may lack the end of a replicated stream: a new leader
	// answers for the messages that it has stored so far, and may still have to fetch the rest from
	// the other servers.
	settledWithin     = 10 * time.Second
	identityRetryWait = 500 * time.Millisecond // until the next attempt
)

// missingEnd is an error that matches ErrWrongHistory, unless the answering server lags.
type missingEnd struct{ error }

func (e missingEnd) Unwrap() error { return e.error }

// insist repeats a check while the end of a stream may be missing on the answering server alone.
func insist(ctx context.Context, check func() error) error {
	for begun := time.Now(); ; {
		err := check()
		if !errors.As(err, new(missingEnd)) || time.Since(begun) >= settledWithin {
			return err
		}
		select {
		case <-time.After(identityRetryWait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// check is Check for a stream whose information was just read. It returns when the broker received
// the message at the position; zero for the beginning.
func (id Identity) check(ctx context.Context, s jetstream.Stream) (received time.Time, err error) {
	info := request.Leader(s)
	first := event.Position(info.State.FirstSeq)
	last := event.Position(info.State.LastSeq)
	switch {
	case last < id.Position:
		err = id.wrong("it ends at %d, but was read to %d: the broker lost messages, or an older"+
			" copy of its store was restored", last, id.Position)
		if info.Config.Replicas > 1 {
			err = missingEnd{err}
		}
		return received, err
	case first > max(id.Position, 1):
		return received, id.gone(ctx, s, Range{max(id.Position, 1), first - 1})
	case id.Position == 0:
		return received, nil
	}
	m, err := s.GetMsg(ctx, uint64(id.Position))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return received, id.gone(ctx, s, Range{id.Position, id.Position})
	}
	if err != nil {
		return received, fmt.Errorf("stream %s: message %d: %w",
			id.Stream, id.Position, err)
	}
	if got := messageDigest(m.Subject, m.Time, m.Data); got != id.Digest.Message {
		return received, id.wrong("message %d is another one now (digest %016x, was %016x)",
			id.Position, got, id.Digest.Message)
	}
	return m.Time, nil
}

// wayOn tells an operator how to go on with another log.
const wayOn = "Restore a backup of the log, or continue with the present log: run --accept-log" +
	" (docs/operations.md has the consequences)"

// gone returns the error about missing messages, among them the one at the position, unless the
// log's settings skip them.
func (id Identity) gone(ctx context.Context, s jetstream.Stream, hole Range) error {
	skipped, err := skippedMessages(s.CachedInfo().Config)
	if err != nil || skipped.has(hole) {
		return err
	}
	holes, err := Holes(ctx, s)
	if err != nil {
		return err
	}
	for _, one := range holes { // hole may be a part of one
		if one.First <= hole.First && hole.Last <= one.Last {
			hole = Range{max(one.First, min(hole.First, id.Position)), one.Last}
		}
	}
	return id.missing(hole, s.CachedInfo().Config.Replicas)
}

func (id Identity) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: stream %s: %s. %s",
		ErrWrongHistory, id.Stream, fmt.Sprintf(format, args...), wayOn)
}

// CheckPlaces compares places with the broker's log. Places before its purged beginning count as
// agreeing.
func CheckPlaces(ctx context.Context, js jetstream.JetStream, places []Place) error {
	if len(places) == 0 {
		return nil
	}
	return insist(ctx, func() error {
		s, err := js.Stream(ctx, places[0].Stream)
		if err != nil {
			return fmt.Errorf("stream %s: %w", places[0].Stream, err)
		}
		return checkRecorded(ctx, s, places)
	})
}

// checkRecorded checks that the log still agrees with every place that it has not purged. The error
// is a missingEnd if only the answering server may lack the end.
func checkRecorded(ctx context.Context, s jetstream.Stream, places []Place) error {
	first := event.Position(request.Leader(s).State.FirstSeq)
	for _, p := range places {
		if p.Position < max(first, 1) {
			continue
		}
		if p.Digest.Message == 0 { // only the position was recorded
			if last := event.Position(s.CachedInfo().State.LastSeq); last < p.Position {
				return p.pastEnd(s)
			}
			continue
		}
		if _, err := p.check(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", p.RecordedBy, err)
		}
	}
	return nil
}

// missing returns the error about messages that the log, or the answering server's copy, lacks.
func (id Identity) missing(hole Range, copies int) error {
	first := ""
	if copies > 1 {
		first = "First run gqlstream scrub: if it names one server whose copy lacks them, let the" +
			" servers copy the stream again (docs/operations.md, Damage on disk). Otherwise: "
	}
	return fmt.Errorf(
		"%w: stream %s: messages %d to %d are gone: they were deleted or purged, or the"+
			" broker lost them. %sRestore a backup of the log, or continue without them: run "+
			"--skip %s",
		ErrWrongHistory, id.Stream, hole.First, hole.Last, first, hole)
}

func (p Place) pastEnd(s jetstream.Stream) (err error) {
	info := s.CachedInfo()
	err = fmt.Errorf("%s: %w", p.RecordedBy, p.wrong("it ends at %d, but was read to %d: the "+
		"broker lost messages, or an older copy of its store was restored", info.State.LastSeq,
		p.Position))
	if info.Config.Replicas > 1 {
		err = missingEnd{err}
	}
	return err
}

// at returns the identity of the log at a later message; without a message it is unchanged.
func (id Identity) at(m *stored) Identity {
	if m.Msg != nil {
		id.Position, id.Digest = m.Position, m.Digest
	}
	return id
}

// finalError returns the error that ends reading after a failure of the feed, or nil if the feed
// can start again. A stream that is no longer the same ends reading. After silence the connection
// is replaced: its server may be gone without notice, and another one may be reachable.
func (s *JetStreamSource) finalError(cause error) error {
	nc := s.feed.JS.Conn()
	switch {
	case errors.Is(cause, ErrWrongHistory):
		return cause
	case errors.Is(cause, jetstream.ErrStreamNotFound):
		return s.began.wrong("it does not exist any more")
	case nc.IsClosed():
		return fmt.Errorf("stream %s: %w, after: %w",
			s.began.Stream, nats.ErrConnectionClosed, cause)
	case errors.Is(cause, jetstream.ErrNoHeartbeat):
		_ = nc.ForceReconnect() // an error means that it is closed; the next attempt reports that
	}
	return nil
}

// verify compares the stream with the one read before.
func (s *JetStreamSource) verify(ctx context.Context) error {
	return insist(ctx, func() error {
		ctx, cancel := request.Context(ctx, s.feed.JS.Conn())
		defer cancel()
		stream, err := s.feed.JS.Stream(ctx, s.began.Stream)
		if err != nil {
			return fmt.Errorf("stream %s: %w", s.began.Stream, err)
		}
		if !s.given {
			id, err := identityAt(ctx, stream, s.began.Position)
			if err != nil {
				return fmt.Errorf("%w; reading cannot continue there", err)
			}
			s.began, s.given = id, true
		}
		received, err := s.began.at(&s.read).check(ctx, stream)
		if err == nil && s.read.Msg == nil { // later ones are compared while the log is read
			err = checkRecorded(ctx, stream, s.recorded)
		}
		if err == nil {
			s.restoreClock(received)
		}
		return err
	})
}

// restoreClock sets the receipt time of the message after which the source began.
func (s *JetStreamSource) restoreClock(received time.Time) {
	if s.clock.received.IsZero() && !received.IsZero() && s.mode == ReceivedTime {
		s.cutter.boundary = event.Time(received.UnixNano())
	}
	s.clock.setFirst(received)
}

// checkMessage computes the digest of the log after a message, and compares it with the
// recorded places.
func (s *JetStreamSource) checkMessage(m *stored) error {
	before := s.began.at(&s.read).Digest.Prefix
	m.Digest = digestAfter(before, m.Subject(), m.Time, m.Headers(), m.Data())
	for len(s.recorded) > 0 && s.recorded[0].Position <= m.Position {
		p := s.recorded[0]
		s.recorded = s.recorded[1:]
		if p.Position == m.Position && p.Digest != (Digest{}) && !p.Digest.Agrees(m.Digest) {
			return fmt.Errorf("%s: %w", p.RecordedBy, p.wrong(
				"its content up to message %d differs from the log that was read (digest %s, was "+
					"%s)",
				p.Position, m.Digest, p.Digest))
		}
	}
	return nil
}
