package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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

// InForce returns the record of a community and method that was in force at a
// place of the log: the newest of those that reached says are not beyond it. ok is
// false when there is none. Records of other logs than config.Log are not looked
// at. It reads some 2 log2(n) messages of a stream of n.
func InForce(
	ctx context.Context, js jetstream.JetStream, config HistoryConfig, community, method string,
	reached func(*quant.Estimate) bool,
) (record quant.Estimate, ok bool, err error) {
	subject := config.Names.EstimateSubject(community, method, 0)
	l, err := openLookup[quant.Estimate](ctx, js, config.Names.Estimates, subject, config.Log)
	if err != nil {
		return record, false, err
	}
	last, ok, err := l.lastWhere(ctx, reached)
	return last.value, ok, err
}

// lastWhere returns the last message for which holds is true; it is true up to some
// message and false from there on.
func (l *lookup[T]) lastWhere(ctx context.Context, holds func(*T) bool) (last stored[T], ok bool, err error) {
	if l.stream == nil {
		return last, false, nil
	}
	state := l.stream.CachedInfo().State
	low, high := state.FirstSeq, state.LastSeq+1 // every message before low holds, none from high on
	for low < high {
		s, found, err := l.next(ctx, low+(high-low)/2)
		switch {
		case err != nil:
			return last, false, err
		case found && s.foreign && s.sequence < high: // those come first
			low = s.sequence + 1
		case found && s.sequence < high && holds(&s.value):
			last, ok, low = s, true, s.sequence+1
		default:
			high = low + (high-low)/2
		}
	}
	return last, ok, nil
}

// next returns the first message of the subject from a sequence on.
func (l *lookup[T]) next(ctx context.Context, from uint64) (s stored[T], ok bool, err error) {
	if l.stream == nil {
		return s, false, nil
	}
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
	var data io.Reader = bytes.NewReader(m.Data)
	if bytes.HasPrefix(m.Data, gzipMagic) {
		data, err = gzip.NewReader(data)
	}
	if err == nil {
		err = json.NewDecoder(data).Decode(&s.value)
	}
	if err != nil {
		return s, false, fmt.Errorf("sinks: message %d: %w", m.Sequence, err)
	}
	return s, true, nil
}

// gzipMagic begins what is packed. No JSON begins with it.
var gzipMagic = []byte{0x1f, 0x8b}
