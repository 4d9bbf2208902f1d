package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// HistoryConfig names the log out that a history is read from.
type HistoryConfig struct {
	Names Names
	Log   string // identity of the log in; what was published of another one is left out
}

// History reads back what was published. Any number of goroutines may use it.
type History struct {
	js     jetstream.JetStream
	config HistoryConfig
}

// NewHistory returns a reader of what is published.
func NewHistory(js jetstream.JetStream, c HistoryConfig) *History { return &History{js: js, config: c} }

// Latest returns the newest record of each community and method, where its position
// is at most until.
func (s *History) Latest(ctx context.Context, until uint64) (list []quant.Estimate, err error) {
	err = s.read(ctx, "KV_"+s.config.Names.Latest, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: "$KV." + s.config.Names.Latest + ".*.*", // of a method that is configured twice the first
	}, func(e quant.Estimate) {
		if e.Position <= until {
			list = append(list, e)
		}
	})
	return list, err
}

// Between returns the records of a community by a method with a log time in
// [from, to], oldest first, suppressed ones, which name no method, included; a zero
// time is unbounded. Unless whole is set, some are left out, because there are too many.
func (s *History) Between(ctx context.Context, community, method string, from, to time.Time) (list []quant.Estimate, whole bool, err error) {
	subject := s.config.Names.EstimateSubject(community, method, 0)
	subjects := slices.Compact([]string{subject, s.config.Names.EstimateSubject(community, "", 0)})
	c := jetstream.ConsumerConfig{FilterSubjects: subjects, DeliverPolicy: jetstream.DeliverAllPolicy}
	start, err := s.startOf(ctx, subject)
	if err != nil {
		return nil, false, err
	}
	if whole = start == 0; !whole {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, start
	}
	estimated := !whole // else what was suppressed before the first estimate is no history of the method
	err = s.read(ctx, s.config.Names.Estimates, c, func(e quant.Estimate) {
		if estimated = estimated || e.Method == method; !estimated {
			return
		}
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil && (!from.IsZero() || !to.IsZero()) ||
			!from.IsZero() && at.Before(from) || !to.IsZero() && at.After(to) {
			return
		}
		e.Method = method
		if list = append(list, e); len(list) > storedKeepMax {
			half := list[:(len(list)+1)/2]
			for i := range half {
				half[i] = list[2*i] // every second one
			}
			list, whole = half, false
		}
	})
	return list, whole, err
}

// startOf returns from which sequence on about the newest storedReadMax records of
// a subject lie, and 0 when all of them may be read.
func (s *History) startOf(ctx context.Context, subject string) (uint64, error) {
	stream, err := s.js.Stream(ctx, s.config.Names.Estimates)
	if err != nil {
		return 0, fmt.Errorf("sinks: stream %s: %w", s.config.Names.Estimates, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, fmt.Errorf("sinks: stream %s: %w", s.config.Names.Estimates, err)
	}
	n, state := info.State.Subjects[subject], info.State
	if n <= storedReadMax {
		return 0, nil
	}
	return state.LastSeq - uint64(float64(state.LastSeq-state.FirstSeq+1)*storedReadMax/float64(n)) + 1, nil
}

// read visits the records of this log that a consumer finds now.
func (s *History) read(ctx context.Context, stream string, c jetstream.ConsumerConfig, visit func(quant.Estimate)) error {
	return readNow(ctx, s.js, stream, s.config.Log, c, visit)
}

// readNow visits the messages of a log that a consumer finds now, whose JSON, packed or not, is that of a T.
func readNow[T any](ctx context.Context, js jetstream.JetStream, stream, log string, c jetstream.ConsumerConfig, visit func(T)) (err error) {
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
	for left := consumer.CachedInfo().NumPending; left > 0; {
		messages, err := consumer.FetchNoWait(storedFetchMax)
		if err != nil {
			return fmt.Errorf("sinks: read stream %s: %w", stream, err)
		}
		n := uint64(0)
		for m := range messages.Messages() {
			n++
			var value T
			if m.Headers().Get(headerLog) == log && unpack(m.Data(), &value) == nil { // a record of this log
				visit(value)
			}
		}
		if err := errors.Join(messages.Error(), ctx.Err()); err != nil || n == 0 { // or removed meanwhile
			return err
		}
		left -= min(left, n)
	}
	return nil
}
