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
func (f *fold) coreOf(c *checkpoint.Checkpoint, reconfigured bool) (*incremental.Core, error) {
	reason := fmt.Sprintf("its derived tables have version %d, and this release has %d",
		c.Manifest.Derived, checkpoint.Derived)
	switch c.Manifest.Derived {
	case checkpoint.Derived:
		if reconfigured {
			reason = "it is of another configuration, and the log lacks its beginning"
			break
		}
		core, err := incremental.Restore(f.config, c.Sections)
		if err == nil {
			return core, nil
		}
		reason = err.Error()
	case checkpoint.NoDerived:
		reason = "it has no derived tables yet"
	}
	core, err := incremental.RestoreTables(f.config, c.Sections, reconfigured)
	if err == nil {
		f.log.Warn("the graph, labels and predictions of a checkpoint are read, and everything "+
			"else is computed again", "position", c.Manifest.Position, "because", reason)
	}
	return core, err
}

// newestReconfigured returns the newest intact checkpoint of any configuration with these classes,
// if the log lacks its beginning; nil if the log is whole and can be read again.
func (f *fold) newestReconfigured(ctx context.Context) (*checkpoint.Checkpoint, error) {
	stream, err := f.Broker.JS.Stream(ctx, f.names.In.Log)
	if err != nil {
		return nil, err
	}
	if stream.CachedInfo().State.FirstSeq <= 1 {
		f.log.Warn("the configuration has changed; reading the log from its beginning")
		return nil, nil //nolint:nilnil // a fresh core
	}
	c, err := f.Checkpoints.Dir.LoadWhere(
		func(m *checkpoint.Manifest) bool { return slices.Equal(m.Classes, f.settings.Classes) },
		func(damage error) { f.log.Warn("a damaged checkpoint is ignored", "reason", damage) })
	if err == nil && c == nil {
		f.log.Warn("the configuration has changed, and no checkpoint has these classes; reading " +
			"the log from its beginning")
	}
	return c, err
}

// askToRecompute publishes the recompute event that the core waits for, unless this process has
// published one that lies ahead. The log has it, so that all workers, and every replay, compute
// the same from there on.
func (f *fold) askToRecompute(ctx context.Context, from *ingest.Identity) error {
	if f.recompute.Load() > uint64(f.core.Position()) {
		return nil
	}
	if err := from.Check(ctx, f.Broker.JS); err != nil {
		return err // before anything is published for another log
	}
	at, err := publishControl(ctx, f.Broker.JS, f.names.In.Log, event.Recompute)
	if err == nil {
		f.recompute.Store(uint64(at))
		f.log.Info("estimates begin again", "position", at)
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
