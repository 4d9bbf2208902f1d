package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/config"
)

// A start must wait for a cluster that elects and for a stream that is being made, and for nothing
// else.
func TestAStartWaitsForAnElection(t *testing.T) {
	for err, want := range map[error]bool{
		&jetstream.APIError{Code: 503, ErrorCode: 10008}: true,
		context.DeadlineExceeded:                         true,
		context.Canceled:                                 true,  // the connection ended under the question
		jetstream.ErrStreamNotFound:                      true,  // another worker is making it
		&jetstream.APIError{Code: 503, ErrorCode: 10039}: false, // JetStream is not enabled
		errors.New("nats: no servers available"):         false,
	} {
		if got := elects(fmt.Errorf("broker: stream GQL: %w", err)); got != want {
			t.Errorf("%v: waits %t", err, got)
		}
	}
	if elects(nil) {
		t.Error("a start that succeeds is taken for an election")
	}
}

// Who interrupts a run that is only starting must not be told that it failed: of a group that is
// stopped, workers are starting again, since shards of those that went first are theirs.
func TestAStartThatIsInterruptedIsNoFailure(t *testing.T) {
	settings := config.Settings{State: t.TempDir(), Classes: config.Classes{"a", "b"}}
	ctx, interrupt := context.WithCancel(t.Context())
	read := func() (config.Settings, error) {
		interrupt()
		return settings, nil
	}
	if err := Run(ctx, read, Options{Out: io.Discard, Err: io.Discard, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Error(err)
	}
}

// The same holds for one that waits for a cluster that elects, or for a stream that is being made.
func TestAStartThatWaitsCanBeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, interrupt)
		err := onceElected(ctx, slog.New(slog.DiscardHandler), func() error { return jetstream.ErrStreamNotFound })
		if !errors.Is(err, errInterrupted) {
			t.Error(err)
		}
	})
}
