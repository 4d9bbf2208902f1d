package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

type explainCmd struct {
	fileFlags
	Config     string `short:"c" type:"existingfile" placeholder:"FILE" help:"Configuration (YAML) of the pipeline; see gqlstream check --help."`
	Classes    string `placeholder:"LIST" help:"Names of the classes in order, or how many there are."`
	Everyone   bool   `help:"The community of every vertex, named everyone, is tracked."`
	Classifier string `placeholder:"NAME" help:"Built-in classifier of the pipeline: enq or diffusion."`
	Method     string `placeholder:"NAME" help:"The method to explain. [the first that is published]"`

	State string `placeholder:"DIR" help:"State directory of gqlstream run: its checkpoints, and its embedded stream unless --nats is given. [gqlstream-state]"`
	NATS  string `name:"nats" placeholder:"URL" help:"The log is on this NATS server, such as that of a running gqlstream run --listen."`

	Community string `required:"" placeholder:"NAME" help:"The community whose estimate moved."`
	From      string `placeholder:"POSITION|TIME" help:"The earlier place. A time is RFC 3339, as in the records. [the estimate before --to]"`
	To        string `placeholder:"POSITION|TIME" help:"The later place. [the newest estimate]"`
	Named     int    `default:"10" placeholder:"N" help:"Name the N changes of each kind that moved it most; 0 names none."`

	Format string `default:"text" enum:"text,json" help:"text for reading, json for everything."`
}

// Help is the long help of the command.
func (*explainCmd) Help() string {
	return `Says why the estimate of a community moved between two places of the log: what members joining and
leaving, predictions, a new model version, labels and edges contributed. The contributions are Shapley
values and sum to the change. --method takes one method, by default the first that is published.

The graph at both places comes from the newest checkpoint before each and the log after it. Where the
estimates stream is there too, the places are those of the records in force at --from and --to, and the
change is that of the published shares. Without them, it is the last change. Nothing is published and
nothing is changed.

While gqlstream run uses the state directory its embedded log is read through it: start it with
--listen ADDRESS and give --nats nats://ADDRESS beside --state, or ask its page or its API.

Examples:
  gqlstream explain --config gqlstream.yaml --community berlin
  gqlstream explain --config gqlstream.yaml --community berlin --from 1200 --to 3400
  gqlstream explain --config gqlstream.yaml --community berlin --from 2026-05-01T12:00:00Z --to 2026-05-01T13:00:00Z --method sis-nacc
  gqlstream explain --config gqlstream.yaml --nats nats://127.0.0.1:4222 --community berlin --from 1200 --to 3400 --format json
  gqlstream explain --classes 2 --log events.ndjson.zst --everyone --community everyone --from 1000 --to 2000`
}

// Run explains one estimate.
func (c *explainCmd) Run(ctx context.Context, con console) (err error) {
	core := coreFlags{Config: c.Config, Classes: c.Classes, Everyone: c.Everyone, Classifier: c.Classifier}
	settings, err := core.settings()
	if err != nil {
		return err
	}
	override(&settings.NATS.URL, c.NATS)
	override(&settings.State, c.State)
	q, err := c.query()
	if err != nil {
		return err
	}
	e := &explainer{tell: func(format string, args ...any) { fmt.Fprintf(con.Err, "explain: "+format+"\n", args...) }}
	closeLog, err := c.prepare(e, &settings, con)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	x, err := e.explain(ctx, q)
	if err != nil {
		return asUsage(err)
	}
	if c.Format == "json" {
		return json.NewEncoder(con.Out).Encode(x)
	}
	return writeExplanation(con.Out, x)
}

// asUsage makes a question that cannot be answered one to be asked otherwise.
func asUsage(err error) error {
	var question explainError
	if errors.As(err, &question) {
		return usageError{err}
	}
	return err
}

func (c *explainCmd) query() (q explainQuery, err error) {
	q = explainQuery{community: c.Community, method: c.Method, named: c.Named}
	if c.Named < 0 {
		return q, usagef("explain: --named %d is negative", c.Named)
	}
	if c.Method != "" {
		if methods, err := quant.ParseMethods(c.Method); err != nil {
			return q, usageError{err}
		} else if len(methods) != 1 {
			return q, usagef("explain: --method %s names %d methods; one is explained at a time", c.Method, len(methods))
		}
	}
	if (c.From == "" || c.To == "") && c.any() {
		return q, usagef("explain: give --from and --to; there are no estimates beside files")
	}
	q.to = logPlace{position: math.MaxUint64} // the newest, and for from the one before
	if c.To != "" {
		if q.to, err = parsePlace("--to", c.To); err != nil {
			return q, err
		}
	}
	if c.From != "" {
		if q.from, err = parsePlace("--from", c.From); err != nil {
			return q, err
		}
	}
	return q, q.ordered()
}

// ordered reports places that are the wrong way round.
func (q *explainQuery) ordered() error {
	if q.from.position > 0 && q.to.position > 0 && q.from.position >= q.to.position ||
		q.from.time != 0 && q.to.time != 0 && q.from.time >= q.to.time {
		return usagef("explain: --from must lie before --to")
	}
	return nil
}

// prepare lets the explainer read the one log that the flags name.
func (c *explainCmd) prepare(e *explainer, settings *fileConfig, con console) (closeLog func() error, err error) {
	if c.any() {
		if c.NATS != "" || c.State != "" {
			return nil, usagef("explain: files and a stream are given; choose one")
		}
		return nothing, c.prepareFiles(e, settings)
	}
	if settings.State == "" {
		settings.State = stateDefault
	}
	if err := e.configure(settings); err != nil {
		return nil, err
	}
	if _, err := os.Stat(settings.State); err != nil && settings.NATS.URL == "" {
		return nil, usagef("explain: no log; give --state DIR, --nats URL or files (%w)", err)
	}
	e.checkpoints = settings.State
	b, err := openBroker(*settings, slog.New(slog.NewTextHandler(con.Err, nil)))
	if err != nil {
		var locked *ingest.LockedError
		if errors.As(err, &locked) {
			err = fmt.Errorf("%w\nIf that is gqlstream run: start it with --listen 127.0.0.1:4222 and give "+
				"--nats nats://127.0.0.1:4222 here, or ask its page", err)
		}
		return nil, err
	}
	return b.close, e.readStream(b, settings)
}

func nothing() error { return nil }

// configure takes over what the settings say.
func (e *explainer) configure(settings *fileConfig) (err error) {
	e.classes = settings.Classes
	e.config, err = settings.core()
	return err
}

// prepareFiles reads files: their rows are the positions. They are opened once to
// learn the classes.
func (c *explainCmd) prepareFiles(e *explainer, settings *fileConfig) error {
	steps, err := settings.steps()
	if err != nil {
		return err
	}
	steps.EventsMax, steps.Every, steps.EmitEvery = 1, -1, 0
	first, err := openFiles(&c.fileFlags, settings, steps)
	if err != nil {
		return err
	}
	e.open = func(context.Context, resume, event.Position) (ingest.Source, func() error, error) {
		return first, first.Close, nil
	}
	if err := e.configure(settings); err != nil {
		return errors.Join(err, first.Close())
	}
	return nil
}

// readStream reads the stream of a broker in the steps of run, so that what a step
// decides, a switch of the model version say, is decided alike.
func (e *explainer) readStream(b *broker, settings *fileConfig) error {
	steps, err := settings.steps()
	if err != nil {
		return err
	}
	e.js = b.js
	e.open = func(ctx context.Context, at resume, until event.Position) (ingest.Source, func() error, error) {
		decoder, err := event.NewDecoder(event.Config{Classes: settings.Classes.set()})
		if err != nil {
			return nil, nil, usageError{err}
		}
		source, err := ingest.OpenJetStream(ctx, b.js, decoder, ingest.JetStreamConfig{
			Step: steps, Until: until, UntilLast: until == 0, From: at.place, Identity: at.identity,
		})
		if err != nil {
			return nil, nil, err
		}
		return source, source.Close, nil
	}
	return nil
}
