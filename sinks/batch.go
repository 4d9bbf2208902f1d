package sinks

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go"

	"gqlstream/request"
)

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
