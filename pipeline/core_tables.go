package pipeline

import (
	"context"
	"fmt"
	"slices"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
)

// coreOf returns the core of a state. If its derived tables are of another version or
// configuration, the core begins with the core tables.
func (p *opener) coreOf(
	conf incremental.Config, c *checkpoint.Checkpoint, reconfigured bool,
) (*incremental.Core, error) {
	reason := fmt.Sprintf("its derived tables have version %d, and this release has %d",
		c.Manifest.Derived, checkpoint.Derived)
	switch c.Manifest.Derived {
	case checkpoint.Derived:
		if reconfigured {
			reason = "it is of another configuration, and the log lacks its beginning"
			break
		}
		core, err := incremental.Restore(conf, c.Sections)
		if err == nil {
			return core, nil
		}
		reason = err.Error()
	case checkpoint.NoDerived:
		reason = "it has no derived tables yet"
	}
	core, err := incremental.RestoreTables(conf, c.Sections, reconfigured)
	if err == nil {
		p.log.Warn("the graph, labels and predictions of a checkpoint are read, and everything "+
			"else is computed again", "position", c.Manifest.Position, "because", reason)
	}
	return core, err
}

// newestReconfigured returns the newest intact checkpoint of any configuration with these classes,
// if the log lacks its beginning; nil if the log is whole and can be read again.
func (p *opener) newestReconfigured(ctx context.Context) (*checkpoint.Checkpoint, error) {
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return nil, err
	}
	if stream.CachedInfo().State.FirstSeq <= 1 {
		p.log.Warn("the configuration has changed; reading the log from its beginning")
		return nil, nil //nolint:nilnil // a fresh core
	}
	var others []string // classes of the newest checkpoint, if it has others
	c, err := p.dir.LoadWhere(
		func(m *checkpoint.Manifest) bool {
			same := slices.Equal(m.Classes, p.settings.Classes)
			if !same && others == nil {
				others = m.Classes
			}
			return same
		},
		func(damage error) { p.log.Warn("a damaged checkpoint is ignored", "reason", damage) })
	if err == nil && c == nil {
		p.log.Warn("the classes have changed, so predictions and labels of the checkpoints cannot "+
			"be used: the log is read from its beginning (other names for readers belong in "+
			"display)", "before", others, "now", p.settings.Classes)
	}
	return c, err
}

// askToRecompute publishes the recompute event that the core waits for, unless this process has
// published one that lies ahead. The log has it, so that all workers, and every replay, compute
// the same from there on.
func (p *opener) askToRecompute(
	ctx context.Context, core *incremental.Core, from *ingest.Identity,
) error {
	if p.recompute.Load() > uint64(core.Position()) {
		return nil
	}
	if err := from.Check(ctx, p.Broker.JS); err != nil {
		return err // before anything is published for another log
	}
	at, err := publishControl(ctx, p.Broker.JS, p.names.In.Log, event.Recompute)
	if err == nil {
		p.recompute.Store(uint64(at))
		p.log.Info("estimates begin again", "position", at)
	}
	return err
}

// derived returns the version of the derived tables of the core's state.
func (f *fold) derived() int {
	if f.core.Waits() {
		return checkpoint.NoDerived
	}
	return checkpoint.Derived
}
