package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// snapshotSilenceMax bounds the pauses of a server while it sends a copy of a stream.
const snapshotSilenceMax = 30 * time.Second

// restoreChunk is the size of the pieces of a stream that is sent to a server.
const restoreChunk = 256 << 10

// StreamCopy describes a copy of a stream: the server's answer when the copy began.
type StreamCopy struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

// Range returns the sequences of a copy.
func (c StreamCopy) Range() (first, last uint64) {
	var state struct {
		First uint64 `json:"first_seq"`
		Last  uint64 `json:"last_seq"`
	}
	_ = json.Unmarshal(c.State, &state) // the server wrote it
	return state.First, state.Last
}

// apiError is the error part of an answer.
type apiError struct {
	Error *jetstream.APIError `json:"error"`
}

// ask sends a request to the JetStream API and decodes its answer.
func ask(ctx context.Context, b *Broker, subject string, question, answer any) error {
	data, err := json.Marshal(question)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, snapshotSilenceMax)
	defer cancel()
	prefix := jetstream.DefaultAPIPrefix
	if domain := b.JS.Options().Domain; domain != "" {
		prefix = "$JS." + domain + ".API."
	}
	m, err := b.NC.RequestWithContext(asking, prefix+subject, data)
	if err != nil {
		return err
	}
	return decodeAnswer(m.Data, answer)
}

func decodeAnswer(data []byte, answer any) error {
	var failed apiError
	if err := json.Unmarshal(data, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(data, answer)
}

// CopyStream writes a stream with its consumers to w, in the server's format. The server checks
// every message first. Messages that arrive meanwhile may or may not be in the copy.
func CopyStream(
	ctx context.Context, b *Broker, name string, w io.Writer,
) (c StreamCopy, err error) {
	fail := func(err error) (StreamCopy, error) {
		return c, fmt.Errorf("copy stream %s: %w", name, err)
	}
	sub, err := b.NC.SubscribeSync(nats.NewInbox())
	if err != nil {
		return fail(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return fail(err)
	}
	question := map[string]any{"deliver_subject": sub.Subject, "jsck": true}
	if err := ask(ctx, b, "STREAM.SNAPSHOT."+name, question, &c); err != nil {
		return fail(err)
	}
	for {
		waiting, cancel := context.WithTimeout(ctx, snapshotSilenceMax)
		m, err := sub.NextMsgWithContext(waiting)
		cancel()
		switch status := m.Header.Get("Status"); {
		case err != nil:
			return fail(err)
		case len(m.Data) > 0:
			if _, err := w.Write(m.Data); err != nil {
				return fail(err)
			}
			if m.Reply != "" {
				if err := m.Respond(nil); err != nil {
					return fail(err)
				}
			}
		case status != "" && !strings.HasPrefix(status, "2"):
			return fail(errors.New(m.Header.Get("Description")))
		default:
			return c, nil
		}
	}
}

// RestoreStream creates a stream from a copy. No stream of that name may exist.
func RestoreStream(ctx context.Context, b *Broker, name string, c StreamCopy, r io.Reader) error {
	fail := func(err error) error { return fmt.Errorf("restore stream %s: %w", name, err) }
	var to struct {
		Subject string `json:"deliver_subject"`
	}
	if err := ask(ctx, b, "STREAM.RESTORE."+name, c, &to); err != nil {
		return fail(err)
	}
	chunk := make([]byte, restoreChunk)
	for done := false; !done; {
		n, err := io.ReadFull(r, chunk)
		if done = errors.Is(err, io.EOF); err != nil && !done &&
			!errors.Is(err, io.ErrUnexpectedEOF) {
			return fail(err)
		}
		sending, cancel := context.WithTimeout(ctx, snapshotSilenceMax)
		m, err := b.NC.RequestWithContext(sending, to.Subject, chunk[:n])
		cancel()
		if err == nil && len(m.Data) > 0 {
			err = decodeAnswer(m.Data, &struct{}{})
		}
		if err != nil {
			return fail(err)
		}
	}
	return nil
}
