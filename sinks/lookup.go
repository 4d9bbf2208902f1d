package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// lookup reads the messages of one subject of a stream, whose JSON, packed or not, is that of a T.
type lookup[T any] struct {
	stream  jetstream.Stream
	subject string
	log     string
}

// stored is a message as it stands in the stream.
type stored[T any] struct {
	sequence uint64
	foreign  bool // of a log that is no more; what follows is not read
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
// log, or at a time where the position is 0. ok is false when there is none. Records of other
// logs than config.Log are not looked at.
func InForce(
	ctx context.Context, js jetstream.JetStream, config HistoryConfig, community, method string, position uint64, at time.Time,
) (record quant.Estimate, ok bool, err error) {
	subject := config.Names.EstimateSubject(community, method, 0)
	l, err := openLookup[quant.Estimate](ctx, js, config.Names.Estimates, subject, config.Log)
	if err != nil {
		return record, false, err
	}
	key, bound := func(e *quant.Estimate) int64 { return int64(e.Position) }, int64(min(position, math.MaxInt64))
	if position == 0 {
		key, bound = func(e *quant.Estimate) int64 {
			t, _ := time.Parse(time.RFC3339Nano, e.Time)
			return t.UnixNano()
		}, at.UnixNano()
	}
	last, ok, err := l.lastUpTo(ctx, key, bound)
	return last.value, ok, err
}

// lastUpTo returns the last message whose key is at most a bound; keys never fall. The broker reads
// a whole block of the stream for a message, so it looks where the message would be if keys grew
// evenly, some 5 times; every third guess is the middle, so that it takes at most 6 log2(n).
func (l *lookup[T]) lastUpTo(ctx context.Context, key func(*T) int64, bound int64) (last stored[T], ok bool, err error) {
	if l.stream == nil {
		return last, false, nil
	}
	newest, found, err := l.decode(l.stream.GetLastMsgForSubject(ctx, l.subject))
	if err != nil || !found || newest.foreign || key(&newest.value) <= bound {
		return newest, found && !newest.foreign, err
	}
	low, high := l.stream.CachedInfo().State.FirstSeq, newest.sequence // keys before low are within the bound, from high on beyond
	lowKey, highKey := int64(0), key(&newest.value)
	for successor, guesses := true, 0; low < high; {
		at, first := low, successor // whether the first that is left is beyond already
		if successor = false; !first {
			if guesses++; ok && guesses%3 != 0 {
				at = low + uint64(float64(high-low-1)*max(0, float64(bound-lowKey)/float64(highKey-lowKey)))
			} else {
				at = low + (high-low)/2
			}
		}
		s, found, err := l.next(ctx, at)
		switch {
		case err != nil:
			return last, false, err
		case found && s.foreign && s.sequence < high: // those come first
			low = s.sequence + 1
		case found && s.sequence < high && key(&s.value) <= bound:
			last, ok, low, lowKey, successor = s, true, s.sequence+1, key(&s.value), !first
		default: // the key of what may lie further on is beyond the bound too
			if high = at; found && !s.foreign {
				highKey = key(&s.value)
			}
		}
	}
	return last, ok, nil
}

// next returns the first message of the subject from a sequence on.
func (l *lookup[T]) next(ctx context.Context, from uint64) (s stored[T], ok bool, err error) {
	if l.stream == nil {
		return s, false, nil
	}
	return l.decode(l.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(l.subject)))
}

func (l *lookup[T]) decode(m *jetstream.RawStreamMsg, err error) (s stored[T], ok bool, _ error) {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("sinks: a message of %s: %w", l.subject, err)
	}
	s.sequence = m.Sequence
	if s.foreign = l.log != "" && m.Header.Get(headerLog) != l.log; s.foreign {
		return s, true, nil
	}
	if err := unpack(m.Data, &s.value); err != nil {
		return s, false, fmt.Errorf("sinks: message %d: %w", m.Sequence, err)
	}
	return s, true, nil
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

// gzipMagic begins what is packed. No JSON begins with it.
var gzipMagic = []byte{0x1f, 0x8b}
