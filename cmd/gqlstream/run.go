package main

import (
	"cmp"
	"context"
	"log/slog"

	"gqlstream/ingest"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/sinks/web"
)

type runCmd struct {
	serverFlags
	config.ResultFlags
	Listen          string `placeholder:"ADDRESS" help:"Address of the embedded server for producers on this host, such as 127.0.0.1:4222."`
	Output          string `short:"o" placeholder:"FILE" help:"Write the estimates as JSON lines to this file; - is standard output."`
	Parquet         string `placeholder:"DIR" help:"Write the estimates as Parquet files to this directory."`
	HTTP            string `name:"http" placeholder:"ADDRESS" help:"Address of the page, the API and the metrics; off for none. [127.0.0.1:8090]"`
	Group           string `placeholder:"NAME" help:"Share the communities with the other workers of this group, on one NATS server or cluster (--nats)."`
	Worker          string `placeholder:"NAME" help:"Name of this worker in its group. [from the host and the state directory]"`
	Skip            string `placeholder:"POSITION" help:"Skip this message, or all of FIRST-LAST, in every run and replay. The decision is recorded in the log. Use it if one message makes every start fail, or if the broker has lost some."`
	AcceptLog       bool   `help:"Accept a log that differs from the one that was read. Records beyond it stay, and count no more."`
	AcceptNewConfig bool   `help:"Accept a state directory of another configuration: read and publish the whole log again."`
	ExitWhenDrained bool   `help:"End after all present messages of the stream are applied and published."`
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
  gqlstream run --config gqlstream.yaml --nats nats://broker:4222 --exit-when-drained --output -`
}

// Run follows the stream until it is drained, if asked to, or interrupted.
func (c *runCmd) Run(ctx context.Context, con console) error {
	if settings, err := c.configure(); err == nil { // else the pipeline says what is wrong
		noteSilentAlerts(con.Err, &settings)
	}
	skip, ok := ingest.ParseRange(c.Skip)
	if c.Skip != "" && !ok {
		return config.Usagef("run: --skip %s: want a position, or FIRST-LAST", c.Skip)
	}
	return pipeline.Run(ctx, c.configure, pipeline.Options{
		Version: version, Skip: skip, Accept: c.AcceptLog, Drain: c.ExitWhenDrained,
		Out: con.Out, Err: con.Err, Log: slog.New(slog.NewTextHandler(con.Err, nil)),
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
	settings.State = cmp.Or(settings.State, config.StateDefault)
	settings.NATS.Listen = cmp.Or(c.Listen, settings.NATS.Listen)
	settings.Output.File = cmp.Or(c.Output, settings.Output.File)
	settings.Output.Parquet = cmp.Or(c.Parquet, settings.Output.Parquet)
	settings.HTTP.Listen = cmp.Or(c.HTTP, settings.HTTP.Listen)
	if settings.HTTP.Listen == "" && c.ExitWhenDrained {
		settings.HTTP.Listen = web.ListenOff // nobody looks at a run that ends by itself
	}
	if c.Worker != "" && c.Group == "" {
		return settings, config.Usagef("run: --worker names one of a group; give --group NAME too")
	}
	if settings.NATS.URL != "" && settings.NATS.Listen != "" {
		return settings, config.Usagef(
			"run: --listen is for the embedded server, and --nats is another one")
	}
	return settings, nil
}
