package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Headers of an atomic batch. The client library has no call for one yet.
const (
	HeaderBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// BatchMessagesMax is the number of messages that brokers allow in a batch.
const BatchMessagesMax = 1000

// Batch publishes messages of which a stream stores all or none, gives them headers for that, and
// returns the sequence of the last. Only that one asks for an answer, which says also what is wrong
// with the others. A message alone is published as any other.
func Batch(ctx context.Context, nc *nats.Conn, messages []*nats.Msg) (last uint64, err error) {
	ctx, cancel := Context(ctx, nc)
	defer cancel()
	id, end := nuid.Next(), len(messages)-1
	for i, m := range messages {
		if end > 0 {
			m.Header[HeaderBatchID] = []string{id}
			m.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
		}
		if i < end {
			if err := nc.PublishMsg(m); err != nil {
				return 0, err
			}
		} else if end > 0 {
			m.Header[headerBatchCommit] = []string{"1"}
		}
	}
	response, err := nc.RequestMsgWithContext(ctx, messages[end])
	if err != nil {
		return 0, err
	}
	var ack struct {
		Sequence uint64              `json:"seq"` // of the last message
		Error    *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(response.Data, &ack); err != nil {
		return 0, fmt.Errorf("answer of the broker: %w", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	if ack.Sequence < uint64(len(messages)) {
		return 0, errors.New("answer of the broker: no sequence; something else answers on this subject")
	}
	return ack.Sequence, nil
}
