package sinks

import (
	"errors"

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
