package sinks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errOtherWriter is matched by the error of a run that finds another run publishing to the same
// streams, with another configuration or of another log. Nothing of this run has been
// stored since.
var errOtherWriter = errors.New("stop one of the two, or give this one a prefix of its own")

// ErrLost is matched by an error that says that the broker has lost records which it had
// acknowledged, as it can when it is killed. They can be made again, from a checkpoint
// before them.
var ErrLost = errors.New("the broker has lost what it had acknowledged")

// headerLog names, on every record and alert, the log that its position counts in.
const headerLog = "Gqlstream-Log"

// wrongSequence reports whether the broker refused a batch because the last message is
// another one than its fence says.
func wrongSequence(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// passingCodes are answers of a broker that can be others later: an account has used its
// share, a batch did not arrive whole, too many batches are under way.
var passingCodes = []jetstream.ErrorCode{10002, 10176, 10210}

// passingErrors say that the broker is away, or not ready.
var passingErrors = []error{
	jetstream.ErrNoStreamResponse, nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected,
	nats.ErrReconnectBufExceeded, context.DeadlineExceeded, jetstream.ErrJetStreamNotEnabled,
	context.Canceled, // of a request; see request.Context
}

// passes reports whether an error can pass by itself: the broker is away, or cannot
// store anything now, for want of space say.
func passes(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.Code >= 500 || slices.Contains(passingCodes, api.ErrorCode)) {
		return true
	}
	return slices.ContainsFunc(passingErrors, func(passing error) bool { return errors.Is(err, passing) })
}

// sleep waits for d, or for the end of ctx, whose error it returns then.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
