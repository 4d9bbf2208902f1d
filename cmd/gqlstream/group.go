package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/pipeline/group"
	"gqlstream/sinks"
)

type groupCmd struct {
	serverFlags
	Name   string `arg:"" help:"Name of the group."`
	Action string `arg:"" optional:"" help:"drain, or nothing."`
	Worker string `arg:"" optional:"" help:"Name of the worker to drain."`
}

func (*groupCmd) Help() string {
	return `Lists the live workers, and for each shard its publisher and its newest position. With
drain, a worker hands its shards over and ends; the command waits for the end.

Examples:
  gqlstream group midterms --nats nats://a,nats://b,nats://c
  gqlstream group midterms drain box-w2 --nats nats://a`
}

// Run lists the workers, or drains one.
func (c *groupCmd) Run(ctx context.Context, con console) error {
	if c.settings.NATS.URL == "" {
		return config.Usagef("group: no server; give --nats URL, or --config FILE with nats.url")
	}
	log := slog.New(slog.NewTextHandler(con.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := c.open(ctx, con)
	if err != nil {
		return err
	}
	bucket := group.Bucket(c.settings.NATS.Prefix, c.Name)
	switch {
	case c.Action == "drain" && c.Worker != "":
		fmt.Fprintf(con.Err,
			"group: %s ends when others publish its shards; gqlstream group %s shows how far "+
				"they are\n",
			c.Worker, c.Name)
		return group.Drain(ctx, b.JS, bucket, c.Worker)
	case c.Action != "":
		return config.Usagef(
			"group: want gqlstream group NAME, or gqlstream group NAME drain WORKER")
	}
	return pipeline.OnceElected(ctx, log, true, func() error {
		return c.list(ctx, con.Out, b.JS, bucket)
	})
}

// list writes the workers and the shards as two tables.
func (c *groupCmd) list(
	ctx context.Context, w io.Writer, js jetstream.JetStream, bucket string,
) error {
	workers, err := group.List(ctx, js, bucket)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, c.names.Log)
	if err != nil {
		return err
	}
	end := stream.CachedInfo().State.LastSeq
	marks, err := sinks.Marks(ctx, js, c.out)
	if err != nil {
		return err
	}
	table := newTable(w)
	fmt.Fprintln(table,
		"WORKER\tPOSITION\tBEHIND\tSHARDS\tCONFIGURATION\tBUILD\tARCHITECTURE\tPAGE")
	for _, p := range workers {
		shards := fmt.Sprint(p.Shards)
		if p.Drains {
			shards += " (hands over)"
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", p.Worker, p.Position,
			end-min(p.Position, end), shards, p.Config, p.Build, p.Arch, p.Page)
	}
	fmt.Fprintln(table, "\nSHARD\tWATERMARK\tBEHIND\tPUBLISHED BY")
	for _, m := range marks {
		fmt.Fprintf(table, "%d\t%d\t%d\t%s, process %d\n",
			m.Shard, m.Position, end-min(m.Position, end), m.Writer.Host, m.Writer.PID)
	}
	return table.Flush()
}
