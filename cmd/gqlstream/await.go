package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"gqlstream/ingest"
)

// How long a producer waits for its server, which may have been started a moment
// ago, and how often it looks.
const (
	serverWaitMax   = 10 * time.Second
	serverLookEvery = 100 * time.Millisecond
)

// awaitServer returns when a server at url takes connections, or when it has waited
// long enough: what is wrong then shows when it is connected to.
func awaitServer(ctx context.Context, diagnostics io.Writer, c ingest.ConnectConfig) {
	told := false
	for deadline := time.Now().Add(serverWaitMax); time.Now().Before(deadline); {
		nc, err := ingest.Connect(c)
		if err == nil {
			nc.Close()
			return
		}
		if !errors.Is(err, nats.ErrNoServers) {
			return
		}
		if !told {
			told = true
			fmt.Fprintf(diagnostics, "waiting for a server at %s\n", c.URL)
		}
		if sleepUntil(ctx, time.Now().Add(serverLookEvery)) != nil {
			return
		}
	}
}
