package sinks

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/request"
)

// ReaderConfig configures a reader: the log out, its shards and where to begin.
type ReaderConfig struct {
	Names  Names
	Shards int          // of the group; 0: 1
	Log    string       // identity of the log in; what was published of another one is left out
	After  Cursor       // begin behind it; zero: with what the stream has
	Alerts bool         // read the stream of alerts: each is an emission of one record
	Report *slog.Logger // gets a warning of messages that are passed over; nil: none
}

// logReader yields whole emissions of the log out, in the order of positions and with the
// records of all shards: each once, none before all shards are complete up to it. What
// is no emission, such as a message of somebody else on our subjects, or a batch of
// which the end is missing, is passed over with a warning. It has one owner.
type logReader struct {
	config ReaderConfig
	feed   *feed
	shards []shardFeed
	batch  *openBatch // of which records are still to come
	cursor Cursor     // of the newest emission that was returned
	missed bool       // for the next emission
	behind uint64

	passed   uint64    // messages passed over since it was last reported
	reported time.Time // when that was
}

// passedReportEvery bounds how often a reader reports what it passes over.
const passedReportEvery = time.Minute

// shardFeed holds the emissions of one shard that were read and not returned yet.
type shardFeed struct {
	watermark uint64       // the shard is complete up to here, as far as was read
	partial   *readyOrPart // parts of an emission that is not complete
	ready     []*readyOrPart
}

// readyOrPart is an emission, or its first parts.
type readyOrPart struct {
	Stored
	parts  int         // read so far
	before feedMessage // from after which it is read again
}

// openBatch is a part whose records are being read.
type openBatch struct {
	mark   shardMark
	shard  int
	id     string
	ours   bool   // of the log that is read
	end    uint64 // sequence of its last record
	before feedMessage
	data   [][]byte
}

// newLogReader returns a reader. It asks the broker nothing yet.
func newLogReader(js jetstream.JetStream, c ReaderConfig) *logReader {
	c.Shards = max(c.Shards, 1)
	c.Report = cmp.Or(c.Report, slog.New(slog.DiscardHandler))
	r := &logReader{config: c, cursor: c.After, shards: make([]shardFeed, c.Shards)}
	r.feed = &feed{js: js, stream: c.Names.Estimates, last: feedMessage{sequence: c.After.Sequence, stamp: c.After.Stamp}}
	if c.Alerts {
		r.feed.stream = c.Names.Alerts
	}
	r.feed.trouble = func(err error) { c.Report.Warn("the log out cannot be read", "error", err) }
	for k := range r.shards {
		r.shards[k].watermark = c.After.Position
		if k > c.After.Shard {
			r.shards[k].watermark = max(c.After.Position, 1) - 1
		}
	}
	return r
}

// Next returns the next emission; it waits for it, whatever happens to the broker. Its
// error is that of ctx.
func (r *logReader) Next(ctx context.Context) (*Stored, error) {
	for {
		if e := r.take(); e != nil {
			return e, nil
		}
		before := r.feed.last
		m, missed, err := r.feed.next(ctx)
		if err != nil {
			return nil, err
		}
		if m.sequence != before.sequence+1 {
			r.jump(missed, before.sequence, m.sequence)
			before = feedMessage{sequence: m.sequence - 1}
		}
		before.Msg = nil
		r.behind = m.behind
		if !r.config.Alerts {
			r.read(m, before)
		} else if e := r.alert(m); e != nil {
			return e, nil
		}
	}
}

// Close stops reading. The reader must not be used after.
func (r *logReader) Close() { r.feed.stop() }

// jump forgets what was begun before messages went missing, or before the stream was
// found to be another one.
func (r *logReader) jump(missed bool, from, to uint64) {
	r.batch = nil
	for k := range r.shards {
		r.shards[k].partial = nil
	}
	if missed && r.cursor.Position > 0 {
		r.missed = true
		r.config.Report.Warn("messages of the log out were discarded before they were read", "after", from, "until", to-1)
	}
}

// read takes one message in.
func (r *logReader) read(m feedMessage, before feedMessage) {
	if b := r.batch; b != nil {
		if r.isRecord(m, b) {
			b.data = append(b.data, slices.Clone(m.Data()))
			if m.sequence == b.end {
				r.batch = nil
				r.complete(b)
			}
			return
		}
		r.passOver(m, "a batch is not whole")
		r.batch = nil
	}
	shard, isMark := r.config.Names.shardOf(m.Subject())
	mark, err := parseMark(m.Data())
	if !isMark || err != nil || shard >= r.config.Shards {
		r.passOver(m, "not part of an emission")
		return
	}
	b := &openBatch{
		mark: mark, shard: shard, id: m.Headers().Get(request.HeaderBatchID), ours: mark.Log == r.config.Log || r.config.Log == "",
		end: m.sequence + uint64(mark.Records), before: before,
	}
	if mark.Records == 0 {
		r.complete(b)
		return
	}
	r.batch = b
}

// passOver reports a message that is left out, now and then.
func (r *logReader) passOver(m feedMessage, why string) {
	if r.passed++; time.Since(r.reported) < passedReportEvery {
		return
	}
	r.config.Report.Warn("messages in the log out are passed over", "messages", r.passed, "newest", m.sequence,
		"subject", m.Subject(), "because", why)
	r.passed, r.reported = 0, time.Now()
}

// alert returns a message of the stream of alerts as an emission. The stream has each
// once, in the order of their places, so that one at or before the newest was read
// already, of a stream that has been made anew meanwhile.
func (r *logReader) alert(m feedMessage) *Stored {
	at, ok := parsePlace(m.Headers().Get(headerPlace))
	if !ok || r.config.Log != "" && m.Headers().Get(headerLog) != r.config.Log {
		r.passOver(m, "not an alert of this log")
		return nil
	}
	if at.compare(place{r.cursor.Position, r.cursor.Shard}) <= 0 {
		return nil
	}
	r.cursor = Cursor{Position: at.position, Shard: at.ordinal, Sequence: m.sequence, Stamp: m.stamp}
	e := &Stored{Position: at.position, Cursor: r.cursor, Records: [][]byte{slices.Clone(m.Data())}, Missed: r.missed, Behind: m.behind}
	r.missed = false
	return e
}

// isRecord reports whether a message belongs to a batch.
func (r *logReader) isRecord(m feedMessage, b *openBatch) bool {
	return m.sequence <= b.end && m.Headers().Get(request.HeaderBatchID) == b.id &&
		strings.HasPrefix(m.Subject(), strings.TrimSuffix(r.config.Names.estimateSubjects(), ">"))
}

// complete adds a part to its emission. Repeated marks, and what was returned already,
// are at or before the watermark of their shard.
func (r *logReader) complete(b *openBatch) {
	s := &r.shards[b.shard]
	if !b.ours || b.mark.Position <= s.watermark {
		return
	}
	if b.mark.Part == 1 {
		s.partial = &readyOrPart{before: b.before, Stored: Stored{
			Position: b.mark.Position, Time: b.mark.nanoseconds(), Cut: b.mark.Cut, Notes: b.mark.Notes,
		}}
	}
	p := s.partial
	if p == nil || p.Position != b.mark.Position || p.parts != b.mark.Part-1 {
		s.partial = nil // its beginning was discarded
		return
	}
	p.parts++
	p.Records = append(p.Records, b.data...)
	if b.mark.Part == b.mark.Parts {
		s.partial, s.watermark = nil, p.Position
		if !b.mark.Quiet {
			s.ready = append(s.ready, p)
		}
	}
}

// take returns the emission at the next position, with the parts of all shards, or nil
// while a shard is not complete up to there.
func (r *logReader) take() *Stored {
	next := uint64(math.MaxUint64)
	for k := range r.shards {
		if ready := r.shards[k].ready; len(ready) > 0 {
			next = min(next, ready[0].Position)
		}
	}
	var parts []*Stored
	for k := range r.shards {
		s := &r.shards[k]
		if s.watermark < next {
			return nil
		}
		if len(s.ready) > 0 && s.ready[0].Position == next {
			parts = append(parts, &s.ready[0].Stored)
		}
	}
	for k := range r.shards {
		if s := &r.shards[k]; len(s.ready) > 0 && s.ready[0].Position == next {
			s.ready = s.ready[1:]
		}
	}
	e, again := joined(parts), r.again()
	e.Cursor = Cursor{Position: next, Shard: len(r.shards) - 1, Sequence: again.sequence, Stamp: again.stamp}
	e.Missed, r.missed = r.missed, false
	e.Behind = r.behind
	r.cursor = e.Cursor
	return e
}

// again returns the message after which everything that was not returned begins.
func (r *logReader) again() feedMessage {
	again := r.feed.last
	earlier := func(m feedMessage) {
		if m.sequence < again.sequence {
			again = m
		}
	}
	if r.batch != nil {
		earlier(r.batch.before)
	}
	for k := range r.shards {
		if p := r.shards[k].partial; p != nil {
			earlier(p.before)
		}
		if ready := r.shards[k].ready; len(ready) > 0 {
			earlier(ready[0].before)
		}
	}
	return again
}
