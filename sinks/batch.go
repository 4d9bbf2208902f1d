package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"gqlstream/request"
)

// Limits of a batch.
const (
	batchMessagesMax = 1000 // what brokers allow
	partRecordsMax   = batchMessagesMax - 1
)

// Headers of an atomic batch. The client library has no call for one yet.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

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

// batchAck is the broker's answer: the sequence of the last message.
type batchAck struct {
	Sequence uint64              `json:"seq"`
	Error    *jetstream.APIError `json:"error"`
}

// publish sends the batch and waits for the answer. Only the last message asks for one:
// what is wrong with any of them, the answer to the last one says.
func (b *batch) publish(ctx context.Context, nc *nats.Conn) (last uint64, err error) {
	ctx, cancel := request.Context(ctx, nc)
	defer cancel()
	id := nuid.Next()
	for i := range len(b.messages) - 1 {
		if err := nc.PublishMsg(b.message(i, id)); err != nil {
			return 0, err
		}
	}
	response, err := nc.RequestMsgWithContext(ctx, b.message(len(b.messages)-1, id))
	if err != nil {
		return 0, err
	}
	var ack batchAck
	if err := json.Unmarshal(response.Data, &ack); err != nil {
		return 0, fmt.Errorf("answer of the broker: %w", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	if ack.Sequence < uint64(len(b.messages)) {
		return 0, errors.New("answer of the broker: no sequence; something else answers on this subject")
	}
	return ack.Sequence, nil
}

// message returns the i-th message with the headers that make it one of the batch. A
// mark alone needs none but the fence.
func (b *batch) message(i int, id string) *nats.Msg {
	m := nats.NewMsg(b.messages[i].subject)
	m.Data = b.messages[i].data
	if i == 0 {
		m.Header[b.fence] = []string{strconv.FormatUint(b.after, 10)}
	}
	if b.messages[i].place != "" {
		m.Header[headerPlace] = []string{b.messages[i].place}
	}
	m.Header[headerLog] = []string{b.log}
	if len(b.messages) == 1 {
		return m
	}
	m.Header[headerBatchID] = []string{id}
	m.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
	if i == len(b.messages)-1 {
		m.Header[headerBatchCommit] = []string{"1"}
	}
	return m
}
