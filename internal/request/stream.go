package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// JetStream returns the JetStream of a domain; empty: that of the server. On a cluster it repeats
// the first requests of a reader or writer of a stream.
func JetStream(
	nc *nats.Conn,
	domain string,
	options ...jetstream.JetStreamOpt,
) (js jetstream.JetStream, err error) {
	several := len(nc.Servers()) > 1
	if several { // a stream that elects its leader says nothing, and is asked again
		options = append(options, jetstream.WithDefaultTimeout(AnswerWaitMax))
	}
	if js, err = jetstream.New(nc, options...); domain != "" {
		js, err = jetstream.NewWithDomain(nc, domain, options...)
	}
	if several && err == nil {
		js = cluster{js}
	}
	return js, err
}

// EnsureStream creates a stream, or returns the existing one of that name unchanged. The broker
// reserves the bytes of the limit. If it does not have them, the limit becomes smaller.
func EnsureStream(
	ctx context.Context,
	js jetstream.JetStream,
	c jetstream.StreamConfig,
) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, c)
		for NoSpace(err) && c.MaxBytes >= 8<<20 {
			c.MaxBytes /= 8 // not all that is left: the log needs room
			stream, err = js.CreateStream(ctx, c)
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was first
			stream, err = js.Stream(ctx, c.Name)
		}
	}
	if NoSpace(err) {
		err = spaceError(err, c.MaxBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", c.Name, explained(js, err))
	}
	return stream, nil
}

// spaceError says how a server can make room for a stream of this size in bytes, the least that was
// tried.
func spaceError(err error, size int64) error {
	reserve := "the stream"
	if size > 0 {
		reserve = fmt.Sprintf("the %d bytes that the stream may take, the least that was tried",
			size)
	}
	return fmt.Errorf("%w: the server has no room for %s: free space on its disk, let JetStream "+
		"take more of it "+
		"(max_file_store, or the limit of the account), or give other streams less", err, reserve)
}

// codeBytesRequired is the answer of an account in which every stream must have a limit.
const codeBytesRequired jetstream.ErrorCode = 10113

// BytesRequired reports whether an account refused a stream because it has no limit.
func BytesRequired(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeBytesRequired
}

// explained adds the remedy to an error of JetStream.
func explained(js jetstream.JetStream, err error) error {
	last := js.Conn().LastError()
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fmt.Errorf(
			"%w: JetStream is off there: start it with nats-server -js, or let the account use it",
			err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the account must be allowed to use JetStream", err)
	case BytesRequired(err):
		return fmt.Errorf("%w: the account wants streams to have a limit: set nats.log_bytes_max",
			err)
	case errors.Is(err, context.DeadlineExceeded) && errors.Is(last, nats.ErrPermissionViolation):
		return fmt.Errorf("%w: %w; docs/permissions.md lists the permissions of each user",
			err, last)
	}
	return err
}

// Leader returns a handle that asks only the leader of a stream for messages. A lagging copy would
// say that the newest messages do not exist.
func Leader(s jetstream.Stream) *jetstream.StreamInfo {
	info := s.CachedInfo()
	info.Config.AllowDirect = false // the library decides by this how it asks
	return info
}

// AuditReplicas returns an error if fewer servers keep a stream than the configuration says. It
// adds none, because the operator decides where a cluster moves data.
func AuditReplicas(stream jetstream.Stream, least int) error {
	c := stream.CachedInfo().Config
	if c.Replicas >= least {
		return nil
	}
	return fmt.Errorf(
		"stream %s is kept by %d server, nats.replicas wants %d: nats stream edit %s --replicas %d",
		c.Name, c.Replicas, least, c.Name, least)
}

// noSpaceCodes are answers of a broker that cannot store a message, or reserve the bytes of a
// stream.
var noSpaceCodes = []jetstream.ErrorCode{10023, 10047, 10077}

// NoSpace reports whether a broker has no room.
func NoSpace(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(noSpaceCodes, api.ErrorCode)
}

// Headers of an atomic batch. The client library has no call for one yet.
const (
	HeaderBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// BatchMessagesMax is the number of messages that brokers allow in a batch.
const BatchMessagesMax = 1000

// Batch publishes messages as an atomic batch: the stream stores all or none. It adds the headers
// of a batch and returns the sequence of the last message. Only the last message asks for an
// answer, which also reports an error of the others. A single message is published without these
// headers.
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
		return 0, errors.New(
			"answer of the broker: no sequence; something else answers on this subject")
	}
	return ack.Sequence, nil
}
