package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// Bounds of one reading of what is stored.
const (
	storedReadMax  = 50_000 // records of a community; of more the newest are read
	storedKeepMax  = 10_000 // records returned; of more every second is left out
	storedFetchMax = 500
	storedMarginOf = 8                // times as many records are read as are asked for, since they do not lie evenly
	storedIdleMax  = 30 * time.Second // then the server forgets a reader that died
)

// History reads back what was published of a log in; what was published of another one is left out.
// Any number of goroutines may use it.
type History struct {
	js    jetstream.JetStream
	names Names
	log   string // identity of the log in
}

// NewHistory returns a reader of what is published.
func NewHistory(js jetstream.JetStream, names Names, log string) *History {
	return &History{js, names, log}
}

// Latest returns the newest record of each community and method, where its position
// is at most until.
func (s *History) Latest(ctx context.Context, until uint64) (list []quant.Estimate, err error) {
	err = readNow(ctx, s.js, "KV_"+s.names.Latest, s.log, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: "$KV." + s.names.Latest + ".*.*", // of a method that is configured twice the first
	}, func(e quant.Estimate) bool {
		if e.Position <= until {
			list = append(list, e)
		}
		return true
	})
	return list, err
}

// RecordsQuery asks for the records of a community by a method.
type RecordsQuery struct {
	Community, Method string
	From, To          time.Time // of log time; zero: unbounded
	Newest            int       // without From, older ones than so many need not be read; 0: all are wanted
}

// Read returns the records in [From, To], oldest first, suppressed ones, which name no method,
// included. Unless whole is set, some are left out, because there are too many.
func (s *History) Read(ctx context.Context, q RecordsQuery) (list []quant.Estimate, whole bool, err error) {
	most := storedReadMax
	if q.From.IsZero() && q.Newest > 0 {
		most = min(most, storedMarginOf*q.Newest)
	}
	list, whole, err = s.read(ctx, q, most)
	if err == nil && !whole && len(list) < q.Newest && most < storedReadMax { // they do not lie evenly
		return s.read(ctx, q, storedReadMax)
	}
	return list, whole, err
}

// read is Read of about so many of the newest records.
func (s *History) read(ctx context.Context, q RecordsQuery, most int) (list []quant.Estimate, whole bool, err error) {
	subject := s.names.EstimateSubject(q.Community, q.Method, 0)
	c := jetstream.ConsumerConfig{
		FilterSubjects: slices.Compact([]string{subject, s.names.EstimateSubject(q.Community, "", 0)}), DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	start, whole, many, err := s.startOf(ctx, subject, q, most)
	if err != nil {
		return nil, false, err
	}
	if start > 0 {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, start
	}
	estimated := start > 0 // else what was suppressed before the first estimate is no history of the method
	err = readNow(ctx, s.js, s.names.Estimates, s.log, c, func(e quant.Estimate) (further bool) {
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if estimated = estimated || e.Method == q.Method; !estimated || err != nil && (!q.From.IsZero() || !q.To.IsZero()) || at.Before(q.From) {
			return true
		}
		if !q.To.IsZero() && at.After(q.To) {
			return !many // of few all are read, since a log that was published anew begins again
		}
		e.Method = q.Method
		if list = append(list, e); len(list) > storedKeepMax {
			half := list[:(len(list)+1)/2]
			for i := range half {
				half[i] = list[2*i] // every second one
			}
			list, whole = half, false
		}
		return true
	})
	return list, whole, err
}

// startOf returns from which sequence on about so many of the newest records of a subject in [From, To]
// lie, whether those are all of them, and whether the subject has more. 0 is the beginning.
func (s *History) startOf(ctx context.Context, subject string, q RecordsQuery, most int) (start uint64, whole, many bool, err error) {
	stream, err := s.js.Stream(ctx, s.names.Estimates)
	if err != nil {
		return 0, false, false, fmt.Errorf("sinks: stream %s: %w", s.names.Estimates, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, false, false, fmt.Errorf("sinks: stream %s: %w", s.names.Estimates, err)
	}
	if !q.From.IsZero() {
		before, ok, err := s.inForce(ctx, subject, 0, q.From.Add(-1))
		if err != nil {
			return 0, false, false, err
		}
		if ok {
			start = before.sequence + 1
		}
	}
	n, end := info.State.Subjects[subject], info.State.LastSeq
	if n <= uint64(most) {
		return start, true, false, nil
	}
	if !q.To.IsZero() {
		last, ok, err := s.inForce(ctx, subject, 0, q.To)
		if err != nil || !ok {
			return start, true, true, err // what is there is suppressed
		}
		end = last.sequence
	}
	span := float64(info.State.LastSeq-info.State.FirstSeq+1) * float64(most) / float64(n) // that holds so many, were they spread evenly
	if cut := end + 1 - min(end, uint64(max(span, 1))); cut > max(start, info.State.FirstSeq) {
		return cut, false, true, nil
	}
	return start, true, true, nil
}

// readNow calls visit for every message of a log that a consumer finds now, until visit returns
// false. The message is the JSON of a T, packed or not.
func readNow[T any](ctx context.Context, js jetstream.JetStream, stream, log string, c jetstream.ConsumerConfig, visit func(T) bool) (err error) {
	c.AckPolicy, c.MemoryStorage, c.InactiveThreshold = jetstream.AckNonePolicy, true, storedIdleMax
	consumer, err := js.CreateConsumer(ctx, stream, c)
	if err != nil {
		return fmt.Errorf("sinks: read stream %s: %w", stream, err)
	}
	defer func() {
		name := consumer.CachedInfo().Name
		if e := js.DeleteConsumer(context.WithoutCancel(ctx), stream, name); e != nil && err == nil {
			err = fmt.Errorf("sinks: read stream %s: %w", stream, e)
		}
	}()
	received := uint64(0)
	for all := consumer.CachedInfo().NumPending; received < all; {
		messages, err := consumer.FetchNoWait(storedFetchMax)
		if err != nil {
			return fmt.Errorf("sinks: read stream %s: %w", stream, err)
		}
		n, further := uint64(0), true
		for m := range messages.Messages() {
			n++
			var value T
			if further && m.Headers().Get(headerLog) == log && unpack(m.Data(), &value) == nil { // a record of this log
				further = visit(value)
			}
		}
		if err := errors.Join(messages.Error(), ctx.Err()); err != nil || !further {
			return err
		}
		if received += n; n > 0 {
			continue
		}
		// The library waits for a second, and says nothing of what comes later.
		info, err := consumer.Info(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("sinks: read stream %s: %w", stream, err)
		case info.Delivered.Consumer > received:
			return fmt.Errorf("sinks: read stream %s: the broker was too slow: %w", stream, nats.ErrTimeout)
		case info.NumPending == 0: // the rest was removed meanwhile
			return nil
		}
	}
	return nil
}

// lookup reads the messages of one subject of a stream. Each is the JSON of a T, packed or not.
type lookup[T any] struct {
	stream  jetstream.Stream
	subject string
	log     string
}

// stored is a message as it stands in the stream.
type stored[T any] struct {
	sequence uint64
	foreign  bool // of a log that is no more; the value is not to be used
	value    T
}

// openLookup returns a lookup in a stream as it is now. One that is not there has no messages.
func openLookup[T any](ctx context.Context, js jetstream.JetStream, stream, subject, log string) (*lookup[T], error) {
	s, err := js.Stream(ctx, stream)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("sinks: stream %s: %w", stream, err)
	}
	return &lookup[T]{stream: s, subject: subject, log: log}, nil
}

// InForce returns the record of a community and method that was in force at a position of the
// log, or at a time where the position is 0. ok is false when there is none.
func (s *History) InForce(ctx context.Context, community, method string, position uint64, at time.Time) (record quant.Estimate, ok bool, err error) {
	last, ok, err := s.inForce(ctx, s.names.EstimateSubject(community, method, 0), position, at)
	return last.value, ok, err
}

func (s *History) inForce(ctx context.Context, subject string, position uint64, at time.Time) (last stored[quant.Estimate], ok bool, err error) {
	l, err := openLookup[quant.Estimate](ctx, s.js, s.names.Estimates, subject, s.log)
	if err != nil {
		return last, false, err
	}
	key, bound := func(e *quant.Estimate) int64 { return int64(e.Position) }, int64(min(position, math.MaxInt64))
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
	return l.lastUpTo(ctx, key, bound)
}

// lastUpTo returns the last message whose key is at most a bound; keys never fall. It halves what is left
// of the stream until nothing is: to guess where evenly growing keys would be takes a quarter of the looks and
// as much time, since the broker has what is looked at first in memory.
func (l *lookup[T]) lastUpTo(ctx context.Context, key func(*T) int64, bound int64) (last stored[T], ok bool, err error) {
	if l.stream == nil {
		return last, false, nil
	}
	state := l.stream.CachedInfo().State
	for low, high := state.FirstSeq, state.LastSeq+1; low < high; { // from high on keys are beyond the bound
		middle := low + (high-low)/2
		s, found, err := l.next(ctx, middle)
		switch {
		case err != nil:
			return last, false, err
		case !found || s.sequence >= high || !s.foreign && key(&s.value) > bound:
			high = middle
		default: // what is foreign comes first
			if low = s.sequence + 1; !s.foreign || !ok {
				last, ok = s, !s.foreign
			}
		}
	}
	return last, ok, nil
}

// next returns the first message of the subject from a sequence on. What is nothing of ours, or damaged, is passed over.
func (l *lookup[T]) next(ctx context.Context, from uint64) (s stored[T], ok bool, err error) {
	for ; l.stream != nil; from = s.sequence + 1 {
		m, err := l.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(l.subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return s, false, fmt.Errorf("sinks: a message of %s: %w", l.subject, err)
		}
		of := m.Header.Get(headerLog)
		s = stored[T]{sequence: m.Sequence, foreign: l.log != "" && of != "" && of != l.log}
		if s.foreign || (l.log == "" || of != "") && unpack(m.Data, &s.value) == nil {
			return s, true, nil
		}
	}
	return s, false, nil
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
