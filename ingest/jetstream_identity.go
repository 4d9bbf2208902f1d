package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/request"
)

// ErrWrongHistory is matched by an error that says that the stream is not, or no longer, the log that was read
// before. Nothing of it was applied; going on would mix two histories, so the pipeline must stop.
var ErrWrongHistory = errors.New("ingest: the stream is not the log that was read before")

// ErrPastEnd says that a position was asked for that the stream does not have yet.
var ErrPastEnd = errors.New("the stream does not go so far")

// Identity names the log that was read, and the place. A checkpoint keeps it; Check compares it with a stream before
// anything is consumed. The zero Position stands for the beginning of the log, where there is no message to compare.
type Identity struct {
	Stream   string         `json:"stream"`
	Created  time.Time      `json:"created"`
	Position event.Position `json:"position"`
	Digest   string         `json:"digest,omitempty"` // of the message at Position
}

// IdentityAt reads the identity of the log at a position it has.
func IdentityAt(
	ctx context.Context,
	js jetstream.JetStream,
	stream string,
	p event.Position,
) (Identity, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return Identity{}, fmt.Errorf("ingest: stream %s: %w", stream, err)
	}
	return identityAt(ctx, s, p)
}

func identityAt(ctx context.Context, s jetstream.Stream, p event.Position) (Identity, error) {
	info := request.Leader(s)
	id := Identity{Stream: info.Config.Name, Created: info.Created, Position: p}
	if p == 0 {
		return id, nil
	}
	m, err := s.GetMsg(ctx, uint64(p))
	if err != nil {
		return id, fmt.Errorf("ingest: stream %s: message %d: %w", id.Stream, p, err)
	}
	id.Digest = messageDigest(m.Subject, m.Time, m.Data)
	return id, nil
}

// Check compares the identity with what the broker has now. An error that matches
// ErrWrongHistory says what differs and what to do.
func (id Identity) Check(ctx context.Context, js jetstream.JetStream) error {
	return insist(ctx, func() error {
		s, err := js.Stream(ctx, id.Stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return id.wrong("it does not exist any more")
		}
		if err != nil {
			return fmt.Errorf("ingest: stream %s: %w", id.Stream, err)
		}
		_, err = id.check(ctx, s)
		return err
	})
}

const (
	// settledWithin is how long a server may miss the end of a stream that several keep: one that has just become the
	// leader answers for what it has stored so far, and may have the rest still to take from the others' log.
	settledWithin     = 10 * time.Second
	identityRetryWait = 500 * time.Millisecond // until it is asked again
)

// missingEnd is an error that matches ErrWrongHistory, unless the server that was asked lags.
type missingEnd struct{ error }

func (e missingEnd) Unwrap() error { return e.error }

// insist repeats a check for as long as the end of a stream may be missing only where it looked.
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

// check does Check on a stream whose information was just read, and returns when the
// message at the position was received; zero for the beginning.
func (id Identity) check(ctx context.Context, s jetstream.Stream) (received time.Time, err error) {
	info := request.Leader(s)
	first, last := event.Position(info.State.FirstSeq), event.Position(info.State.LastSeq)
	switch {
	case !info.Created.Equal(id.Created):
		return received, id.wrong("it was created again at %s, the one that was read at %s",
			info.Created.Format(time.RFC3339Nano), id.Created.Format(time.RFC3339Nano))
	case last < id.Position:
		err = id.wrong("it ends at %d, but was read to %d: the broker lost messages, or an older"+
			" copy of its store was restored", last, id.Position)
		if info.Config.Replicas > 1 {
			err = missingEnd{err}
		}
		return received, err
	case id.Position > 0 && first > id.Position:
		return received, id.wrong(
			"it begins at %d, so message %d, to which it was read, is gone",
			first,
			id.Position,
		)
	case id.Position == 0 && first > 1:
		return received, id.wrong("it begins at %d: messages 1 to %d are gone", first, first-1)
	case id.Position == 0:
		return received, nil
	}
	m, err := s.GetMsg(ctx, uint64(id.Position))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return received, id.wrong("message %d, to which it was read, was deleted", id.Position)
	}
	if err != nil {
		return received, fmt.Errorf(
			"ingest: stream %s: message %d: %w",
			id.Stream,
			id.Position,
			err,
		)
	}
	if got := messageDigest(m.Subject, m.Time, m.Data); got != id.Digest {
		return received, id.wrong(
			"message %d is another one now (digest %s, was %s)",
			id.Position,
			got,
			id.Digest,
		)
	}
	return m.Time, nil
}

func (id Identity) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: stream %s: %s. Restore the stream, or start a new state directory",
		ErrWrongHistory, id.Stream, fmt.Sprintf(format, args...))
}

// at returns the identity of the log at a later message of it; without a message it is the same.
func (id Identity) at(m *stored) Identity {
	if m.Msg != nil {
		id.Position, id.Digest = m.Position, messageDigest(m.Subject(), m.Time, m.Data())
	}
	return id
}

// finalError returns the error with which reading ends, of what makes the feed begin anew; nil if it can. A
// stream that is not the same any more ends it. After silence the connection is made
// anew: the server at its other end may be gone without a word, and another be there.
func (s *JetStreamSource) finalError(cause error) error {
	nc := s.feed.JS.Conn()
	switch {
	case errors.Is(cause, ErrWrongHistory):
		return cause
	case errors.Is(cause, jetstream.ErrStreamNotFound):
		return s.began.wrong("it does not exist any more")
	case nc.IsClosed():
		return fmt.Errorf(
			"ingest: stream %s: %w, after: %w",
			s.began.Stream,
			nats.ErrConnectionClosed,
			cause,
		)
	case errors.Is(cause, jetstream.ErrNoHeartbeat):
		_ = nc.ForceReconnect() // an error says that it is closed, which the next attempt finds
	}
	return nil
}

// verify compares the stream with the one that was read before.
func (s *JetStreamSource) verify(ctx context.Context) error {
	return insist(ctx, func() error {
		ctx, cancel := request.Context(ctx, s.feed.JS.Conn())
		defer cancel()
		stream, err := s.feed.JS.Stream(ctx, s.began.Stream)
		if err != nil {
			return fmt.Errorf("ingest: stream %s: %w", s.began.Stream, err)
		}
		if s.began.Created.IsZero() {
			id, err := identityAt(ctx, stream, s.began.Position)
			if err != nil {
				return fmt.Errorf("%w; it cannot be read on from there", err)
			}
			s.began = id
		}
		received, err := s.began.at(&s.read).check(ctx, stream)
		if err == nil {
			s.clock.begin(received)
		}
		return err
	})
}

// messageDigest identifies a stored message: xxhash64 over its broker time, its
// subject and its payload. It guards against mistakes, not against forgery.
func messageDigest(subject string, stored time.Time, payload []byte) string {
	d := xxhash.New()
	d.Write(binary.LittleEndian.AppendUint64(nil, uint64(stored.UnixNano())))
	d.WriteString(subject)
	d.Write([]byte{0})
	d.Write(payload)
	return fmt.Sprintf("%016x", d.Sum64())
}
