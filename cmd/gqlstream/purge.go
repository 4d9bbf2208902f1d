package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/checkpoint"
	"gqlstream/ingest"
)

type purgeCmd struct {
	State  string `placeholder:"DIR" help:"State directory with the checkpoints. Without --nats no process may be using it. [gqlstream-state]"`
	NATS   string `name:"nats" placeholder:"URL" help:"The log is on this NATS server."`
	DryRun bool   `help:"Say what would be deleted, and delete nothing."`
}

// Help is the long help of the command.
func (*purgeCmd) Help() string {
	return `Deletes the beginning of the log, up to the second-newest checkpoint: a run goes on from the newest one,
or from the one before it if that is damaged. Both are verified, and compared with the log, before
anything is deleted. What is gone cannot be replayed from the beginning any more, nor read with another
configuration; replay has --use-checkpoint for what is left.

Examples:
  gqlstream purge --state gqlstream-state --dry-run
  gqlstream purge --state gqlstream-state --nats nats://broker:4222`
}

// Run deletes what no checkpoint needs.
func (c *purgeCmd) Run(ctx context.Context, con console) (err error) {
	state := cmp.Or(c.State, stateDefault)
	dir := checkpoint.Look(checkpoint.Disk{}, filepath.Join(state, "checkpoints"))
	kept, err := newestTwo(dir, state)
	if err != nil {
		return err
	}
	b, err := openBroker(fileConfig{State: state, NATS: natsConfig{URL: c.NATS}}, slog.New(slog.NewTextHandler(con.Err, nil)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, k := range kept {
		_, id := resumeOf(k)
		if err := id.Check(ctx, b.js); err != nil {
			return err
		}
	}
	log, err := b.js.Stream(ctx, ingest.DefaultStreamNames().Log)
	if err != nil {
		return err
	}
	upTo, before := kept[1].Position, log.CachedInfo().State
	switch {
	case before.FirstSeq >= upTo:
		_, err = fmt.Fprintf(con.Out, "nothing to delete: the log begins at %d\n", before.FirstSeq)
		return err
	case c.DryRun:
		_, err = fmt.Fprintf(con.Out, "would delete messages %d to %d of %d\n", before.FirstSeq, upTo-1, before.LastSeq)
		return err
	}
	if err := log.Purge(ctx, jetstream.WithPurgeSequence(upTo)); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	_, err = fmt.Fprintf(con.Out, "deleted messages %d to %d of %d\n", before.FirstSeq, upTo-1, before.LastSeq)
	return err
}

// newestTwo returns the manifests of the two newest checkpoints, which must be
// intact and of one configuration.
func newestTwo(dir *checkpoint.Dir, state string) ([2]checkpoint.Manifest, error) {
	var kept [2]checkpoint.Manifest
	positions, err := dir.List()
	if err != nil {
		return kept, err
	}
	if len(positions) < len(kept) {
		return kept, fmt.Errorf("purge: %d checkpoints in %s, two are needed before anything may be deleted; let run "+
			"go on until it has written them", len(positions), state)
	}
	for i := range kept {
		c, err := dir.Read(positions[i])
		if err != nil {
			return kept, fmt.Errorf("purge: %w; nothing was deleted. Start run, which sets it aside and writes others", err)
		}
		kept[i] = c.Manifest
	}
	if kept[0].Config != kept[1].Config {
		return kept, errors.New("purge: the two newest checkpoints are of different configurations; let run write " +
			"another one first")
	}
	return kept, nil
}
