package sinks

import (
	"testing"

	"go.uber.org/goleak"
)

// startedTooLate is a goroutine of the library that waits for ever on no channel when a
// publisher is cleaned up before it was scheduled for the first time.
const startedTooLate = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(startedTooLate)) }
