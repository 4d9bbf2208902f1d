package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

type replayCmd struct {
	fileFlags
	coreFlags
	State string `placeholder:"DIR" help:"Replay the embedded stream of this state directory, which no process may be using."`
	NATS  string `name:"nats" placeholder:"URL" help:"Replay the stream of this NATS server."`
	To    uint64 `placeholder:"POSITION" help:"End after this position of the stream."`
}

// Help is the long help of the command.
func (*replayCmd) Help() string {
	return `Runs a log from its beginning through a fresh core and prints every estimate it emits, one JSON
object a line: what gqlstream run published, bit for bit, if the configuration is the same. The log is
a stream (--state or --nats) or files. Nothing is published and nothing is changed.

Examples:
  gqlstream replay --config gqlstream.yaml --state gqlstream-state --to 120000
  gqlstream replay --classes 2 --everyone --log events.ndjson.zst`
}

// Run replays to the end of the log, or to the position asked for.
func (c *replayCmd) Run(ctx context.Context, con console) (err error) {
	settings, err := c.settings()
	if err != nil {
		return err
	}
	source, closeSource, err := c.open(ctx, &settings, con)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	config, err := settings.core()
	if err != nil {
		return err
	}
	core, err := incremental.New(config)
	if err != nil {
		return usageError{err}
	}
	defer core.Close()
	var batch event.Batch
	for {
		err := source.Next(ctx, &batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeLines(con.Out, core.Step(&batch).Estimates); err != nil {
			return err
		}
	}
}

// open opens the one log that the flags name.
func (c *replayCmd) open(ctx context.Context, settings *fileConfig, con console) (ingest.Source, func() error, error) {
	override(&settings.NATS.URL, c.NATS)
	override(&settings.State, c.State)
	steps, err := settings.Step.steps()
	if err != nil {
		return nil, nil, err
	}
	if c.any() {
		if c.NATS != "" || c.State != "" {
			return nil, nil, usagef("replay: files and a stream are given; choose one")
		}
		source, err := openFiles(&c.fileFlags, settings, steps)
		if err != nil {
			return nil, nil, err
		}
		return source, source.Close, nil
	}
	if settings.NATS.URL == "" && settings.State == "" {
		return nil, nil, usagef("replay: no log; give --state DIR, --nats URL or files")
	}
	return c.openStream(ctx, settings, steps, slog.New(slog.NewTextHandler(con.Err, nil)))
}

func (c *replayCmd) openStream(ctx context.Context, settings *fileConfig, steps ingest.StepConfig, log *slog.Logger) (ingest.Source, func() error, error) {
	decoder, err := event.NewDecoder(event.Config{Classes: settings.Classes.set()})
	if err != nil {
		return nil, nil, usageError{err}
	}
	b, err := openBroker(*settings, log)
	if err != nil {
		return nil, nil, err
	}
	source, err := ingest.OpenJetStream(ctx, b.js, decoder, ingest.JetStreamConfig{
		Step: steps, Until: event.Position(c.To), UntilLast: true,
	})
	if err != nil {
		return nil, nil, errors.Join(err, b.close())
	}
	return source, func() error { return errors.Join(source.Close(), b.close()) }, nil
}
