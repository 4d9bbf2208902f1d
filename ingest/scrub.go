package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/internal/request"
)

// Scrubbed is the result of reading a whole stream.
type Scrubbed struct {
	Messages uint64
	First    uint64  // sequence of the first message
	Holes    []Range // messages that the broker does not deliver
	Kept     int     // places that agree
	Bad      []error // places that do not
}

// Scrub reads every message of a stream, so that the broker verifies each, and compares the digest
// of the log with every recorded place. Streams other than the log have no recorded places; check,
// if it is not nil, says what is wrong with a message of theirs.
func Scrub(
	ctx context.Context, js jetstream.JetStream, stream string, kept []Place,
	check func(data []byte) error,
) (s Scrubbed, err error) {
	info, err := js.Stream(ctx, stream)
	if err != nil {
		return s, fmt.Errorf("stream %s: %w", stream, err)
	}
	state := info.CachedInfo().State
	s.First = state.FirstSeq
	at, digest := max(state.FirstSeq, 1)-1, Digest{}
	if at == 0 {
		digest.Prefix = prefixStart
	}
	kept = slices.SortedFunc(slices.Values(kept), comparePlaces)
	feed := request.Feed{JS: js, Stream: stream}
	err = feed.Each(ctx, at, func(m request.Message) (bool, error) {
		if m.Sequence != at+1 {
			s.Holes = append(s.Holes, Range{event.Position(at + 1), event.Position(m.Sequence - 1)})
			digest.Prefix = 0
		}
		at = m.Sequence
		s.Messages++
		if check != nil {
			if err := check(m.Data()); err != nil {
				s.Bad = append(s.Bad, fmt.Errorf("message %d of %s is not what was stored: %w",
					at, stream, err))
			}
		}
		digest = digestAfter(digest.Prefix, m.Subject(), time.Unix(0, m.Stamp), m.Headers(),
			m.Data())
		kept = s.compare(kept, event.Position(at), digest)
		return at < state.LastSeq, nil
	})
	if at < state.LastSeq && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
		s.Holes = append(s.Holes, Range{event.Position(at + 1), event.Position(state.LastSeq)})
		err = nil
	}
	err = errors.Join(err, s.excuse(ctx, info))
	for _, p := range kept {
		if p.Position > event.Position(state.LastSeq) {
			s.Bad = append(s.Bad, fmt.Errorf("%s: the log ends at %d, and was read to %d",
				p.KeptBy, state.LastSeq, p.Position))
		}
	}
	return s, err
}

// compare holds the places up to a position against the digest there, and returns the others.
func (s *Scrubbed) compare(kept []Place, at event.Position, digest Digest) []Place {
	for len(kept) > 0 && kept[0].Position <= at {
		p := kept[0]
		kept = kept[1:]
		switch {
		case p.Position < at || p.Digest == Digest{}:
			// the message is gone, or only its position is known
		case p.Digest.Agrees(digest):
			s.Kept++
		default:
			s.Bad = append(s.Bad, fmt.Errorf(
				"%s: message %d, or one before it, is another one now", p.KeptBy, p.Position))
		}
	}
	return kept
}

// excuse removes the holes that are no damage: messages that are skipped, and those that were
// removed from the beginning of the stream meanwhile.
func (s *Scrubbed) excuse(ctx context.Context, stream jetstream.Stream) error {
	skipped, err := skippedMessages(stream.CachedInfo().Config)
	s.Holes = slices.DeleteFunc(s.Holes, skipped.has)
	if now, failed := stream.Info(ctx); failed == nil {
		s.Holes = slices.DeleteFunc(s.Holes,
			func(hole Range) bool { return hole.Last < event.Position(now.State.FirstSeq) })
	}
	return err
}
