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

	"gqlstream/internal/request"
)

// ReaderConfig configures a reader: the output log, its shards and where to begin.
type ReaderConfig struct {
	Names  Names
	Shards int          // of the group; 0: 1
	Log    string       // name of the input log; records of other logs are ignored
	After  Cursor       // start after it; zero: at the beginning of the stream
	Alerts bool         // read the stream of alerts: each is an emission of one record
	Report *slog.Logger // gets a warning of messages that are passed over; nil: none
}

// logReader yields whole emissions of the output log, in the order of positions and with the
// records of all shards: each once, and none before all shards are complete up to it. It skips,
// with a warning, messages of other programs and batches without an end. While a shard is silent it
// holds the records of the others; beyond heldMessagesMax it holds only their marks and reads the
// records again later. It has one owner.
type logReader struct {
	config ReaderConfig
	feed   request.Feed
	reload request.Feed // for records that were not kept
	shards []shardFeed
	batch  *part  // of which records are still to come
	cursor Cursor // of the newest emission that was returned
	missed bool   // for the next emission
	behind uint64
	most   uint64 // heldMessagesMax; tests lower it

	passed   uint64    // messages passed over since it was last reported
	reported time.Time // when that was
}

const (
	passedReportEvery = time.Minute // interval of reports about skipped messages
	// how many records ahead of a silent shard are held
	heldMessagesMax = 50_000
)

// shardFeed holds the messages of one shard that were read and not returned yet.
type shardFeed struct {
	watermark uint64 // the shard is complete up to here, as far as was read
	parts     []*part
	whole     int // of the parts; those after them are of an emission that is not complete
}

// part is a part of an emission: a mark with its records.
type part struct {
	shardMark
	shard  int
	id     string          // of the batch
	end    uint64          // sequence of the last record
	before request.Message // from after which it is read again
	mark   request.Message // the same of its records
	// empty although the mark says that there are some: they are to be read again
	records [][]byte
}

// lacksRecords reports whether records of the part are to be read again, or were discarded.
func (p *part) lacksRecords() bool { return len(p.records) < p.Records }

// newLogReader returns a reader. It asks the broker nothing yet.
func newLogReader(js jetstream.JetStream, c ReaderConfig) *logReader {
	c.Shards = max(c.Shards, 1)
	c.Report = cmp.Or(c.Report, slog.New(slog.DiscardHandler))
	r := &logReader{
		config: c,
		cursor: c.After,
		shards: make([]shardFeed, c.Shards),
		most:   heldMessagesMax,
	}
	r.reload = request.Feed{JS: js, Stream: c.Names.Estimates, Trouble: func(err error) error {
		c.Report.Warn("the output log cannot be read", "error", err)
		return nil
	}}
	if r.feed = r.reload; c.Alerts {
		r.feed.Stream = c.Names.Alerts
	}
	r.feed.Last = request.Message{Sequence: c.After.Sequence, Stamp: c.After.Stamp}
	for k := range r.shards {
		r.shards[k].watermark = c.After.Position
	}
	return r
}

// Next waits for the next emission, however long the broker is away, and returns it. Its error is
// that of ctx.
func (r *logReader) Next(ctx context.Context) (*Stored, error) {
	for {
		if e, err := r.nextEmission(ctx); e != nil || err != nil {
			return e, err
		}
		before := r.feed.Last
		m, err := r.feed.Next(ctx)
		if err != nil {
			return nil, err
		}
		if m.Sequence != before.Sequence+1 {
			r.jump(m.Missed, before.Sequence, m.Sequence)
			before = request.Message{Sequence: m.Sequence - 1}
		}
		before.Msg = nil
		r.behind = m.Behind
		if !r.config.Alerts {
			r.read(m, before)
		} else if e := r.alert(m); e != nil {
			return e, nil
		}
	}
}

// Close stops reading. The reader must not be used after.
func (r *logReader) Close() { r.feed.Stop(); r.reload.Stop() }

// jump drops unfinished parts after messages went missing, or after the stream turned out to be
// another one.
func (r *logReader) jump(missed bool, from, to uint64) {
	r.batch = nil
	for k := range r.shards {
		r.shards[k].forgetBegun()
	}
	if missed {
		r.missed = true
		r.config.Report.Warn("messages of the output log were discarded before they were read",
			"after", from, "until", to-1)
	}
}

// read takes one message in.
func (r *logReader) read(m request.Message, before request.Message) {
	if b := r.batch; b != nil {
		if r.isRecord(m, b) {
			b.records = append(b.records, slices.Clone(m.Data()))
			if m.Sequence == b.end {
				r.batch = nil
				r.complete(b)
			}
			return
		}
		r.reportIgnored(m, "a batch is not whole")
		r.batch = nil
	}
	shard, isMark := r.config.Names.shardOf(m.Subject())
	mark, err := parseMark(m.Data())
	if !isMark || err != nil || shard >= r.config.Shards {
		r.reportIgnored(m, "not part of an emission")
		return
	}
	b := &part{
		shardMark: mark,
		shard:     shard,
		id:        m.Headers().Get(request.HeaderBatchID),
		end:       m.Sequence + uint64(mark.Records),
		before:    before,
		mark:      m,
	}
	b.mark.Msg = nil
	if mark.Records == 0 {
		r.complete(b)
		return
	}
	r.batch = b
}

// reportIgnored reports a message that is left out, now and then.
func (r *logReader) reportIgnored(m request.Message, why string) {
	if r.passed++; time.Since(r.reported) < passedReportEvery {
		return
	}
	r.config.Report.Warn("messages in the output log are ignored", "messages", r.passed, "newest",
		m.Sequence, "subject", m.Subject(), "because", why)
	r.passed, r.reported = 0, time.Now()
}

// alert returns a message of the stream of alerts as an emission. The stream has each transition
// once, ordered by place, so a transition at or before the newest one was read from a stream that
// has since been replaced.
func (r *logReader) alert(m request.Message) *Stored {
	at, ok := parsePlace(m.Headers().Get(headerPlace))
	if !ok || r.config.Log != "" && m.Headers().Get(headerLog) != r.config.Log {
		r.reportIgnored(m, "not an alert of this log")
		return nil
	}
	if at.Compare(r.cursor.Place) <= 0 {
		return nil
	}
	r.cursor = Cursor{
		Place: at, Sequence: m.Sequence, Stamp: m.Stamp, Digest: m.Headers().Get(headerDigest),
	}
	e := &Stored{
		Position: at.Position,
		Cursor:   r.cursor,
		Records:  [][]byte{slices.Clone(m.Data())},
		Missed:   r.missed,
		Behind:   m.Behind,
	}
	r.missed = false
	return e
}

// isRecord reports whether a message belongs to a batch.
func (r *logReader) isRecord(m request.Message, b *part) bool {
	return m.Sequence <= b.end && m.Headers().Get(request.HeaderBatchID) == b.id &&
		strings.HasPrefix(m.Subject(), strings.TrimSuffix(r.config.Names.estimateSubjects(), ">"))
}

// complete adds a part to those of its shard. Repeated marks, and emissions that were returned
// already, are at or before the watermark of the shard.
func (r *logReader) complete(p *part) {
	s := &r.shards[p.shard]
	if r.config.Log != "" && p.Log != r.config.Log || p.Position <= s.watermark {
		return
	}
	if begun := s.parts[s.whole:]; p.Part == 1 || len(begun) != p.Part-1 ||
		begun[0].Position != p.Position {
		s.forgetBegun()
		if p.Part > 1 { // its beginning was discarded
			return
		}
	}
	s.parts = append(s.parts, p)
	if p.end-r.again().Sequence > r.most {
		p.records = nil
	}
	if p.Part < p.Parts {
		return
	}
	if s.watermark = p.Position; p.Quiet {
		s.forgetBegun()
	}
	s.whole = len(s.parts)
}

// forgetBegun forgets the parts of an emission that is not complete.
func (s *shardFeed) forgetBegun() { s.parts = s.parts[:s.whole] }

// load reads the records of a part again, and continues where the previous part ends. Some may have
// been discarded.
func (r *logReader) load(ctx context.Context, p *part) error {
	if at := r.reload.Last; len(p.records) == 0 &&
		(at.Stamp == 0 || p.mark.Sequence-at.Sequence > r.most) { // or it is before
		r.reload.Close()
		r.reload.Last = p.mark
	}
	for before := r.reload.Last.Sequence; before < p.end; before = r.reload.Last.Sequence {
		m, err := r.reload.Next(ctx)
		if err != nil {
			return err // the records read so far are held
		}
		// the stream was replaced, and may have fewer messages for long
		if m.Sequence <= before {
			r.reload.Last.Stamp = 0 // so that the next part is looked for where it was
			return nil
		}
		if r.isRecord(m, p) {
			p.records = append(p.records, slices.Clone(m.Data()))
		}
	}
	return nil
}

// nextEmission returns the emission at the next position, with the parts of all shards, or nil
// while a shard is not complete up to there. Its error is that of ctx.
func (r *logReader) nextEmission(ctx context.Context) (e *Stored, err error) {
	next := uint64(math.MaxUint64)
	for _, s := range r.shards {
		if s.whole > 0 {
			next = min(next, s.parts[0].Position)
		}
	}
	if slices.ContainsFunc(r.shards, func(s shardFeed) bool { return s.watermark < next }) {
		return nil, nil
	}
	var parts []*part
	for _, s := range r.shards {
		for i := 0; err == nil && i < s.whole && s.parts[i].Position == next; i++ {
			if parts = append(parts, s.parts[i]); s.parts[i].lacksRecords() {
				err = r.load(ctx, s.parts[i])
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		s := &r.shards[p.shard]
		s.parts, s.whole = s.parts[1:], s.whole-1
	}
	if slices.ContainsFunc(parts, (*part).lacksRecords) { // the next emission reports it
		r.missed = true
		return r.nextEmission(ctx)
	}
	e, again := joined(parts), r.again()
	e.Cursor = Cursor{
		Place: Place{Position: next}, Sequence: again.Sequence, Stamp: again.Stamp,
		Digest: parts[0].Digest,
	}
	e.Missed = r.missed
	e.Behind = r.behind
	r.cursor = e.Cursor
	r.missed = false
	return e, nil
}

// again returns the message after which everything that was not returned begins.
func (r *logReader) again() request.Message {
	again := r.feed.Last
	if r.batch != nil {
		again = r.batch.before
	}
	for _, s := range r.shards {
		if len(s.parts) > 0 && s.parts[0].before.Sequence < again.Sequence {
			again = s.parts[0].before
		}
	}
	return again
}
