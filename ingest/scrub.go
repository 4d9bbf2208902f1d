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

// Scrubbed is the result of reading a whole stream, on every server that keeps it.
type Scrubbed struct {
	Messages uint64
	First    uint64   // sequence of the first message
	Holes    []Range  // messages that no server delivers
	Agreeing int      // places that agree, in every copy
	Bad      []error  // other places, and copies that lack messages
	Unread   []string // servers that do not answer
}

// Scrub reads every message of every copy of a stream, so that each server verifies its own, and
// compares the digest of the log with every recorded place. Streams other than the log have no
// recorded places; check, if it is not nil, says what is wrong with a message of theirs.
func Scrub(
	ctx context.Context, js jetstream.JetStream, stream string, places []Place,
	check func(data []byte) error,
) (s Scrubbed, err error) {
	info, err := js.Stream(ctx, stream)
	if err != nil {
		return s, fmt.Errorf("stream %s: %w", stream, err)
	}
	last := event.Position(info.CachedInfo().State.LastSeq)
	for _, p := range places {
		if p.Position > last {
			s.Bad = append(s.Bad, fmt.Errorf("%s: the log ends at %d, and was read to %d",
				p.RecordedBy, last, p.Position))
		}
	}
	places = slices.SortedFunc(slices.Values(places), comparePlaces)
	servers, offline := request.Copies(info)
	s.Unread = offline
	var copies []scrubbedCopy
	for _, server := range servers {
		c := scrubbedCopy{js: js, stream: stream, server: server, check: check}
		if err := c.read(ctx, info, places); err != nil {
			return s, err
		}
		copies = append(copies, c)
	}
	s.merge(copies, stream)
	return s, nil
}

// merge fills the result from those of all copies. Holes that all of them have are the stream's.
func (s *Scrubbed) merge(copies []scrubbedCopy, stream string) {
	s.First, s.Agreeing, s.Holes = copies[0].first, copies[0].agreeing, copies[0].holes
	for _, c := range copies[1:] {
		s.Agreeing = min(s.Agreeing, c.agreeing)
		s.Holes = commonHoles(s.Holes, c.holes)
	}
	for _, c := range copies {
		s.Messages = max(s.Messages, c.messages)
		of := ""
		if c.server != "" {
			of = fmt.Sprintf("server %s: ", c.server)
		}
		for _, err := range c.bad {
			s.Bad = append(s.Bad, fmt.Errorf("%s%w", of, err))
		}
		if !slices.Equal(c.holes, s.Holes) {
			s.Bad = append(s.Bad, fmt.Errorf("%sits copy of %s lacks messages %v, which another "+
				"server has", of, stream, c.holes))
		}
	}
}

// commonHoles returns the messages that two lists of holes have in common. Both are in order.
func commonHoles(a, b []Range) (common []Range) {
	for len(a) > 0 && len(b) > 0 {
		r := Range{max(a[0].First, b[0].First), min(a[0].Last, b[0].Last)}
		if r.First <= r.Last {
			common = append(common, r)
		}
		if a[0].Last < b[0].Last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return common
}

// scrubbedCopy is the copy of a stream on one server.
type scrubbedCopy struct {
	js     jetstream.JetStream
	stream string
	server string // empty: there is one copy
	check  func(data []byte) error

	first    uint64
	messages uint64
	holes    []Range
	agreeing int
	bad      []error

	at     uint64 // sequence of the last message read
	digest Digest // of the log up to it
}

// copyLagWait is how long a server that lags gets for its next messages, copyLagTries times.
const (
	copyLagWait  = time.Second
	copyLagTries = 5
)

// read reads the whole copy.
func (c *scrubbedCopy) read(ctx context.Context, stream jetstream.Stream, places []Place) error {
	state := stream.CachedInfo().State
	c.first = state.FirstSeq
	if c.at = max(state.FirstSeq, 1) - 1; c.at == 0 {
		c.digest.Prefix = prefixStart
	}
	feed := request.Feed{JS: c.js, Stream: c.stream, Server: c.server}
	visit := func(m request.Message) (bool, error) {
		places = c.visit(m, places)
		return c.at < state.LastSeq, nil
	}
	err := feed.Each(ctx, c.at, visit)
	for tries := 0; c.server != "" && err == nil && c.at < state.LastSeq &&
		tries < copyLagTries; tries++ {
		if err = request.Pause(ctx, copyLagWait); err == nil {
			err = feed.Each(ctx, c.at, visit)
		}
	}
	if c.at < state.LastSeq && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
		c.holes = append(c.holes, Range{event.Position(c.at + 1), event.Position(state.LastSeq)})
		err = nil
	}
	return errors.Join(err, c.excuse(ctx, stream))
}

// visit takes the next message, and returns the places that lie behind it.
func (c *scrubbedCopy) visit(m request.Message, places []Place) []Place {
	if m.Sequence != c.at+1 {
		c.holes = append(c.holes,
			Range{event.Position(c.at + 1), event.Position(m.Sequence - 1)})
		c.digest.Prefix = 0
	}
	c.at = m.Sequence
	c.messages++
	if c.check != nil {
		if err := c.check(m.Data()); err != nil {
			c.bad = append(c.bad, fmt.Errorf("message %d of %s is not what was stored: %w",
				c.at, c.stream, err))
		}
	}
	c.digest = digestAfter(c.digest.Prefix, m.Subject(), time.Unix(0, m.Stamp), m.Headers(),
		m.Data())
	return c.compare(places, event.Position(c.at), c.digest)
}

// compare holds the places up to a position against the digest there, and returns the others.
func (c *scrubbedCopy) compare(places []Place, at event.Position, digest Digest) []Place {
	for len(places) > 0 && places[0].Position <= at {
		p := places[0]
		places = places[1:]
		switch {
		case p.Position < at || p.Digest == Digest{}:
			// the message is gone, or only its position is known
		case p.Digest.Agrees(digest):
			c.agreeing++
		default:
			c.bad = append(c.bad, fmt.Errorf(
				"%s: message %d, or one before it, is another one now", p.RecordedBy, p.Position))
		}
	}
	return places
}

// excuse removes the holes that are no damage: messages that are skipped, and those that were
// removed from the beginning of the stream meanwhile.
func (c *scrubbedCopy) excuse(ctx context.Context, stream jetstream.Stream) error {
	skipped, err := skippedMessages(stream.CachedInfo().Config)
	c.holes = slices.DeleteFunc(c.holes, skipped.has)
	if now, failed := stream.Info(ctx); failed == nil {
		c.holes = slices.DeleteFunc(c.holes,
			func(hole Range) bool { return hole.Last < event.Position(now.State.FirstSeq) })
	}
	return err
}
