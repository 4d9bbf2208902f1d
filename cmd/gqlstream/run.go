package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

type runCmd struct {
	coreFlags
	State           string `placeholder:"DIR" help:"State directory: the embedded server's streams and checkpoints. [gqlstream-state]"`
	NATS            string `name:"nats" placeholder:"URL" help:"Use this NATS server instead of the embedded one."`
	Listen          string `placeholder:"ADDRESS" help:"Let producers on this host reach the embedded server, at 127.0.0.1:4222 say."`
	Output          string `short:"o" placeholder:"FILE" help:"Also write the estimates as JSON lines; - is standard output."`
	Parquet         string `placeholder:"DIR" help:"Also write the estimates as Parquet files to this directory."`
	Arrow           string `placeholder:"DIR" help:"Also write the estimates as Arrow files to this directory."`
	HTTP            string `name:"http" placeholder:"ADDRESS" help:"Where the page, the API and the metrics are; off for none. [127.0.0.1:8090]"`
	ExitWhenDrained bool   `help:"End when everything that is in the stream now has been applied and published."`
}

// Help is the long help of the command.
func (*runCmd) Help() string {
	return `Follows the stream GQL and keeps the estimates of every tracked community current: on
gqlest.estimate.<community> in the stream GQL_ESTIMATES, the latest in the bucket gql_estimates, and
with --output as JSON lines, with --parquet and --arrow as files for DuckDB, pandas and Polars. Without --nats it runs a NATS server of its own in the state directory.
On SIGHUP it reads the configuration again and takes over alerts, notify and the files of output.
Refused events are in the stream GQL_QUARANTINE; see gqlstream quarantine.

Examples:
  gqlstream run --classes 2 --everyone
  gqlstream run --classes left,right --parquet estimates
  gqlstream run --config gqlstream.yaml --listen 127.0.0.1:4222
  gqlstream run --config gqlstream.yaml --nats nats://broker:4222 --exit-when-drained --output -`
}

// Run follows the stream until it is drained, if asked to, or interrupted.
func (c *runCmd) Run(ctx context.Context, con console) error {
	settings, err := c.settings()
	if err != nil {
		return err
	}
	reload := newReloader(c.settings)
	defer reload.stop()
	log := slog.New(slog.NewTextHandler(con.Err, nil))
	for {
		p, err := openPipeline(ctx, settings, pipelineOptions{drain: c.ExitWhenDrained, out: con.Out, log: log})
		if err != nil {
			return err
		}
		p.reload = reload
		p.greet(con.Err)
		err = p.follow(ctx)
		if (errors.Is(err, errAgain) || errors.Is(err, sinks.ErrLost)) && ctx.Err() == nil {
			settings = p.settings // a reload may have changed them
			log.Warn("starting again from the newest checkpoint", "reason", err)
			if err := p.close(); err != nil {
				log.Warn("before starting again", "error", err) // of what is behind us
			}
			continue
		}
		if ctx.Err() != nil {
			err = nil // interrupted: everything up to the last step is out
		}
		return errors.Join(err, p.close())
	}
}

// errAgain ends a run whose embedded server must be started again. What the server had
// acknowledged and not written is lost, and is published again as after a crash.
var errAgain = errors.New("the embedded server could not write, and there is room again")

// follow is run, until the embedded server must be started again.
func (p *pipeline) follow(ctx context.Context) error {
	if p.broker.embedded == nil {
		return p.run(ctx)
	}
	running, cancel := context.WithCancelCause(ctx)
	var waits sync.WaitGroup
	waits.Go(func() {
		select {
		case <-p.broker.embedded.Again():
			cancel(errAgain)
		case <-running.Done():
		}
	})
	err := p.run(running)
	if errors.Is(context.Cause(running), errAgain) {
		err = errAgain
	}
	cancel(nil)
	waits.Wait()
	return err
}

// settings merges the flags over the configuration file.
func (c *runCmd) settings() (fileConfig, error) {
	settings, err := c.coreFlags.settings()
	if err != nil {
		return settings, err
	}
	override(&settings.State, c.State)
	override(&settings.NATS.URL, c.NATS)
	override(&settings.NATS.Listen, c.Listen)
	override(&settings.Output.File, c.Output)
	override(&settings.Output.Parquet, c.Parquet)
	override(&settings.Output.Arrow, c.Arrow)
	override(&settings.HTTP.Listen, c.HTTP)
	if settings.HTTP.Listen == "" && c.ExitWhenDrained {
		settings.HTTP.Listen = httpOff // nobody looks at a run that ends by itself
	}
	if settings.State == "" {
		settings.State = stateDefault
	}
	if settings.NATS.URL != "" && settings.NATS.Listen != "" {
		return settings, usagef("run: --listen is for the embedded server, and --nats is another one")
	}
	return settings, nil
}

// stateDefault is the state directory where none is given.
const stateDefault = "gqlstream-state"

func override(field *string, flag string) {
	if flag != "" {
		*field = flag
	}
}

// run is the only loop: next, step, write, record.
func (p *pipeline) run(ctx context.Context) error {
	var batch event.Batch
	for {
		err := p.source.Next(ctx, &batch)
		if errors.Is(err, io.EOF) {
			p.checkpoints.collect(p, true) // said before a sink is waited for that may be away for long
			return p.flushQueues(ctx)
		}
		if err != nil {
			return err
		}
		begun := time.Now()
		result := p.core.Step(&batch)
		stepped := time.Now()
		if refused := slices.Concat(batch.Refused, result.Refused); len(refused) > 0 {
			if err := p.quarantine.Write(ctx, refused); err != nil {
				return err
			}
		}
		for _, sink := range p.sinks {
			if err := sink.Write(ctx, result.Estimates); err != nil {
				return fmt.Errorf("position %d: %w", result.Position, err)
			}
		}
		transitions, err := p.alert(ctx, &batch, result.Estimates)
		if err != nil {
			return err
		}
		if err := p.enqueue(ctx, &batch, result.Estimates, transitions); err != nil {
			return err
		}
		p.record(&batch, &result)
		p.define()
		p.tell(&result, [2]time.Duration{stepped.Sub(begun), time.Since(stepped)})
		if result.Vacuumed {
			if err := p.save(ctx, &batch, batch.Checkpoint || result.Owed, stepped.Sub(begun)); err != nil {
				return err
			}
		}
		p.reloadIfAsked(ctx, &batch)
	}
}
