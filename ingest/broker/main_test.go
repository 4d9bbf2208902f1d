package broker

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// holderVariable makes the test binary a second process that owns a directory
// until its standard input ends.
const holderVariable = "GQLSTREAM_TEST_LOCK_HOLDER"

// startedTooLate is a goroutine of the library that waits for ever on no channel when a
// publisher is cleaned up before it was scheduled for the first time.
const startedTooLate = "github.com/nats-io/nats.go/jetstream." +
	"(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderVariable); dir != "" {
		os.Exit(holdLock(dir))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(startedTooLate))
}

func holdLock(dir string) int {
	lock, err := AcquireLock(dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held by", os.Getpid())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := lock.Close(); err != nil {
		return 1
	}
	return 0
}
