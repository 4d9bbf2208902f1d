package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"gqlstream/ingest"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/sinks/web"
)

type runCmd struct {
	serverFlags
	config.ResultFlags
	Listen          string `placeholder:"ADDRESS" help:"${run_listen}"`
	Output          string `short:"o" placeholder:"FILE" help:"${run_output}"`
	Parquet         string `placeholder:"DIR" help:"${run_parquet}"`
	HTTP            string `name:"http" placeholder:"ADDRESS" help:"${run_http}"`
	GraphOf         string `placeholder:"PREFIX" help:"${run_graph_of}"`
	Group           string `placeholder:"NAME" help:"${run_group}"`
	Worker          string `placeholder:"NAME" help:"${run_worker}"`
	Skip            string `placeholder:"POSITION" help:"${run_skip}"`
	AcceptLog       bool   `help:"${run_accept_log}"`
	AcceptNewConfig bool   `help:"${run_accept_new_config}"`
	ExitWhenDrained bool   `help:"${run_exit_when_drained}"`
}

func (*runCmd) Help() string {
	return `Publishes to the stream GQL_ESTIMATES and the bucket gql_estimates. Without --nats it
runs a NATS server of its own in the state directory (--state, by default gqlstream-state). On
SIGHUP it restarts with a new valid configuration. gqlstream quarantine lists refused events. See
docs/operations.md.

Examples:
  gqlstream run --classes 2 --everyone
  gqlstream run --classes left,right --parquet estimates
  gqlstream run --config gqlstream.yaml --listen 127.0.0.1:4222
  gqlstream run --classes de,en --nats nats://127.0.0.1:4222 --prefix language --graph-of gql
  gqlstream run --config gqlstream.yaml --nats nats://broker:4222 --exit-when-drained --output -`
}

// Run follows the stream until it is drained, if asked to, or interrupted.
func (c *runCmd) Run(ctx context.Context, con console) error {
	if settings, err := c.configure(); err == nil { // else the pipeline reports the error
		noteSilentAlerts(con.Err, &settings)
	}
	skip, ok := ingest.ParseRange(c.Skip)
	if c.Skip != "" && !ok {
		return config.Usagef("run: --skip %s: want a position, or FIRST-LAST", c.Skip)
	}
	log := slog.New(slog.NewTextHandler(con.Err, nil))
	tracer, err := pipeline.NewTracer(os.Getenv, log)
	if err != nil {
		return err
	}
	defer tracer.Close()
	return pipeline.Run(ctx, c.configure, pipeline.Options{
		Version: version, Skip: skip, Accept: c.AcceptLog, Drain: c.ExitWhenDrained,
		Out: con.Out, Err: con.Err, Log: log, Tracer: tracer,
		Group: c.Group, Worker: c.Worker, Same: !c.AcceptNewConfig,
	})
}

// configure reads the configuration file, and merges the flags over it.
func (c *runCmd) configure() (config.Settings, error) {
	settings, err := c.load()
	if err == nil {
		err = c.Merge(&settings)
	}
	if err != nil {
		return settings, err
	}
	if c.GraphOf != "" && c.Prefix != "" {
		settings.State = cmp.Or(settings.State, config.StateDefault+"-"+c.Prefix)
	}
	settings.State = cmp.Or(settings.State, config.StateDefault)
	settings.NATS.Listen = cmp.Or(c.Listen, settings.NATS.Listen)
	settings.NATS.GraphOf = cmp.Or(c.GraphOf, settings.NATS.GraphOf)
	settings.Output.File = cmp.Or(c.Output, settings.Output.File)
	settings.Output.Parquet = cmp.Or(c.Parquet, settings.Output.Parquet)
	settings.HTTP.Listen = cmp.Or(c.HTTP, settings.HTTP.Listen)
	if settings.HTTP.Listen == "" && c.ExitWhenDrained {
		settings.HTTP.Listen = web.ListenOff // nobody looks at a run that ends by itself
	}
	if c.Worker != "" && c.Group == "" {
		return settings, config.Usagef("run: --worker needs --group NAME")
	}
	if settings.NATS.URL != "" && settings.NATS.Listen != "" {
		return settings, config.Usagef(
			"run: --listen opens the embedded server, and --nats uses another one; choose one")
	}
	return settings, nil
}
