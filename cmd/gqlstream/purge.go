package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
)

type purgeCmd struct {
	serverFlags
	Quarantine bool `help:"Also delete the refused events of the deleted part of the log."`
	DryRun     bool `help:"Print the planned deletion, and delete nothing."`
}

func (*purgeCmd) Help() string {
	return `Deletes the log up to the second-newest checkpoint, and the older checkpoints. Verifies
the two newest first, and keeps messages that a worker of a group may need. Deleted messages cannot
be replayed or read with another configuration; replay has --use-checkpoint for the rest. After an
erasure, purge reports whether the log still holds erased data.

Examples:
  gqlstream purge --state gqlstream-state --dry-run
  gqlstream purge --state gqlstream-state --nats nats://broker:4222 --quarantine`
}

// purge is one purge under way.
type purge struct {
	command *purgeCmd
	con     console
	dir     *checkpoint.Dir
	kept    pipeline.NeededLog
	broker  *broker.Broker
	upTo    uint64 // position of the first message that stays
}

// Run deletes the messages that no checkpoint needs.
func (c *purgeCmd) Run(ctx context.Context, con console) error {
	c.settings.State = cmp.Or(c.settings.State, config.StateDefault)
	state := c.settings.State
	p := purge{
		command: c,
		con:     con,
		dir:     checkpoint.Look(checkpoint.Disk{}, filepath.Join(state, "checkpoints")),
	}
	// no server is to be started there
	if positions, err := p.dir.List(); err == nil && len(positions) == 0 {
		return fmt.Errorf("purge: no checkpoint in %s; purge needs two", state)
	}
	var err error
	if p.broker, err = c.open(ctx, con); err != nil {
		return err
	}
	if p.kept, err = pipeline.Needed(ctx, p.broker.JS, p.dir, c.settings.NATS.Prefix); err != nil {
		return fmt.Errorf("purge: %s: %w", state, err)
	}
	p.printGraphNeed()
	p.upTo = p.kept.From()
	if err := p.questions(ctx); err != nil { // while the log still has the erasures
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
	return p.printErased(ctx)
}

// printGraphNeed says when a group needs more of the log than the checkpoints here.
func (p *purge) printGraphNeed() {
	if upTo := p.kept.Checkpoints[1].Position; p.kept.From() < upTo {
		fmt.Fprintf(
			p.con.Out,
			"the log is kept from %d on, although the checkpoints here need it from %d on only: "+
				"a worker of the group may start from object bucket %s, which gets a new graph "+
				"once in %d checkpoints\n",
			p.kept.Graph,
			upTo,
			p.kept.Bucket,
			pipeline.GraphEvery,
		)
	}
}

// questions deletes the questions of ask --publish about people erased by the log.
func (p *purge) questions(ctx context.Context) error {
	n, err := forgetQuestions(ctx, p.broker.JS, p.command.names, p.command.DryRun)
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	if n > 0 {
		fmt.Fprintf(p.con.Out, "%s %d questions about erased people\n", p.deleted(), n)
	}
	return nil
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
		if err := pipeline.PurgeLog(ctx, p.broker.JS, log, p.upTo); err != nil {
			return fmt.Errorf("purge: %w", err)
		}
	}
	fmt.Fprintf(p.con.Out, "%s messages %d to %d of %d\n",
		p.deleted(), before.FirstSeq, p.upTo-1, before.LastSeq)
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

// printErased says whether the log still holds data that was erased, and which places that a purge
// does not reach hold it, until when. The newest erasure may be one that no checkpoint has read.
func (p *purge) printErased(ctx context.Context) error {
	newest := p.kept.Checkpoints[0]
	_, erased, err := erasedIn(ctx, p.broker.JS, p.command.names.Log, newest.Position)
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	erased = max(erased, newest.Erased)
	switch {
	case erased == 0:
		return nil
	case erased >= p.upTo:
		fmt.Fprintf(p.con.Out,
			"not done: the log still holds data that was erased at %d: purge again "+
				"when the kept part is newer, after two checkpoints (gqlstream snapshot list)\n",
			erased)
		return nil
	}
	fmt.Fprintf(p.con.Out, "done: the log holds no data from before the erasure at %d\n", erased)
	remains := []string{
		fmt.Sprintf(
			"the broker's newest file of the log: bytes of deleted messages, until the log has "+
				"grown by %d MiB and is purged again", brokerFileBytes>>20),
		"backups, copies and files that were published: until you delete them",
	}
	if !p.command.Quarantine {
		remains = append(remains,
			fmt.Sprintf("the quarantine: for %d days, or until purge --quarantine",
				int(broker.QuarantineAgeMax.Hours()/24)))
	}
	if p.kept.Bucket != "" {
		remains = append(remains, fmt.Sprintf("object bucket %s of the group: for %d checkpoints",
			p.kept.Bucket, 2*pipeline.GraphEvery))
	}
	for _, place := range remains {
		fmt.Fprintln(p.con.Out, "may still hold it: "+place)
	}
	return nil
}

// brokerFileBytes is the maximum size of one file of a broker's log.
const brokerFileBytes = 8 << 20
