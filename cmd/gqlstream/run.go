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
	Listen          string `placeholder:"ADDRESS" help:"Let producers on this host reach the embedded server, at 127.0.0.1:4222 say."`
	Output          string `short:"o" placeholder:"FILE" help:"Also write the estimates as JSON lines; - is standard output."`
	Parquet         string `placeholder:"DIR" help:"Also write the estimates as Parquet files to this directory."`
	HTTP            string `name:"http" placeholder:"ADDRESS" help:"Where the page, the API and the metrics are; off for none. [127.0.0.1:8090]"`
	Group           string `placeholder:"NAME" help:"Divide the work with the other workers of this group, on one NATS server or cluster (--nats)."`
	Worker          string `placeholder:"NAME" help:"Name of this worker in its group. [the host's and the state directory's]"`
	Skip            string `placeholder:"POSITION" help:"Skip this message, or all of FIRST-LAST, in every run and replay. The decision is recorded in the log. Use it if one message makes every start fail, or if the broker has lost some."`
	AcceptLog       bool   `help:"Go on with the log as it is, if it is not the one that was read: what was published beyond it stands, and counts no more."`
	AcceptNewConfig bool   `help:"Read and publish the whole log anew where the state directory is of another configuration, which is refused otherwise."`
	ExitWhenDrained bool   `help:"End when everything that is in the stream now has been applied and published."`
}

func (*runCmd) Help() string {
	return `Publishes to the stream GQL_ESTIMATES and the bucket gql_estimates. Without --nats it runs a NATS server
of its own in the state directory, gqlstream-state unless --state names another. On SIGHUP it reads the
configuration again and restarts with it, if it is valid. What was refused is told by gqlstream quarantine. See docs/operations.md.

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
