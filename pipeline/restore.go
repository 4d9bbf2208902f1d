package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/group"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// restore returns the core of the newest state that the fold can go on from and where that stands,
// or a fresh core at the beginning of the log when there is none: then the log is read again from its start.
func (f *fold) restore(ctx context.Context, same bool) (core *incremental.Core, at ingest.Resume, id *ingest.Identity, err error) {
	newest := f.newestHere
	if f.group != nil {
		newest = f.newestShared
	}
	c, err := newest(ctx, same)
	if err != nil {
		return nil, at, nil, err
	}
	if c == nil {
		core, err = incremental.New(f.config)
		return core, at, nil, err
	}
	if core, err = incremental.Restore(f.config, c.Sections); err != nil {
		return nil, at, nil, fmt.Errorf("the checkpoint at position %d is whole, but of another version of "+
			"gqlstream: %w\nMove %s away, and the log is read again; or go back to that version, nothing was changed",
			c.Manifest.Position, err, checkpointsIn(f.settings.State))
	}
	f.log.Info("restored", "position", c.Manifest.Position, "written", c.Manifest.Written, "shards", f.config.Owned)
	at, id = ResumeOf(c.Manifest)
	return core, at, id, nil
}

// newestHere returns the newest intact checkpoint of a run alone, or nil when there is none or the configuration is another one.
func (f *fold) newestHere(ctx context.Context, same bool) (*checkpoint.Checkpoint, error) {
	c, err := f.Checkpoints.Dir.Load(func(damage error) { f.log.Warn("a damaged checkpoint was set aside", "reason", damage) })
	if err != nil {
		return nil, err
	}
	was, classes := f.outlets.each[0].writer.Before() // counts where there is no checkpoint yet
	if c != nil {
		if c, err = f.notBeyondOutput(ctx, c); err != nil {
			return nil, err
		}
		was, classes = c.Manifest.Config, c.Manifest.Classes
	}
	switch {
	case f.continues(was, classes):
		return c, nil
	case same:
		return nil, config.Usagef("run: %s is the state of another configuration (%s with classes %q, and this one is %s with %q): correct the slip, "+
			"or read and publish the whole log anew with --accept-new-config", f.settings.State, was, classes, f.config.Digest(), f.settings.Classes)
	}
	f.log.Warn("the configuration has changed; reading the log from its beginning", "was", was, "now", f.config.Digest())
	return nil, nil //nolint:nilnil // a fresh core
}

// continues reports whether what was saved or published is of this configuration and these classes.
func (f *fold) continues(was string, classes []string) bool {
	return was == "" || was == f.config.Digest() && (len(classes) == 0 || slices.Equal(classes, f.settings.Classes))
}

// notBeyondOutput returns the newest checkpoint that is not newer than the log out. A broker can lose the end
// of that, although it had acknowledged it; going through the log again from before it puts the same bytes
// back. If all checkpoints are newer, the newest stands: then someone has removed the stream.
func (f *fold) notBeyondOutput(ctx context.Context, newest *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	now := f.outlets.published()
	if newest.Manifest.Published <= now {
		return newest, nil
	}
	// An older copy of the whole store is another matter: the log must be that of the newest checkpoint.
	_, id := ResumeOf(newest.Manifest)
	if err := id.Check(ctx, f.Broker.JS); err != nil {
		return nil, err
	}
	positions, err := f.Checkpoints.list()
	if err != nil {
		return nil, err
	}
	for _, position := range positions {
		c, err := f.Checkpoints.read(position)
		if err != nil || position >= newest.Manifest.Position || c.Manifest.Published > now {
			continue // a damaged one is set aside when it is the newest
		}
		f.log.Warn("going back to an older checkpoint, to publish again what the broker has lost",
			"published", now, "was", newest.Manifest.Published, "from", newest.Manifest.Position, "to", position)
		return c, nil
	}
	f.log.Warn("what was published before is not there any more, and no checkpoint is older; going on without it",
		"published", now, "was", newest.Manifest.Published, "position", newest.Manifest.Position)
	return newest, nil
}

// newestShared returns the state of a worker of a group at the newest position of which there are the graph, here or in
// the group's store, and all shards of this worker, of which the log out is not behind, or nil if there is none. Others
// store and drop meanwhile, so it looks again each time.
func (f *fold) newestShared(ctx context.Context, same bool) (*checkpoint.Checkpoint, error) {
	for _, one := range f.outlets.each { // the store knows states by their configuration, without the names of classes
		if was, classes := one.writer.Before(); !f.continues(was, classes) && (same || was == f.config.Digest()) {
			return nil, config.Usagef("run: the group publishes with another configuration (%s with classes %q, and this one is %s with %q): correct the slip, or give "+
				"this one a prefix of its own; where the first two differ, --accept-new-config publishes the whole log anew", was, classes, f.config.Digest(), f.settings.Classes)
		}
	}
	for tried := []uint64(nil); ; {
		local, err := f.Checkpoints.list()
		if err != nil {
			return nil, err
		}
		positions, err := f.group.store.Positions(ctx, sharedName(f.config.Digest()), local, f.config.Owned)
		i := slices.IndexFunc(positions, func(position uint64) bool { return !slices.Contains(tried, position) })
		if err != nil || i < 0 {
			if len(tried) > 0 {
				f.log.Warn("no position has the graph and all shards of this worker: the log is read from its beginning", "shards", f.config.Owned)
			}
			return nil, err
		}
		c, err := f.stateAt(ctx, positions[i], slices.Contains(local, positions[i]))
		if err == nil {
			return c, nil
		}
		f.log.Info("another position is restored", "than", positions[i], "because", err)
		tried = append(tried, positions[i])
	}
}

func (f *fold) stateAt(ctx context.Context, position uint64, local bool) (*checkpoint.Checkpoint, error) {
	c, err := f.graphAt(ctx, position, local)
	if err != nil {
		return nil, err
	}
	if c.Manifest.Config != f.config.Digest() {
		return nil, fmt.Errorf("it is of the configuration %s", c.Manifest.Config)
	}
	if err := f.group.complete(ctx, c, f.config.Owned); err != nil {
		return nil, err
	}
	maps.DeleteFunc(c.Manifest.Watermarks, func(shard int, _ uint64) bool { return !slices.Contains(f.config.Owned, shard) })
	return c, f.lost(c.Manifest.Watermarks)
}

// lost returns an error where the log out is behind what it was when a state was saved.
func (f *fold) lost(then map[int]uint64) error {
	now := f.outlets.watermarks()
	for _, shard := range slices.Sorted(maps.Keys(then)) {
		if now[shard] < then[shard] {
			return fmt.Errorf("shard %d was published up to %d then, and is up to %d now", shard, then[shard], now[shard])
		}
	}
	return nil
}

// graphAt returns this worker's state at a position, or the graph that another one has stored.
func (f *fold) graphAt(ctx context.Context, position uint64, local bool) (*checkpoint.Checkpoint, error) {
	if local {
		c, err := f.Checkpoints.read(position)
		if err == nil {
			return c, err
		}
		f.log.Warn("a damaged checkpoint is passed over", "position", position, "reason", err)
	}
	c, err := f.group.fetchPart(ctx, f.config.Digest(), position, group.GraphPart)
	if err == nil {
		c.Manifest.Watermarks = nil // the shards are parts of their own
	}
	return c, err
}

// ResumeOf returns the place at which the log goes on after a checkpoint, and its identity.
func ResumeOf(m checkpoint.Manifest) (ingest.Resume, *ingest.Identity) {
	at := ingest.Resume{Position: event.Position(m.Position), Time: event.Time(m.LogTime), Emitted: m.Emitted}
	return at, &ingest.Identity{Stream: m.Stream.Name, Created: m.Stream.Created, Position: at.Position, Digest: m.Stream.Digest}
}
