package sinks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// Bounds of one reading of what is stored.
const (
	storedReadMax  = 50_000 // records of a community; of more the newest are read
	storedKeepMax  = 10_000 // records returned; of more every second is left out
	storedFetchMax = 500
	storedIdleMax  = 30 * time.Second // then the server forgets a reader that died
)

// Stored reads back what NATS and Latest have written. Any number of goroutines may
// use it.
type Stored struct {
	js     jetstream.JetStream
	config NATSConfig
}

// NewStored returns a reader on nc of the records of one log.
func NewStored(nc *nats.Conn, c NATSConfig) (*Stored, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("sinks: %w", err)
	}
	return &Stored{js: js, config: c.withDefaults()}, nil
}

// Latest returns the newest record of each community and method, where its position
// is at most until.
func (s *Stored) Latest(ctx context.Context, until uint64) (list []quant.Estimate, err error) {
	err = s.read(ctx, "KV_"+s.config.Bucket, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: "$KV." + s.config.Bucket + ".>",
	}, func(e quant.Estimate) {
		if e.Position <= until {
			list = append(list, e)
		}
	})
	return list, err
}

// emitted is what one emission had of one community.
type emitted struct {
	position uint64
	records  []quant.Estimate
}

// Newest visits, of each community that the stream holds, the emissions up to a position
// that have its newest record of some method, newest first: what Latest keeps.
func (s *Stored) Newest(ctx context.Context, until uint64, visit func(context.Context, []quant.Estimate) error) error {
	now := map[string]*emitted{}               // by community
	newest := map[string]map[string]*emitted{} // by community and key
	err := s.read(ctx, s.config.Stream, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}, func(e quant.Estimate) {
		if e.Position > until {
			return
		}
		at := now[e.Community]
		if at == nil || at.position != e.Position {
			at = &emitted{position: e.Position}
			now[e.Community] = at
		}
		if newest[e.Community] == nil {
			newest[e.Community] = map[string]*emitted{}
		}
		newest[e.Community][LatestKey(e.Community, e.Method, at.count(e.Method))] = at
		at.records = append(at.records, e)
	})
	if err != nil {
		return err
	}
	for _, community := range slices.Sorted(maps.Keys(newest)) {
		list := slices.SortedFunc(maps.Values(newest[community]), func(a, b *emitted) int { return cmp.Compare(b.position, a.position) })
		for _, at := range slices.Compact(list) {
			if err := visit(ctx, at.records); err != nil {
				return err
			}
		}
	}
	return nil
}

// count returns how many records of a method there are.
func (e *emitted) count(method string) (n int) {
	for i := range e.records {
		if e.records[i].Method == method {
			n++
		}
	}
	return n
}

// Between returns the records of a community by a method with a log time in
// [from, to], oldest first; a zero time is unbounded. Unless whole is set, some are
// left out, because there are too many.
func (s *Stored) Between(ctx context.Context, community, method string, from, to time.Time) (
	list []quant.Estimate, whole bool, err error,
) {
	subject := EstimateSubject(community)
	c := jetstream.ConsumerConfig{FilterSubject: subject, DeliverPolicy: jetstream.DeliverAllPolicy}
	start, err := s.startOf(ctx, subject)
	if err != nil {
		return nil, false, err
	}
	if whole = start == 0; !whole {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, start
	}
	err = s.read(ctx, s.config.Stream, c, func(e quant.Estimate) {
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if e.Method != method || err != nil && (!from.IsZero() || !to.IsZero()) ||
			!from.IsZero() && at.Before(from) || !to.IsZero() && at.After(to) {
			return
		}
		if list = append(list, e); len(list) > storedKeepMax {
			list, whole = everySecond(list), false
		}
	})
	return list, whole, err
}

// startOf returns from which sequence on about the newest storedReadMax records of
// a subject lie, and 0 when all of them may be read.
func (s *Stored) startOf(ctx context.Context, subject string) (uint64, error) {
	stream, err := s.js.Stream(ctx, s.config.Stream)
	if err != nil {
		return 0, fmt.Errorf("sinks: stream %s: %w", s.config.Stream, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, fmt.Errorf("sinks: stream %s: %w", s.config.Stream, err)
	}
	n, state := info.State.Subjects[subject], info.State
	if n <= storedReadMax {
		return 0, nil
	}
	span := float64(state.LastSeq - state.FirstSeq + 1)
	return state.LastSeq - uint64(span*storedReadMax/float64(n)) + 1, nil
}

// everySecond halves a list, in place.
func everySecond(list []quant.Estimate) []quant.Estimate {
	kept := list[:0]
	for i := range list {
		if i%2 == 0 {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// read visits the records of this log that a consumer finds now.
func (s *Stored) read(ctx context.Context, stream string, c jetstream.ConsumerConfig, visit func(quant.Estimate)) (err error) {
	c.AckPolicy, c.MemoryStorage, c.InactiveThreshold = jetstream.AckNonePolicy, true, storedIdleMax
	consumer, err := s.js.CreateConsumer(ctx, stream, c)
	if err != nil {
		return fmt.Errorf("sinks: read stream %s: %w", stream, err)
	}
	defer func() {
		name := consumer.CachedInfo().Name
		if e := s.js.DeleteConsumer(context.WithoutCancel(ctx), stream, name); e != nil && err == nil {
			err = fmt.Errorf("sinks: read stream %s: %w", stream, e)
		}
	}()
	for left := consumer.CachedInfo().NumPending; left > 0; {
		n, err := s.fetch(ctx, consumer, visit)
		if err != nil {
			return fmt.Errorf("sinks: read stream %s: %w", stream, err)
		}
		if n == 0 {
			return nil // removed meanwhile
		}
		left -= min(left, n)
	}
	return nil
}

func (s *Stored) fetch(ctx context.Context, consumer jetstream.Consumer, visit func(quant.Estimate)) (n uint64, err error) {
	messages, err := consumer.FetchNoWait(storedFetchMax)
	if err != nil {
		return 0, err
	}
	for m := range messages.Messages() {
		n++
		var e quant.Estimate
		if m.Headers().Get(headerLog) != s.config.Log || json.Unmarshal(m.Data(), &e) != nil {
			continue // of another log, or not a record of ours
		}
		visit(e)
	}
	return n, errors.Join(messages.Error(), ctx.Err())
}
