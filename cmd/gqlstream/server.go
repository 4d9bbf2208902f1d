package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// serverFlags say where a command finds the streams and the checkpoints of a pipeline, and under
// which names.
type serverFlags struct {
	Config      string `short:"c" type:"existingfile" placeholder:"FILE" help:"${server_config}"`
	State       string `placeholder:"DIR" help:"${server_state}"`
	NATS        string `name:"nats" placeholder:"URL" help:"${server_nats}"`
	Context     string `placeholder:"NAME" help:"${server_context}"`
	Prefix      string `placeholder:"NAME" help:"${server_prefix}"`
	Credentials string `type:"existingfile" placeholder:"FILE" help:"${server_credentials}"`

	settings config.Settings // of Config, under the flags
	names    broker.StreamNames
	out      sinks.Names
}

// AfterApply reads the configuration when a command begins.
func (f *serverFlags) AfterApply() (err error) {
	if f.settings, err = f.load(); err == nil {
		f.names, f.out, err = f.settings.Names()
	}
	return err
}

// load reads the configuration, over which the flags win.
func (f *serverFlags) load() (config.Settings, error) {
	c, err := config.Load(f.Config)
	c.NATS.URL = cmp.Or(f.NATS, c.NATS.URL)
	c.NATS.Credentials = cmp.Or(f.Credentials, c.NATS.Credentials)
	if f.Context != "" && err == nil {
		err = applyContext(f.Context, &c.NATS.ConnectConfig)
	}
	if f.State == "" && c.State == "" {
		c.NATS.URL = cmp.Or(c.NATS.URL, os.Getenv("NATS_URL"))
	}
	c.NATS.Prefix = cmp.Or(f.Prefix, c.NATS.Prefix)
	c.State = cmp.Or(f.State, c.State)
	if short := config.ShellPath(c.State); short != "" {
		err = cmp.Or(err, config.Usagef("--state %q: %s is no directory here: write the path "+
			"in full", c.State, short))
	}
	return c, err
}

// open connects to the server, or starts the embedded one of a state directory. It waits a while
// for a server that takes no connections yet. If a run uses the directory, the error names it
// and the remedy. It is closed when the command ends.
func (f *serverFlags) open(ctx context.Context, con console) (b *broker.Broker, err error) {
	f.settings.NATS.Listen = "" // nobody else shall reach it meanwhile
	log := slog.New(slog.NewTextHandler(con.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	awaitStart(
		ctx,
		con.Err,
		"a server at "+broker.Redacted(f.settings.NATS.URL),
		func() (away bool) {
			b, err = config.OpenBroker(f.settings, log)
			return errors.Is(err, nats.ErrNoServers)
		},
	)
	if errors.Is(err, broker.ErrLocked) {
		err = fmt.Errorf(
			"%w; a run with --listen ADDRESS can be reached with --nats nats://ADDRESS, and has "+
				"a page",
			err)
	}
	if err == nil {
		con.atEnd(b.Close)
	}
	return b, err
}

// openExisting is open for commands that only read: it makes no state directory, and
// misses a log that nobody has published to.
func (f *serverFlags) openExisting(ctx context.Context, con console) (*broker.Broker, error) {
	f.settings.State = cmp.Or(f.settings.State, config.StateDefault)
	if _, err := os.Stat(f.settings.State); err != nil && f.settings.NATS.URL == "" {
		return nil, config.Usagef("no log; give --nats URL or --state DIR: %w", err)
	}
	b, err := f.open(ctx, con)
	if err == nil {
		if _, missing := b.JS.Stream(ctx, f.names.Log); errors.Is(missing,
			jetstream.ErrStreamNotFound) {
			err = config.Usagef(
				"no log %s at %s; --state, --nats and --prefix name its place",
				f.names.Log, cmp.Or(broker.Redacted(f.settings.NATS.URL), f.settings.State))
		}
	}
	return b, err
}

// A server or page that was started a moment ago is looked for every serverLookEvery, for
// serverWaitMax at most.
const serverWaitMax, serverLookEvery = 10 * time.Second, 100 * time.Millisecond

// awaitStart waits until away returns false, for serverWaitMax at most.
func awaitStart(ctx context.Context, diagnostics io.Writer, what string, away func() bool) {
	for looks := 0; away() && looks < int(serverWaitMax/serverLookEvery) &&
		request.Pause(ctx, serverLookEvery) == nil; looks++ {
		if looks == 0 {
			fmt.Fprintf(diagnostics, "waiting for %s\n", what)
		}
	}
}
