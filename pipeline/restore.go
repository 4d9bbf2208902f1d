package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/group"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// restorer restores the state with which a pipeline begins, or the next one.
type restorer struct {
	*Pipeline
	config incremental.Config // with the shards to be restored
	shards map[int]uint64     // up to where each of them is published
	same   bool               // of Options
	next   *preparation       // what restore found prepared; nil: nothing
}

// restore returns the core of the newest intact checkpoint and where it stands,
// or a fresh core at the beginning of the log when there is no checkpoint or the
// configuration is another one: then the log is read again from its start.
func (r *restorer) restore(ctx context.Context) (core *incremental.Core, at ingest.Resume, id *ingest.Identity, err error) {
	if r.group != nil {
		return r.restoreMember(ctx)
	}
	c, err := r.Checkpoints.Dir.Load(func(damage error) { r.log.Warn("a damaged checkpoint was set aside", "reason", damage) })
	if err != nil {
		return nil, at, nil, err
	}
	was, classes := r.outlets.each[0].writer.Before() // counts where there is no checkpoint yet
	if c != nil {
		if c, err = r.notBeyondOutput(ctx, c); err != nil {
			return nil, at, nil, err
		}
		was, classes = c.Manifest.Config, c.Manifest.Classes
	}
	same := r.continues(was, classes)
	switch {
	case same && c != nil:
		if core, err = incremental.Restore(r.config, c.Sections); err != nil {
			return nil, at, nil, fmt.Errorf("the checkpoint at position %d is whole, but of another version of "+
				"gqlstream: %w\nMove %s away, and the log is read again; or go back to that version, nothing was changed",
				c.Manifest.Position, err, checkpointsIn(r.settings.State))
		}
		r.log.Info("restored", "position", c.Manifest.Position, "written", c.Manifest.Written)
		at, id = ResumeOf(c.Manifest)
		return core, at, id, nil
	case !same && r.same:
		return nil, at, nil, config.Usagef("run: %s is the state of another configuration (%s with classes %q, and this one is %s with %q): correct the slip, "+
			"or read and publish the whole log anew with --accept-new-config", r.settings.State, was, classes, r.config.Digest(), r.settings.Classes)
	case !same:
		r.log.Warn("the configuration has changed; reading the log from its beginning", "was", was, "now", r.config.Digest())
	}
	core, err = incremental.New(r.config)
	return core, at, nil, err
}

// continues reports whether what was saved or published is of this configuration and these classes.
func (r *restorer) continues(was string, classes []string) bool {
	return was == "" || was == r.config.Digest() && (len(classes) == 0 || slices.Equal(classes, r.settings.Classes))
}

// notBeyondOutput returns the newest checkpoint that is not newer than the log out. A broker can lose the end
// of that, although it had acknowledged it; going through the log again from before it puts the same bytes
// back. If all checkpoints are newer, the newest stands: then someone has removed the stream.
func (r *restorer) notBeyondOutput(ctx context.Context, newest *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	now := r.outlets.published()
	if newest.Manifest.Published <= now {
		return newest, nil
	}
	// An older copy of the whole store is another matter: the log must be that of the newest checkpoint.
	_, id := ResumeOf(newest.Manifest)
	if err := id.Check(ctx, r.Broker.JS); err != nil {
		return nil, err
	}
	positions, err := r.Checkpoints.list()
	if err != nil {
		return nil, err
	}
	for _, position := range positions {
		c, err := r.Checkpoints.read(position)
		if err != nil || position >= newest.Manifest.Position || c.Manifest.Published > now {
			continue // a damaged one is set aside when it is the newest
		}
		r.log.Warn("going back to an older checkpoint, to publish again what the broker has lost",
			"published", now, "was", newest.Manifest.Published, "from", newest.Manifest.Position, "to", position)
		return c, nil
	}
	r.log.Warn("what was published before is not there any more, and no checkpoint is older; going on without it",
		"published", now, "was", newest.Manifest.Published, "position", newest.Manifest.Position)
	return newest, nil
}

// restoreMember returns the core of a worker of a group as restore does: of the newest position
// of which there are the graph, here or in the group's store, and all shards of this worker, of
// which the log out is not behind. Others store and drop meanwhile, so it looks again each time.
func (r *restorer) restoreMember(ctx context.Context) (core *incremental.Core, at ingest.Resume, id *ingest.Identity, err error) {
	for _, one := range r.outlets.each { // the store knows states by their configuration, without the names of classes
		if was, classes := one.writer.Before(); !r.continues(was, classes) && (r.same || was == r.config.Digest()) {
			return nil, at, nil, config.Usagef("run: the group publishes with another configuration (%s with classes %q, and this one is %s with %q): correct the slip, or give "+
				"this one a prefix of its own; where the first two differ, --accept-new-config publishes the whole log anew", was, classes, r.config.Digest(), r.settings.Classes)
		}
	}
	if r.next = r.group.take(r); r.next != nil {
		return r.next.core, r.next.at, r.next.id, nil
	}
	core, m, err := r.restoreShards(ctx)
	if err != nil || core != nil {
		at, id = ResumeOf(m)
		return core, at, id, err
	}
	core, err = incremental.New(r.config)
	return core, at, nil, err
}

// restoreShards returns the core of the newest position that has all that it needs, or nil if there is none.
func (r *restorer) restoreShards(ctx context.Context) (core *incremental.Core, m checkpoint.Manifest, err error) {
	for tried := map[uint64]bool{}; ; {
		local, err := r.Checkpoints.list()
		if err != nil {
			return nil, m, err
		}
		positions, err := r.group.store.Positions(ctx, sharedName(r.config.Digest()), local, r.config.Owned)
		if err != nil {
			return nil, m, err
		}
		positions = slices.DeleteFunc(positions, func(position uint64) bool { return tried[position] })
		if len(positions) == 0 {
			if len(tried) > 0 {
				r.log.Warn("no position has the graph and all shards of this worker: the log is read from its beginning", "shards", r.config.Owned)
			}
			return nil, m, nil
		}
		position := positions[0]
		tried[position] = true
		c, err := r.stateAt(ctx, position, slices.Contains(local, position))
		if err != nil {
			r.log.Info("another position is restored", "than", position, "because", err)
			continue
		}
		if core, err = incremental.Restore(r.config, c.Sections); err != nil {
			return nil, m, fmt.Errorf("the checkpoint at position %d: %w", position, err)
		}
		r.log.Info("restored", "position", position, "shards", r.config.Owned)
		return core, c.Manifest, nil
	}
}

func (r *restorer) stateAt(ctx context.Context, position uint64, local bool) (*checkpoint.Checkpoint, error) {
	c, err := r.graphAt(ctx, position, local)
	if err != nil {
		return nil, err
	}
	if c.Manifest.Config != r.config.Digest() {
		return nil, fmt.Errorf("it is of the configuration %s", c.Manifest.Config)
	}
	parts, errs := make([]*checkpoint.Checkpoint, len(r.config.Owned)), make([]error, len(r.config.Owned))
	var fetching sync.WaitGroup
	for i, shard := range r.config.Owned {
		parts[i] = c
		if _, have := c.Manifest.Watermarks[shard]; !have {
			fetching.Go(func() { parts[i], errs[i] = r.group.fetchPart(ctx, r.config.Digest(), position, group.Part(shard)) })
		}
	}
	fetching.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	then := map[int]uint64{}
	for i, shard := range r.config.Owned {
		maps.Copy(c.Sections, parts[i].Sections)
		then[shard] = parts[i].Manifest.Watermarks[shard]
	}
	c.Manifest.Watermarks = then
	return c, r.behind(then)
}

// behind returns an error where the log out is behind what it was when a state was saved.
func (r *restorer) behind(then map[int]uint64) error {
	for _, shard := range slices.Sorted(maps.Keys(then)) {
		if r.shards[shard] < then[shard] {
			return fmt.Errorf("shard %d was published up to %d then, and is up to %d now", shard, then[shard], r.shards[shard])
		}
	}
	return nil
}

// graphAt returns this worker's state at a position, or the graph that another one has stored.
func (r *restorer) graphAt(ctx context.Context, position uint64, local bool) (*checkpoint.Checkpoint, error) {
	if local {
		c, err := r.Checkpoints.read(position)
		if err == nil {
			return c, err
		}
		r.log.Warn("a damaged checkpoint is passed over", "position", position, "reason", err)
	}
	c, err := r.group.fetchPart(ctx, r.config.Digest(), position, group.GraphPart)
	if err == nil {
		c.Manifest.Watermarks = nil // the shards are parts of their own
	}
	return c, err
}

// fetchPart returns a part of a state that another worker has stored.
func (m *membership) fetchPart(ctx context.Context, config string, position uint64, part string) (*checkpoint.Checkpoint, error) {
	c := new(checkpoint.Checkpoint)
	return c, m.store.Get(ctx, sharedName(config), position, part, c)
}

// ResumeOf returns the place at which the log goes on after a checkpoint, and its identity.
func ResumeOf(m checkpoint.Manifest) (ingest.Resume, *ingest.Identity) {
	at := ingest.Resume{Position: event.Position(m.Position), Time: event.Time(m.LogTime), Emitted: m.Emitted}
	return at, &ingest.Identity{Stream: m.Stream.Name, Created: m.Stream.Created, Position: at.Position, Digest: m.Stream.Digest}
}
