package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
)

// errBehind is matched if the output log is behind its position in a saved state: the broker has
// lost its end.
var errBehind = errors.New("the output log is behind it")

// restore returns the core of the newest usable state and its place, or a fresh core at the
// beginning of the log if there is none: the log is then read again from its start.
func (p *opener) restore(
	ctx context.Context, conf incremental.Config, out *outlets, same bool,
) (core *incremental.Core, at ingest.Resume, id *ingest.Identity, err error) {
	c, reconfigured, err := p.newestState(ctx, conf, out, same)
	if err != nil {
		return nil, at, nil, err
	}
	if c == nil {
		core, err = incremental.New(conf)
		return core, at, new(ingest.Start(p.names.In.Log)), err
	}
	if core, err = p.coreOf(conf, c, reconfigured); err != nil {
		return nil, at, nil, fmt.Errorf(
			"checkpoint %d is intact, but it cannot be continued: %w\n"+
				"Move %s away to read the log again from its beginning; nothing was changed",
			c.Manifest.Position,
			err,
			checkpointsIn(p.settings.State),
		)
	}
	p.log.Info("restored", "position", c.Manifest.Position, "written", c.Manifest.Written, "shards",
		out.all())
	at, id = ResumeOf(c.Manifest)
	return core, at, id, nil
}

// newestState returns the latest checkpoint of this configuration, or nil if there is none, or if
// another configuration was published last and the log is whole. It has the graph and every shard
// of this fold, on this machine or in the group's store, and it does not lie beyond the output log,
// so that the same bytes are published again after it. If all states of a run without a group lie
// beyond the output log, the newest is returned: somebody has removed the stream. Other workers
// store and drop states meanwhile, so every call looks again.
func (p *opener) newestState(
	ctx context.Context, conf incremental.Config, out *outlets, same bool,
) (c *checkpoint.Checkpoint, reconfigured bool, err error) {
	published, err := p.continues(conf, out, same)
	if err != nil {
		return nil, false, err
	}
	if !published {
		c, err = p.newestReconfigured(ctx)
		return c, true, err
	}
	var beyond *checkpoint.Checkpoint // the newest of those beyond the output log
	for tried := []uint64(nil); ; {
		local, err := p.dir.List()
		positions := local
		if err == nil && p.group != nil {
			positions, err = p.group.positions(ctx, conf.Digest(), local, conf.Owned)
		}
		i := slices.IndexFunc(positions,
			func(position uint64) bool { return !slices.Contains(tried, position) })
		switch {
		case err != nil:
			return nil, false, err
		case i < 0 && p.group == nil && beyond != nil:
			p.log.Warn(
				"earlier records are gone, and no checkpoint is older; the run continues "+
					"without them. To publish them again, if the log has its beginning, stop the "+
					"run, remove the stream of estimates and move the checkpoints away",
				"position", beyond.Manifest.Position, "stream", p.names.Out.Estimates,
				"checkpoints", checkpointsIn(p.settings.State))
			return beyond, false, nil
		case i < 0 && len(tried) > 0:
			p.log.Warn("no usable checkpoint: the log is read from its beginning", "shards",
				out.all())
			return nil, false, nil // a fresh core
		case i < 0:
			return nil, false, nil // a fresh core
		}
		c, err := p.stateAt(ctx, conf, out, positions[i], slices.Contains(local, positions[i]))
		if err == nil {
			return c, false, nil
		}
		if errors.Is(err, errBehind) && beyond == nil {
			beyond = c
			_, id := ResumeOf(c.Manifest)
			if err := id.Check(ctx, p.Broker.JS); err != nil {
				return nil, false, err // an older copy of the whole store needs an operator
			}
		}
		p.log.Warn("going back to an older checkpoint", "than", positions[i], "because", err)
		tried = append(tried, positions[i])
	}
}

// continues reports whether the output log was last published with this configuration and these
// classes, or never. It refuses another configuration unless the log is to be published again. The
// store of a group has states without class names.
func (p *opener) continues(conf incremental.Config, out *outlets, same bool) (bool, error) {
	for _, one := range out.each {
		was, classes := one.writer.Before()
		switch digest := conf.Digest(); {
		case was == "" ||
			was == digest && (len(classes) == 0 || slices.Equal(classes, p.settings.Classes)):
		case same || was == digest && p.group != nil:
			return false, config.Usagef(
				"run: the records are of another configuration (digest %s, classes %q; this run: "+
					"digest %s, classes %q). Correct the mistake, give this pipeline another "+
					"prefix, or publish the whole log again with --accept-new-config; in a group "+
					"that needs another digest, not only other class names",
				was,
				classes,
				digest,
				p.settings.Classes,
			)
		default:
			p.log.Warn("the configuration has changed", "was", was, "now", digest)
			return false, nil
		}
	}
	return true, nil
}

// stateAt returns the state at a position: from this worker, or from the store. The error matches
// errBehind if the output log is behind the state.
func (p *opener) stateAt(
	ctx context.Context, conf incremental.Config, out *outlets, position uint64, local bool,
) (c *checkpoint.Checkpoint, err error) {
	if local {
		c, err = p.dir.Read(position)
		switch {
		case errors.Is(err, checkpoint.ErrFormat):
			p.log.Warn("a checkpoint of another release is ignored", "position", position,
				"reason", err)
		case err != nil:
			p.log.Warn("a damaged checkpoint is ignored", "position", position, "reason", err)
		}
	}
	if p.group != nil && c == nil {
		if c, err = p.group.fetchGraph(ctx, conf.Digest(), position); err == nil {
			c.Manifest.Watermarks = nil // shards are separate parts
		}
	}
	if err != nil {
		return nil, err
	}
	if m := &c.Manifest; m.Config != conf.Digest() ||
		len(m.Classes) > 0 && !slices.Equal(m.Classes, p.settings.Classes) {
		return nil, fmt.Errorf("it is of the configuration %s with classes %q", m.Config, m.Classes)
	}
	// without derived tables a shard needs nothing that other workers stored
	if p.group != nil && c.Manifest.Derived == checkpoint.Derived {
		if err := p.group.complete(ctx, c, conf.Owned); err != nil {
			return nil, err
		}
	}
	now := out.watermarks()
	for _, shard := range out.all() {
		if then := c.Manifest.Watermarks[shard]; now[shard] < then {
			return c, fmt.Errorf("shard %d was published up to %d then, and is up to %d now: %w",
				shard, then, now[shard], errBehind)
		}
	}
	return c, nil
}
