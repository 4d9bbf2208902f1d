// Package request bounds how long the answer to a request to a NATS server is waited for. The
// client library waits until a deadline, whatever happens to the connection; on a cluster, whose
// servers die or are cut off while the others go on, that is too long. Whoever sends a request
// that can be sent again takes its context from here, and sends it again when that ends.
package request

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// AnswerWaitMax is how long to wait for the answer to one request.
const AnswerWaitMax = 3 * time.Second

// Context returns the context for one request. It ends after AnswerWaitMax, or when the
// connection has been made anew, since the answer would have come on the old one.
func Context(ctx context.Context, nc *nats.Conn) (context.Context, context.CancelFunc) {
	asking, cancel := context.WithTimeout(ctx, AnswerWaitMax)
	again := nc.StatusChanged(nats.CONNECTED)
	go func() {
		defer nc.RemoveStatusListener(again)
		select {
		case <-again:
			cancel()
		case <-asking.Done():
		}
	}()
	return asking, cancel
}

// Pause waits for d, or for the end of ctx, whose error it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Silence counts the requests in a row that were left without an answer. The answer that nobody
// can decide now counts as a third of one: its server is cut off from the others, or all of them elect.
type Silence int

// Unanswered is one request without an answer.
const Unanswered Silence = 3

// After is told how a request ended. After two silences in a row another server is asked, if
// there is one: a server that is cut off from its cluster answers the client's pings, and says
// late or never that it cannot decide. What is wrong with the connection the next request finds.
func (s *Silence) After(nc *nats.Conn, err error) {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		*s += Unanswered
	case errors.As(err, &api) && api.ErrorCode == jetstream.ErrorCode(nats.JSErrCodeJetStreamNotAvailable):
		*s++
	default:
		*s = 0
	}
	if *s >= 2*Unanswered && len(nc.Servers()) > 1 {
		*s = 0
		_ = nc.ForceReconnect()
	}
}

const codeDuplicateInProcess jetstream.ErrorCode = 10158

// DuplicateInProcess reports a cluster's answer to a message that comes again while it has not
// yet decided about the first one.
func DuplicateInProcess(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeDuplicateInProcess
}

// passingCodes are answers of a broker that can be others later: an account has used its
// share, a batch did not arrive whole, too many batches are under way.
var passingCodes = []jetstream.ErrorCode{10002, 10176, 10210, codeDuplicateInProcess}

// passingErrors say that the broker is away, or not ready.
var passingErrors = []error{
	jetstream.ErrNoStreamResponse, nats.ErrNoResponders, nats.ErrTimeout, jetstream.ErrAsyncPublishTimeout, nats.ErrDisconnected,
	nats.ErrReconnectBufExceeded, context.DeadlineExceeded, jetstream.ErrJetStreamNotEnabled, context.Canceled, // of a request
}

// Passes reports whether an error can pass by itself: the broker is away, or cannot
// store anything now, for want of space say.
func Passes(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.Code >= 500 || slices.Contains(passingCodes, api.ErrorCode)) ||
		slices.ContainsFunc(passingErrors, func(passing error) bool { return errors.Is(err, passing) })
}
