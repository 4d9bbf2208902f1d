package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/request"
)

// place orders the parts of the emissions of a shard, and the messages that follow from the
// log out: the number is that among those of the position, from 1.
type place struct {
	position uint64
	ordinal  int
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.position, q.position), cmp.Compare(p.ordinal, q.ordinal))
}

func (p place) String() string { return fmt.Sprintf("%d.%d", p.position, p.ordinal) }

// parsePlace is the inverse of String.
func parsePlace(text string) (p place, ok bool) {
	_, err := fmt.Sscanf(text, "%d.%d", &p.position, &p.ordinal)
	return p, err == nil && p.String() == text
}

const placedBytesMax = 4 << 20 // that a placedStream sends at once

// placedStream appends what a follower makes of the log out. What the stream has already,
// from this writer or an equal one, is left out; a batch is stored only directly after the
// message that is known as the last one.
type placedStream struct {
	js       jetstream.JetStream
	name     string
	log      string
	last     place  // the newest that is stored
	sequence uint64 // of the newest message
}

// open reads where the stream ends.
func (s *placedStream) open(ctx context.Context) error {
	stream, err := s.js.Stream(ctx, s.name)
	if err != nil {
		return err
	}
	info := request.Leader(stream)
	s.sequence, s.last = info.State.LastSeq, place{}
	for at := info.State.LastSeq; at >= max(info.State.FirstSeq, 1) && s.last.position == 0; at-- {
		m, err := stream.GetMsg(ctx, at)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
		case err != nil:
			return err
		case m.Header.Get(headerLog) == s.log:
			s.last, _ = parsePlace(m.Header.Get(headerPlace))
		}
	}
	return nil
}

// append stores the messages of one position, and returns how many of them, at the
// beginning, were there already.
func (s *placedStream) append(ctx context.Context, position uint64, messages []message) (there int, err error) {
	for i := range messages {
		at := place{position, i + 1}
		messages[i].place = at.String()
		if at.compare(s.last) <= 0 {
			there = i + 1
		}
	}
	for next := there; next < len(messages); {
		n, bytes := next+1, len(messages[next].data)
		for n < len(messages) && n-next < batchMessagesMax && bytes+len(messages[n].data) <= placedBytesMax {
			bytes += len(messages[n].data)
			n++
		}
		b := &batch{log: s.log, fence: jetstream.ExpectedLastSeqHeader, after: s.sequence, messages: messages[next:n]}
		sequence, err := b.publish(ctx, s.js.Conn())
		if wrongSequence(err) { // an earlier attempt, or an equal run, was first
			if err := s.open(ctx); err != nil {
				return there, err
			}
			return s.append(ctx, position, messages)
		}
		if err != nil {
			return there, err
		}
		s.sequence, s.last, next = sequence, place{position, n}, n
	}
	return there, nil
}

const batchMessagesMax, partRecordsMax = request.BatchMessagesMax, request.BatchMessagesMax - 1 // beside the mark

// headerPlace names the header for the place at which an alert began or ended, POSITION.NUMBER.
const headerPlace = "Gqlstream-Place"

// message is one of a batch.
type message struct {
	subject string
	data    []byte
	place   string // of an alert; empty: none
}

// batch is a mark and the records of one part, or the alerts of one position. All of it
// is stored, or nothing.
type batch struct {
	messages []message
	fence    string // header: of what the last sequence must be after
	after    uint64 // 0: there is none yet
	log      string // identity, for readers of records
}

// bytes is about what the broker stores.
func (b *batch) bytes() (n uint64) {
	const overhead = 250 // headers and what the store adds
	for i := range b.messages {
		n += uint64(len(b.messages[i].subject) + len(b.messages[i].data) + overhead)
	}
	return n
}

// publish sends the batch and waits for the answer.
func (b *batch) publish(ctx context.Context, nc *nats.Conn) (last uint64, err error) {
	messages := make([]*nats.Msg, len(b.messages))
	for i := range messages {
		messages[i] = b.message(i)
	}
	return request.Batch(ctx, nc, messages)
}

// message returns the i-th message, the first with the fence.
func (b *batch) message(i int) *nats.Msg {
	m := nats.NewMsg(b.messages[i].subject)
	m.Data = b.messages[i].data
	if i == 0 {
		m.Header[b.fence] = []string{strconv.FormatUint(b.after, 10)}
	}
	if b.messages[i].place != "" {
		m.Header[headerPlace] = []string{b.messages[i].place}
	}
	m.Header[headerLog] = []string{b.log}
	return m
}
