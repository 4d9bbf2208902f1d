package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"gqlstream/config"
	"gqlstream/ingest/broker"
	"gqlstream/request"
)

// serverFlags say on which server, and under which names, a command finds the streams.
type serverFlags struct {
	NATS        string `name:"nats" placeholder:"URL" help:"The NATS server, such as the one that a run listens on."`
	Prefix      string `placeholder:"NAME" help:"Prefix of the names of the pipeline's streams and subjects, nats.prefix of its configuration. [gql]"`
	Credentials string `type:"existingfile" placeholder:"FILE" help:"NATS credentials file, with --nats."`
}

// names returns the names of the streams.
func (f *serverFlags) names() broker.StreamNames { return broker.NewStreamNames(f.Prefix) }

// open connects to the server, or starts the embedded one of a state directory. A run on
// that directory is named, with what can be done.
func (f *serverFlags) open(state string, con console) (*broker.Broker, error) {
	b, err := config.OpenBroker(config.Settings{
		State: state, NATS: config.NATS{URL: f.NATS, Credentials: f.Credentials},
	}, slog.New(slog.NewTextHandler(con.Err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if errors.As(err, new(*broker.LockedError)) {
		err = fmt.Errorf("%w; a run that listens can be reached with --nats", err)
	}
	return b, err
}

// How long a command waits for what may have been started a moment ago, and how often it looks.
const serverWaitMax, serverLookEvery = 10 * time.Second, 100 * time.Millisecond

// await returns when the server takes connections, or when it has waited long enough: what
// is wrong then shows when it is connected to.
func (f *serverFlags) await(ctx context.Context, diagnostics io.Writer) {
	awaitStart(ctx, diagnostics, "a server at "+broker.Redacted(f.NATS), func() (away bool) {
		nc, err := broker.Connect(broker.ConnectConfig{URL: f.NATS, Credentials: f.Credentials})
		if err == nil {
			nc.Close()
		}
		return errors.Is(err, nats.ErrNoServers)
	})
}

// awaitStart returns when something is no longer away, or when it has waited long enough.
func awaitStart(ctx context.Context, diagnostics io.Writer, what string, away func() bool) {
	for looks := 0; away() && looks < int(serverWaitMax/serverLookEvery) && request.Pause(ctx, serverLookEvery) == nil; looks++ {
		if looks == 0 {
			fmt.Fprintf(diagnostics, "waiting for %s\n", what)
		}
	}
}
