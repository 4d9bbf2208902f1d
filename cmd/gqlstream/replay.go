package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"gqlstream/config"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/pipeline"
)

type replayCmd struct {
	fileFlags
	refusedFlags
	config.CoreFlags
	State         string `placeholder:"DIR" help:"Replay the embedded stream of this state directory, which no process may be using."`
	NATS          string `name:"nats" placeholder:"URL" help:"Replay the stream of this NATS server."`
	From          string `placeholder:"POSITION|TIME" help:"Print only what comes after this place."`
	To            string `placeholder:"POSITION|TIME" help:"End after this place. A time is RFC 3339, as in the records."`
	UseCheckpoint bool   `help:"Begin at the newest checkpoint up to --from POSITION, or of all, instead of at the beginning of the log."`
	Alerts        string `placeholder:"FILE" help:"Evaluate the alert rules of the configuration and write what begins and ends to this file; - is standard output, in place of the estimates."`
	Digest        string `enum:",step,emission,checkpoint" default:"" placeholder:"WHEN" help:"Print a digest of the state on standard error, after every step, emission or checkpoint."`
}

func (*replayCmd) Help() string {
	return `Runs a log from its beginning through a fresh core and prints every estimate it emits, one JSON
object a line: what gqlstream run published, bit for bit, if the configuration is the same. The log is
a stream (--state or --nats) or files. Nothing is published and nothing is changed.

With --to a stream ends after exactly that position, whatever the steps; with --to TIME, and in files,
it ends with the last whole step. The record that run published at position P is the last of --to P.

A row of a file that is refused is an error before anything is printed, unless --max-refused or
--skip-refused allow it. What is refused in a stream was refused live: it is counted at the end.

--alerts evaluates the alert rules of the configuration over the whole log, whatever rules held when it
was live: for rules that did not change these are the transitions that run gave, and for others it says
what they would have done.

--digest names the state at places of the log, to find where two runs part: after a checkpoint it is
what gqlstream snapshot list shows as STATE.

Examples:
  gqlstream replay --config gqlstream.yaml --state gqlstream-state --to 120000
  gqlstream replay --config gqlstream.yaml --state gqlstream-state --from 2026-05-01T12:00:00Z --digest checkpoint
  gqlstream replay --config gqlstream.yaml --state gqlstream-state --alerts -
  gqlstream replay --classes 2 --everyone --log events.ndjson.zst`
}

// Run replays to the end of the log, or to the place asked for.
func (c *replayCmd) Run(ctx context.Context, con console) (err error) {
	settings, err := c.Settings()
	if err != nil {
		return err
	}
	config.Override(&settings.NATS.URL, c.NATS)
	config.Override(&settings.State, c.State)
	r, err := c.newReplay(con, settings.State)
	if err != nil {
		return err
	}
	conf, err := settings.Core()
	if err != nil {
		return err
	}
	at, err := c.begin(r, settings.State, conf)
	if err != nil {
		return err
	}
	if err := c.openAlerts(r, settings); err != nil {
		return errors.Join(err, r.closeAlerts())
	}
	defer func() { err = errors.Join(err, r.closeAlerts()) }()
	defer func() { r.core.Close() }()
	source, closeSource, err := c.open(ctx, &settings, con, r.to.Position, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	pipeline.LimitFrom(source, r.core)
	defer r.reportRefused()
	return r.run(ctx, source)
}

// open opens the one log that the flags name.
func (c *replayCmd) open(
	ctx context.Context, settings *config.Settings, con console, to event.Position, at pipeline.Resume,
) (ingest.Source, func() error, error) {
	steps, err := settings.Steps()
	if err != nil {
		return nil, nil, err
	}
	if c.any() {
		if c.NATS != "" || c.State != "" {
			return nil, nil, config.Usagef("replay: files and a stream are given; choose one")
		}
		if err := c.checkRows(ctx, settings, con.Err); err != nil {
			return nil, nil, err
		}
		source, err := openFiles(&c.fileFlags, settings, steps)
		if err != nil {
			return nil, nil, err
		}
		return source, source.Close, nil
	}
	if settings.NATS.URL == "" && settings.State == "" {
		return nil, nil, config.Usagef("replay: no log; give --state DIR, --nats URL or files")
	}
	b, err := config.OpenBroker(*settings, slog.New(slog.NewTextHandler(con.Err, nil)))
	if err != nil {
		return nil, nil, err
	}
	source, err := pipeline.OpenLog(ctx, b.JS, settings, ingest.JetStreamConfig{
		Step: steps, Until: to, UntilLast: to == 0, From: at.Place, Identity: at.Identity,
	})
	if errors.Is(err, ingest.ErrWrongHistory) && at.Identity == nil {
		in, _, _ := settings.Names()
		if log, e := b.JS.Stream(ctx, in.Log); e == nil {
			err = fmt.Errorf("replay: the beginning of the log was purged: it begins at %d; --use-checkpoint begins at a checkpoint of --state",
				log.CachedInfo().State.FirstSeq)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return source, func() error { return errors.Join(source.Close(), b.Close()) }, nil
}

// checkRows reads the files once before anything is printed, and returns an error if
// too many of their rows are refused.
func (c *replayCmd) checkRows(ctx context.Context, settings *config.Settings, diagnostics io.Writer) (err error) {
	again := *settings
	source, err := openFiles(&c.fileFlags, &again, ingest.StepConfig{Every: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	return c.readFiles(ctx, source, diagnostics, func(*event.Batch) ([]event.Refusal, error) { return nil, nil })
}
