package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// lookup reads the records of one community from the stream of estimates.
type lookup struct {
	stream  jetstream.Stream
	subject string
	log     string
}

// stored is a record as it stands in the stream.
type stored struct {
	sequence uint64
	foreign  bool // of a log that is no more; what follows is not read
	place    place
	estimate quant.Estimate
}

// InForce returns the record of a community and method that was in force at a
// place of the log: the newest of those that reached says are not beyond it. ok is
// false when there is none. Records of other logs than config.Log are not looked
// at. It reads some 2 log2(n) messages of a stream of n.
func InForce(
	ctx context.Context, js jetstream.JetStream, config NATSConfig, community, method string,
	reached func(*quant.Estimate) bool,
) (record quant.Estimate, ok bool, err error) {
	config = config.withDefaults()
	stream, err := js.Stream(ctx, config.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return record, false, nil
	}
	if err != nil {
		return record, false, fmt.Errorf("sinks: stream %s: %w", config.Stream, err)
	}
	l := &lookup{stream: stream, subject: EstimateSubject(community), log: config.Log}
	last, ok, err := l.lastWhere(ctx, func(s *stored) bool { return reached(&s.estimate) })
	if err != nil || !ok {
		return record, false, err
	}
	// The methods of a position stand together: the first of them follows the last
	// record of an earlier position.
	before, some, err := l.lastWhere(ctx, func(s *stored) bool { return s.place.position < last.place.position })
	if err != nil {
		return record, false, err
	}
	from := stream.CachedInfo().State.FirstSeq
	if some {
		from = before.sequence + 1
	}
	for from <= last.sequence {
		s, found, err := l.next(ctx, from)
		if err != nil || !found {
			return record, false, err
		}
		if !s.foreign && s.estimate.Method == method {
			return s.estimate, true, nil
		}
		from = s.sequence + 1
	}
	return record, false, nil
}

// lastWhere returns the last record for which holds is true; it is true up to some
// record and false from there on.
func (l *lookup) lastWhere(ctx context.Context, holds func(*stored) bool) (last stored, ok bool, err error) {
	state := l.stream.CachedInfo().State
	low, high := state.FirstSeq, state.LastSeq+1 // every record before low holds, none from high on
	for low < high {
		s, found, err := l.next(ctx, low+(high-low)/2)
		switch {
		case err != nil:
			return last, false, err
		case found && s.foreign && s.sequence < high: // those come first
			low = s.sequence + 1
		case found && s.sequence < high && holds(&s):
			last, ok, low = s, true, s.sequence+1
		default:
			high = low + (high-low)/2
		}
	}
	return last, ok, nil
}

// next returns the first record of the community from a sequence on.
func (l *lookup) next(ctx context.Context, from uint64) (s stored, ok bool, err error) {
	m, err := l.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(l.subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("sinks: message %d: %w", from, err)
	}
	s.sequence = m.Sequence
	if s.foreign = l.log != "" && m.Header.Get(headerLog) != l.log; s.foreign {
		return s, true, nil
	}
	if err := json.Unmarshal(m.Data, &s.estimate); err != nil {
		return s, false, fmt.Errorf("sinks: message %d: %w", m.Sequence, err)
	}
	s.place.position, _ = strconv.ParseUint(m.Header.Get(headerPosition), 10, 64)
	return s, true, nil
}
