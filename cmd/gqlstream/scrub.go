package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/pipeline"
)

type scrubCmd struct {
	serverFlags
	Fill bool `help:"${scrub_fill}"`
}

func (*scrubCmd) Help() string {
	return `Reads the log and the estimates message by message, from each server that keeps them, so
that the servers verify each; compares the log with the digests in checkpoints, marks and position
files; and verifies every checkpoint. Changes nothing, and also works during a run whose broker it
can reach. Exits with 1 if something is damaged or gone; docs/operations.md explains the repair.
With --fill it first computes missing records again, from the log, and stores them; no run may
publish meanwhile.

Examples:
  gqlstream scrub --state gqlstream-state
  gqlstream scrub --config gqlstream.yaml --nats nats://broker:4222
  gqlstream scrub --config gqlstream.yaml --state gqlstream-state --fill`
}

// Run reads everything and prints the result.
func (c *scrubCmd) Run(ctx context.Context, con console) error {
	b, err := c.openExisting(ctx, con)
	if err != nil {
		return err
	}
	if c.Fill {
		log := slog.New(slog.NewTextHandler(con.Err, nil))
		made, err := pipeline.Fill(ctx, b, c.settings, log)
		if err != nil {
			return fmt.Errorf("scrub: %w", err)
		}
		fmt.Fprintf(con.Out, "%s: %d emissions were made again\n", c.out.Estimates, made)
	}
	faults := 0
	fault := func(format string, args ...any) {
		faults++
		fmt.Fprintf(con.Out, format+"\n", args...)
	}
	places, damaged, err := pipeline.RecordedPlaces(ctx, b, c.settings)
	if err != nil {
		return err
	}
	for _, err := range damaged {
		fault("%v", err)
	}
	if err := c.scrubCheckpoints(con, fault); err != nil {
		return err
	}
	log, err := b.JS.Stream(ctx, c.names.Log)
	if err != nil {
		return err
	}
	known, err := ingest.Holes(ctx, log) // with a beginning that nobody purged
	if err != nil {
		return err
	}
	for _, hole := range known {
		fault(
			"%s: messages %v are gone, and a replay stops there: run --skip %v continues "+
				"without them",
			c.names.Log, hole, hole)
	}
	if err := c.scrubStreams(ctx, con, b, places, fault); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("scrub: %d faults", faults)
	}
	return nil
}

// scrubStreams reads the log and the estimates.
func (c *scrubCmd) scrubStreams(
	ctx context.Context, con console, b *broker.Broker, recorded []ingest.Place,
	fault func(format string, args ...any),
) error {
	for _, name := range []string{c.names.Log, c.out.Estimates} {
		places, check := recorded, (func([]byte) error)(nil)
		if name != c.names.Log {
			places, check = nil, pipeline.CheckRecord
		}
		found, err := ingest.Scrub(ctx, b.JS, name, places, check)
		if err != nil {
			return err
		}
		fmt.Fprintf(con.Out, "%s: %d messages from %d on, %d places agree\n",
			name, found.Messages, found.First, found.Agreeing)
		if len(found.Unread) > 0 {
			fmt.Fprintf(con.Out, "%s: the copies of %s were not read: they do not answer\n",
				name, strings.Join(found.Unread, ", "))
		}
		for _, hole := range found.Holes {
			fault("%s: messages %v cannot be read", name, hole)
		}
		for _, err := range found.Bad {
			fault("%v", err)
		}
	}
	ends, err := pipeline.LostEnds(ctx, b, c.settings)
	if err != nil {
		return err
	}
	for _, err := range ends {
		fault("%v", err)
	}
	return nil
}

// scrubCheckpoints verifies every checkpoint.
func (c *scrubCmd) scrubCheckpoints(con console, fault func(format string, args ...any)) error {
	faults, verified, err := pipeline.DamagedCheckpoints(c.settings.State)
	for _, one := range faults {
		fault("%v", one)
	}
	if err == nil {
		fmt.Fprintf(con.Out, "%d checkpoints in %s\n", verified, c.settings.State)
	}
	return err
}
