package sinks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
	"gqlstream/quant"
)

// recordsMax bounds the records of one reading.
const recordsMax = 10_000

// History reads the published records of one input log and ignores those of other logs. Any number
// of goroutines may use it.
type History struct {
	js    jetstream.JetStream
	names Names
	log   string // identity of the input log
}

// NewHistory returns a reader of published records.
func NewHistory(js jetstream.JetStream, names Names, log string) *History {
	return &History{js, names, log}
}

// Latest returns the newest record of each community and method, where its position
// is at most until.
func (s *History) Latest(ctx context.Context, until uint64) (list []quant.Estimate, err error) {
	bucket := reading[quant.Estimate]{
		s.js,
		"KV_" + s.names.Latest,
		s.log,
		[]string{"$KV." + s.names.Latest + ".*.*"},
	} // of a method that is configured twice the first
	err = bucket.newest(ctx, func(e quant.Estimate) bool {
		if e.Position <= until {
			list = append(list, e)
		}
		return true
	})
	return list, err
}

// RecordsQuery asks for the newest records of a community by a method.
type RecordsQuery struct {
	Community, Method string
	From, To          time.Time // of log time; zero: unbounded
	Most              int       // number of the newest, at most recordsMax; 0: recordsMax
}

// Read returns the records in [From, To], oldest first, suppressed ones, which name no method,
// included. Unless whole is set there are older ones. It reads some more than it returns: a part of
// the stream that would have them were all records spread evenly, and twice as much until they are
// there.
func (s *History) Read(
	ctx context.Context,
	q RecordsQuery,
) (list []quant.Estimate, whole bool, err error) {
	records := s.records(q.Community, q.Method)
	stream, err := s.js.Stream(ctx, records.stream)
	var info *jetstream.StreamInfo
	if err == nil {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter(records.subjects[0]))
	}
	if err != nil {
		return nil, false, fmt.Errorf("stream %s: %w", records.stream, err)
	}
	state, end := info.State, info.State.LastSeq
	if !q.To.IsZero() {
		last, _, err := inForce(ctx, records, 0, q.To)
		if err != nil {
			return nil, false, err
		}
		end = last.sequence
	}
	most := min(cmp.Or(q.Most, recordsMax), recordsMax)
	span := (state.LastSeq-state.FirstSeq)/max(state.Subjects[records.subjects[0]], 1)*
		uint64(most) + uint64(most)
	for ; len(list) <= most && !whole; span *= 2 {
		after := end - min(end, span)
		if list, whole, err = s.readAfter(ctx, records, q, after, most); err != nil {
			return nil, false, err
		}
		whole = whole || after < max(state.FirstSeq, 1)
	}
	if len(list) > most {
		list, whole = list[len(list)-most:], false
	}
	return list, whole, nil
}

// readAfter returns the newest records in [From, To] that come after a sequence, one more than are
// wanted at most or some more, and whether there is one before them.
func (s *History) readAfter(
	ctx context.Context, records reading[quant.Estimate], q RecordsQuery, after uint64, most int,
) (list []quant.Estimate, begun bool, err error) {
	// else records that were suppressed before the first estimate are no history of the method
	estimated := after > 0
	records.subjects = append(records.subjects, s.names.EstimateSubject(q.Community, "", 0))
	err = records.each(ctx, after, func(e quant.Estimate) (further bool) {
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if estimated = estimated || e.Method == q.Method; !estimated ||
			err != nil && (!q.From.IsZero() || !q.To.IsZero()) ||
			at.Before(q.From) {
			begun = begun || at.Before(q.From)
			return true
		}
		if !q.To.IsZero() && at.After(q.To) {
			return false
		}
		e.Method = q.Method
		if list = append(list, e); len(list) > 2*most {
			list = slices.Delete(list, 0, len(list)-most-1)
		}
		return true
	})
	return list, begun, err
}

// records are those of a community by a method that name it.
func (s *History) records(community, method string) reading[quant.Estimate] {
	return reading[quant.Estimate]{
		s.js,
		s.names.Estimates,
		s.log,
		[]string{s.names.EstimateSubject(community, method, 0)},
	}
}

// InForce returns the record of a community and method that was in force at a position of the
// log, or at a time where the position is 0. ok is false when there is none.
func (s *History) InForce(
	ctx context.Context, community, method string, position uint64, at time.Time,
) (record quant.Estimate, ok bool, err error) {
	last, ok, err := inForce(ctx, s.records(community, method), position, at)
	return last.value, ok, err
}

func inForce(
	ctx context.Context, records reading[quant.Estimate], position uint64, at time.Time,
) (last stored[quant.Estimate], ok bool, err error) {
	key := func(e *quant.Estimate) int64 { return int64(e.Position) }
	bound := int64(min(position, math.MaxInt64))
	if position == 0 {
		key, bound = func(e *quant.Estimate) int64 {
			t, _ := time.Parse(time.RFC3339Nano, e.Time)
			return t.UnixNano()
		}, at.UnixNano()
		switch { // beyond the times that an int64 holds
		case at.Year() < 1678:
			bound = math.MinInt64
		case at.Year() > 2261:
			bound = math.MaxInt64
		}
	}
	return records.lastUpTo(ctx, key, bound)
}

// reading reads the present messages of some subjects of a stream. Each message is the JSON of a T,
// compressed or not. It skips messages of another log or another program. A missing stream is
// empty.
type reading[T any] struct {
	js       jetstream.JetStream
	stream   string
	log      string // identity of the input log
	subjects []string
}

// each calls visit for every message after a sequence, until visit returns false.
func (r reading[T]) each(ctx context.Context, after uint64, visit func(T) bool) error {
	return r.visit(ctx,
		&request.Feed{JS: r.js, Stream: r.stream, Subjects: slices.Compact(r.subjects)}, after,
		visit)
}

// newest calls visit for the newest message of each subject, until visit returns false.
func (r reading[T]) newest(ctx context.Context, visit func(T) bool) error {
	return r.visit(ctx,
		&request.Feed{JS: r.js, Stream: r.stream, Subjects: r.subjects, Newest: true}, 0, visit)
}

func (r reading[T]) visit(
	ctx context.Context, feed *request.Feed, after uint64, visit func(T) bool,
) error {
	err := feed.Each(ctx, after, func(m request.Message) (further bool, err error) {
		var value T
		if m.Headers().Get(headerLog) != r.log || unpack(m.Data(), &value) != nil {
			return true, nil
		}
		return visit(value), nil
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("read stream %s: %w", r.stream, err)
	}
	return nil
}

// stored is a message as it stands in the stream.
type stored[T any] struct {
	sequence uint64
	foreign  bool // of a log that is no more; the value is not to be used
	value    T
}

// lastUpTo returns the last message of the first subject with a key of at most bound. Keys decrease
// only at a clock event that set log time back. In that case lastUpTo may return an earlier
// message, unless the newest message is the answer. If no message fits, last holds the sequence of
// the last foreign message. lastUpTo bisects the stream. Interpolation would need a quarter of the
// look-ups but as much time, since the broker has the first look-ups in memory.
func (r reading[T]) lastUpTo(
	ctx context.Context,
	key func(*T) int64,
	bound int64,
) (last stored[T], ok bool, err error) {
	stream, err := r.js.Stream(ctx, r.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return last, false, nil
	}
	if err != nil {
		return last, false, fmt.Errorf("stream %s: %w", r.stream, err)
	}
	if last, ok, err = r.newestUpTo(ctx, stream, key, bound); ok || err != nil {
		return last, ok, err
	}
	state := stream.CachedInfo().State
	// from high on keys are beyond the bound
	for low, high := state.FirstSeq, state.LastSeq+1; low < high; {
		middle := low + (high-low)/2
		s, found, err := r.first(ctx, stream, middle)
		switch {
		case err != nil:
			return last, false, fmt.Errorf("a message of %s: %w", r.subjects[0], err)
		case !found || s.sequence >= high || !s.foreign && key(&s.value) > bound:
			high = middle
		default: // foreign messages come first
			if low = s.sequence + 1; !s.foreign || !ok {
				last, ok = s, !s.foreign
			}
		}
	}
	return last, ok, nil
}

// newestUpTo returns the newest message of the first subject if its key is at most a bound.
func (r reading[T]) newestUpTo(
	ctx context.Context, stream jetstream.Stream, key func(*T) int64, bound int64,
) (s stored[T], ok bool, err error) {
	m, err := stream.GetLastMsgForSubject(ctx, r.subjects[0])
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("a message of %s: %w", r.subjects[0], err)
	}
	s.sequence = m.Sequence
	ok = m.Header.Get(headerLog) == r.log && unpack(m.Data, &s.value) == nil &&
		key(&s.value) <= bound
	if !ok {
		return stored[T]{}, false, nil
	}
	return s, true, nil
}

// first returns the first message of the first subject from a sequence on. It skips damaged
// messages and those of other programs.
func (r reading[T]) first(
	ctx context.Context,
	stream jetstream.Stream,
	from uint64,
) (s stored[T], ok bool, err error) {
	for {
		m, err := stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(r.subjects[0]))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return s, false, nil
		}
		if err != nil {
			return s, false, err
		}
		of := m.Header.Get(headerLog)
		s = stored[T]{sequence: m.Sequence, foreign: of != "" && of != r.log}
		if s.foreign || of != "" && unpack(m.Data, &s.value) == nil {
			return s, true, nil
		}
		from = m.Sequence + 1
	}
}

// unpack reads JSON that may be packed.
func unpack(data []byte, value any) (err error) {
	var plain io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, gzipMagic) {
		plain, err = gzip.NewReader(plain)
	}
	if err != nil {
		return err
	}
	return json.NewDecoder(plain).Decode(value)
}

// gzipMagic begins a packed message. No JSON begins with it.
var gzipMagic = []byte{0x1f, 0x8b}
