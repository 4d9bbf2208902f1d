package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// Place orders the parts of the emissions of a shard, and the messages that follow from the
// output log: the ordinal is that among those of the position, from 1.
type Place struct {
	Position uint64 `json:"position"`
	// as earlier builds wrote it: files of alerts go on behind the same one
	Ordinal int `json:"shard"`
}

// Compare returns -1, 0 or 1 as a place is before, at or behind another one.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Position, q.Position), cmp.Compare(p.Ordinal, q.Ordinal))
}

func (p Place) String() string { return fmt.Sprintf("%d.%d", p.Position, p.Ordinal) }

// parsePlace is the inverse of String.
func parsePlace(text string) (p Place, ok bool) {
	_, err := fmt.Sscanf(text, "%d.%d", &p.Position, &p.Ordinal)
	return p, err == nil && p.String() == text
}

const placedBytesMax = 4 << 20 // that a placedStream sends at once

// placedStream appends the output of a follower to a stream. It omits messages that the stream has
// already, from this writer or an equal one. A batch is stored only directly after the last known
// message.
type placedStream struct {
	js       jetstream.JetStream
	name     string
	log      string
	last     Place  // the newest that is stored
	sequence uint64 // of the newest message
}

// open reads where the stream ends.
func (s *placedStream) open(ctx context.Context) error {
	stream, err := s.js.Stream(ctx, s.name)
	if err != nil {
		return err
	}
	info := request.Leader(stream)
	s.sequence, s.last = info.State.LastSeq, Place{}
	for at := info.State.LastSeq; at >= max(info.State.FirstSeq, 1) && s.last.Position == 0; at-- {
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

// append stores the messages of one position of the input log, with the log's digest there, except
// those that the stream has already.
func (s *placedStream) append(
	ctx context.Context, position uint64, digest string, messages []*nats.Msg,
) error {
	next := 0
	for i, m := range messages {
		at := Place{position, i + 1}
		m.Header = nats.Header{
			headerLog:   []string{s.log},
			headerPlace: []string{at.String()},
		} // and nothing of a former batch
		if digest != "" {
			m.Header.Set(headerDigest, digest)
		}
		if at.Compare(s.last) <= 0 {
			next = i + 1
		}
	}
	for next < len(messages) {
		n, bytes := next+1, len(messages[next].Data)
		for n < len(messages) && n-next < batchMessagesMax &&
			bytes+len(messages[n].Data) <= placedBytesMax {
			bytes += len(messages[n].Data)
			n++
		}
		sequence, err := publishAfter(ctx, s.js.Conn(), jetstream.ExpectedLastSeqHeader, s.sequence,
			messages[next:n])
		if wrongSequence(err) { // an earlier attempt, or an equal run, was first
			if err := s.open(ctx); err != nil {
				return err
			}
			return s.append(ctx, position, digest, messages)
		}
		if err != nil {
			return err
		}
		s.sequence = sequence
		s.last = Place{position, n}
		next = n
	}
	return nil
}

// beside the mark
const batchMessagesMax, partRecordsMax = request.BatchMessagesMax, request.BatchMessagesMax - 1

// headerPlace names the header for the place of the begin or the end of an alert, POSITION.NUMBER.
const headerPlace = "Gqlstream-Place"

// headerDigest names the header for the digest of the input log up to that position.
const headerDigest = "Gqlstream-Digest"

// newMessage returns a message of a log.
func newMessage(subject, log string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{headerLog: []string{log}}}
}

// publishAfter stores all messages, or none, directly after a given message. The header says
// whether that is the last one of the stream or of a subject. The same messages may be published
// again in another batch.
func publishAfter(
	ctx context.Context, nc *nats.Conn, header string, after uint64, batch []*nats.Msg,
) (last uint64, err error) {
	batch[0].Header[header] = []string{strconv.FormatUint(after, 10)}
	return request.Batch(ctx, nc, batch)
}
