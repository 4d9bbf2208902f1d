package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/group"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/pipeline"
)

type purgeCmd struct {
	serverFlags
	Quarantine bool `help:"Also delete what was refused in the part of the log that goes."`
	DryRun     bool `help:"Say what would be deleted, and delete nothing."`
}

func (*purgeCmd) Help() string {
	return `Deletes the log up to the second-newest checkpoint, and older checkpoints, which need it. Both newest are
verified first, and what a worker of a group may need stays. What is gone cannot be replayed, nor read
with another configuration; replay has --use-checkpoint for what is left. After an erasure purge says
whether the log still holds what was erased.

Examples:
  gqlstream purge --state gqlstream-state --dry-run
  gqlstream purge --state gqlstream-state --nats nats://broker:4222 --quarantine`
}

// purge is one purge under way.
type purge struct {
	command *purgeCmd
	con     console
	dir     *checkpoint.Dir
	kept    [2]checkpoint.Manifest // the newest first
	broker  *broker.Broker
	upTo    uint64 // position of the first message that stays
}

// Run deletes what no checkpoint needs.
func (c *purgeCmd) Run(ctx context.Context, con console) error {
	c.settings.State = cmp.Or(c.settings.State, config.StateDefault)
	state := c.settings.State
	p := purge{
		command: c,
		con:     con,
		dir:     checkpoint.Look(checkpoint.Disk{}, filepath.Join(state, "checkpoints")),
	}
	err := p.readKept(state)
	if err != nil {
		return err
	}
	if p.broker, err = c.open(ctx, con); err != nil {
		return err
	}
	for _, k := range p.kept {
		_, id := pipeline.ResumeOf(k)
		if err := id.Check(ctx, p.broker.JS); err != nil {
			return err
		}
	}
	if p.upTo, err = p.needed(ctx); err != nil {
		return err
	}
	if err := p.log(ctx); err != nil {
		return err
	}
	if c.Quarantine {
		if err := p.quarantine(ctx); err != nil {
			return err
		}
	}
	if !c.DryRun {
		if err := p.dir.DropBefore(p.upTo); err != nil {
			return err
		}
	}
	p.tellErased()
	return nil
}

// needed returns the position from which the log is needed: that of the second-newest checkpoint, or
// an older one at which a group keeps the graph.
func (p *purge) needed(ctx context.Context) (uint64, error) {
	upTo := p.kept[1].Position
	graph, bucket, err := group.OldestGraph(ctx, p.broker.JS, p.command.settings.NATS.Prefix)
	if graph == 0 || graph >= upTo {
		return upTo, err
	}
	fmt.Fprintf(
		p.con.Out,
		"the log is kept from %d on, although the checkpoints here need it from %d on only: a worker of the group "+
			"in object bucket %s may go on from there, until its next graph, one in %d checkpoints\n",
		graph,
		upTo,
		bucket,
		pipeline.GraphEvery,
	)
	return graph, err
}

// log deletes the messages that nobody needs.
func (p *purge) log(ctx context.Context) error {
	log, err := p.broker.JS.Stream(ctx, p.command.names.Log)
	if err != nil {
		return err
	}
	before := log.CachedInfo().State
	if before.FirstSeq >= p.upTo {
		fmt.Fprintf(p.con.Out, "nothing to delete: the log begins at %d\n", before.FirstSeq)
		return nil
	}
	if !p.command.DryRun {
		if err := ingest.RecordFirst(ctx, p.broker.JS, log, p.upTo); err != nil {
			return err
		}
		if err := log.Purge(ctx, jetstream.WithPurgeSequence(p.upTo)); err != nil {
			return fmt.Errorf("purge: %w", err)
		}
	}
	fmt.Fprintf(
		p.con.Out,
		"%s messages %d to %d of %d\n",
		p.deleted(),
		before.FirstSeq,
		p.upTo-1,
		before.LastSeq,
	)
	return nil
}

// quarantine deletes the entries of the messages that are deleted.
func (p *purge) quarantine(ctx context.Context) error {
	q, err := ingest.OpenQuarantine(ctx, p.broker.JS, p.command.names)
	if err != nil {
		return err
	}
	n, err := q.DropBefore(ctx, event.Position(p.upTo), p.command.DryRun)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.con.Out, "%s %d entries of the quarantine\n", p.deleted(), n)
	return nil
}

func (p *purge) deleted() string {
	if p.command.DryRun {
		return "would delete"
	}
	return "deleted"
}

// tellErased says whether the log still holds data that was erased.
func (p *purge) tellErased() {
	switch erased := p.kept[0].Erased; {
	case erased == 0:
	case erased >= p.upTo:
		fmt.Fprintf(
			p.con.Out,
			"the log still holds what was erased at %d: purge again when what is kept is newer "+
				"(gqlstream snapshot list)\n",
			erased,
		)
	default:
		fmt.Fprintf(
			p.con.Out,
			"the log holds nothing any more from before the erasure at %d\n",
			erased,
		)
	}
}

// readKept reads the two newest checkpoints, which must be intact and of one configuration.
func (p *purge) readKept(state string) error {
	positions, err := p.dir.List()
	if err != nil {
		return err
	}
	if len(positions) < len(p.kept) {
		return fmt.Errorf(
			"purge: %d checkpoints in %s, two are needed before anything may be deleted; let run "+
				"go on until it has written them",
			len(positions),
			state,
		)
	}
	for i := range p.kept {
		c, err := p.dir.Read(positions[i])
		if err != nil {
			return fmt.Errorf("purge: %w; nothing was deleted. Start run, which writes others", err)
		}
		p.kept[i] = c.Manifest
	}
	if p.kept[0].Config != p.kept[1].Config {
		return errors.New(
			"purge: the two newest checkpoints are of different configurations; let run write another one first",
		)
	}
	return nil
}
