package main

import (
	"context"
	"errors"
	"fmt"

	"gqlstream/checkpoint"
	"gqlstream/ingest"
	"gqlstream/sinks"
)

// outputs returns how far the streams and queues are that the pipeline writes to.
func (p *pipeline) outputs(ctx context.Context) ([]checkpoint.Output, error) {
	names := ingest.DefaultStreamNames()
	var out []checkpoint.Output
	for _, name := range []string{names.Estimates, names.Quarantine, "KV_" + names.Latest, names.Alerts} {
		s, err := p.broker.js.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", name, err)
		}
		state := s.CachedInfo().State
		o := checkpoint.Output{Stream: name, Last: state.LastSeq}
		if name == "KV_"+names.Latest {
			o.Keys = state.NumSubjects
		}
		out = append(out, o)
	}
	for _, q := range p.queues {
		out = append(out, checkpoint.Output{Stream: "queue " + q.name, Last: q.Last()})
	}
	return out, nil
}

// kept checks that the broker has what it acknowledged, before a checkpoint counts on it.
func (p *pipeline) kept(ctx context.Context) (err error) {
	for _, sink := range p.sinks {
		if s, ok := sink.(interface{ Kept(context.Context) error }); ok {
			err = errors.Join(err, s.Kept(ctx))
		}
	}
	return err
}

// withOutputs returns the newest intact checkpoint that is not newer than the
// streams the pipeline writes to. Their newest messages can be lost in a crash of
// the broker, which acknowledges estimates before they are on the disk; going through
// the log again from before them puts them back, the same bytes. If all
// checkpoints are newer, the newest stands: then someone has removed the stream.
func (p *pipeline) withOutputs(ctx context.Context, newest *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	now, err := p.outputs(ctx)
	if err != nil {
		return nil, err
	}
	lost := behind(newest.Manifest.Outputs, now)
	if lost == "" {
		return newest, nil
	}
	// An older copy of the whole store is another matter: the log must be the one
	// of the newest checkpoint.
	_, id := resumeOf(newest.Manifest)
	if err := id.Check(ctx, p.broker.js); err != nil {
		return nil, err
	}
	positions, err := p.checkpoints.dir.List()
	if err != nil {
		return nil, err
	}
	for _, position := range positions {
		c, err := p.checkpoints.dir.Read(position)
		if err != nil || position >= newest.Manifest.Position || behind(c.Manifest.Outputs, now) != "" {
			continue // a damaged one is set aside when it is the newest
		}
		p.log.Warn("going back to an older checkpoint, to publish again what the broker has lost",
			"lost", lost, "from", newest.Manifest.Position, "to", position)
		return c, nil
	}
	p.log.Warn("what was published before is not there any more, and no checkpoint is older; going on without it",
		"lost", lost, "position", newest.Manifest.Position)
	return newest, nil
}

// mendLatest writes into the bucket what it has lost, from the stream of estimates: a
// broker whose disk was full can have dropped the values before those that it could not
// write any more.
func (p *pipeline) mendLatest(ctx context.Context, stored *sinks.Stored, latest *sinks.Latest) error {
	had := keys(p.checkpoints.outputs)
	now, err := p.outputs(ctx)
	if err != nil || keys(now) >= had {
		return err
	}
	if err := stored.Newest(ctx, p.through, latest.Write); err != nil {
		return err
	}
	if now, err = p.outputs(ctx); err != nil {
		return err
	}
	p.log.Warn("the bucket of latest estimates had lost some; they are there again, but for those that the stream of "+
		"estimates does not hold any more, which come with their next change", "missing", had-min(had, keys(now)))
	return nil
}

func keys(outputs []checkpoint.Output) (n uint64) {
	for _, o := range outputs {
		n += o.Keys
	}
	return n
}

// behind says which output has not got as far as it had when a checkpoint was
// made, or nothing.
func behind(then, now []checkpoint.Output) string {
	for _, t := range then {
		for _, n := range now {
			if n.Stream == t.Stream && n.Last < t.Last {
				return fmt.Sprintf("stream %s ends at %d, it was at %d", t.Stream, n.Last, t.Last)
			}
		}
	}
	return ""
}
