package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

// checkpoints saves the core beside the loop: the copy is made in the loop, the
// writing is not. At most one is being written; a boundary that finds one under
// way is passed over.
//
// A checkpoint that fails, for want of space say, loses nothing: the one before
// stands, and the next boundary makes another.
type checkpoints struct {
	dir     *checkpoint.Dir
	writing chan saved // holds one result when the writer is done; nil when none runs
	last    saved      // that succeeded
	failed  uint64
	err     error // of the newest one

	found   bool                // there was one at the start
	outputs []checkpoint.Output // then
	alerts  []byte              // its section of alerts; nil: it had none
}

// saved is what became of one checkpoint.
type saved struct {
	position event.Position
	bytes    int64
	pause    time.Duration // of the loop, for the step with its vacuum and the copy
	took     time.Duration // altogether
	at       time.Time     // when it was done
	err      error
}

// openCheckpoints opens the checkpoints of a state directory.
func openCheckpoints(state string) (*checkpoints, error) {
	dir, err := checkpoint.Open(checkpoint.Disk{}, filepath.Join(state, "checkpoints"))
	return &checkpoints{dir: dir}, err
}

// restore returns the core of the newest intact checkpoint and where it stands,
// or a fresh core at the beginning of the log when there is no checkpoint or the
// configuration is another one: then the log is read again from its start.
func (p *pipeline) restore(ctx context.Context) (ingest.Resume, *ingest.Identity, error) {
	c, err := p.checkpoints.dir.Load()
	if errors.Is(err, checkpoint.ErrAllDamaged) {
		p.log.Warn("reading the log from its beginning", "reason", err)
		c, err = nil, nil
	}
	if err != nil {
		return ingest.Resume{}, nil, err
	}
	if c != nil {
		for _, damage := range c.Damaged {
			p.log.Warn("a damaged checkpoint was set aside", "reason", damage)
		}
		p.checkpoints.outputs = c.Manifest.Outputs
		if c, err = p.withOutputs(ctx, c); err != nil {
			return ingest.Resume{}, nil, err
		}
		p.checkpoints.found, p.checkpoints.alerts = true, c.Sections[alertsSection]
		if c.Manifest.Config == p.config.Digest() {
			p.core, err = incremental.Restore(p.config, c.Sections)
			if err != nil {
				return ingest.Resume{}, nil, fmt.Errorf("the checkpoint at position %d is whole, but of another version of "+
					"gqlstream: %w\nMove %s away, and the log is read again; or go back to that version, nothing was changed",
					c.Manifest.Position, err, filepath.Join(p.settings.State, "checkpoints"))
			}
			p.log.Info("restored", "position", c.Manifest.Position, "written", c.Manifest.Written)
			at, identity := resumeOf(c.Manifest)
			return at, identity, nil
		}
		p.log.Warn("the configuration has changed since the last checkpoint; reading the log from its beginning",
			"checkpoint", c.Manifest.Config, "now", p.config.Digest())
	}
	p.core, err = incremental.New(p.config)
	return ingest.Resume{}, nil, err
}

// resumeOf returns where the log goes on after a checkpoint, and what it must be.
func resumeOf(m checkpoint.Manifest) (ingest.Resume, *ingest.Identity) {
	at := ingest.Resume{Position: event.Position(m.Position), Time: event.Time(m.LogTime), Emitted: m.Emitted}
	return at, &ingest.Identity{
		Stream: m.Stream.Name, Created: m.Stream.Created, Position: at.Position, Digest: m.Stream.Digest,
	}
}

// save starts a checkpoint of the step just taken, unless one is being written; for
// one that must be, because the log or an erasure asks for it, it waits. step is how
// long the step took.
func (p *pipeline) save(ctx context.Context, b *event.Batch, must bool, step time.Duration) error {
	k := p.checkpoints
	if k.collect(p, must); k.writing != nil {
		return nil
	}
	begun := time.Now()
	m, err := p.manifest(ctx, b)
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // interrupted, which is no failure
	case errors.Is(err, sinks.ErrLost):
		return err
	case err != nil:
		k.fail(p, err)
		return nil
	}
	state, err := p.core.Save()
	if err != nil {
		return err
	}
	if p.alerts.at >= 0 {
		section, err := p.alerts.section()
		if err != nil {
			return err
		}
		state = append(state, section)
	}
	sections := make([]checkpoint.Section, len(state))
	for i, s := range state {
		sections[i] = checkpoint.Section{Name: s.Name, Write: func(w io.Writer) error {
			_, err := w.Write(s.Data)
			return err
		}}
	}
	pause := step + time.Since(begun)
	k.writing = make(chan saved, 1)
	position := b.Last // b is reused
	go func(done chan<- saved) {
		n, err := k.dir.Save(m, sections)
		done <- saved{position: position, bytes: n, pause: pause, took: time.Since(begun), at: time.Now(), err: err}
	}(k.writing)
	return nil
}

// manifest makes what was put out durable and says how far that is, and where in
// the log.
func (p *pipeline) manifest(ctx context.Context, b *event.Batch) (checkpoint.Manifest, error) {
	if err := errors.Join(p.syncQueues(), p.kept(ctx)); err != nil {
		return checkpoint.Manifest{}, err
	}
	id, err := p.source.Identity(ctx)
	if err != nil {
		return checkpoint.Manifest{}, err
	}
	outputs, err := p.outputs(ctx)
	return checkpoint.Manifest{
		Position: uint64(b.Last), LogTime: int64(b.Time), Emitted: b.Emit, Config: p.config.Digest(),
		Version: version, Written: time.Now().UTC(),
		Stream:  checkpoint.Stream{Name: id.Stream, Created: id.Created, Digest: id.Digest},
		Outputs: outputs, Erased: uint64(p.core.Erased()),
	}, err
}

// fail counts a checkpoint that did not come about.
func (k *checkpoints) fail(p *pipeline, err error) {
	k.failed++
	k.err = fmt.Errorf("checkpoint: %w", err)
	p.log.Warn("a checkpoint failed; the one before stands", "before", k.last.position, "reason", err)
}

// finish waits for the writer at the end of a run and returns what became of the
// newest checkpoint.
func (k *checkpoints) finish(p *pipeline) error {
	k.collect(p, true)
	return k.err
}

// collect takes the result of the writer, if it is there or if wait is set.
func (k *checkpoints) collect(p *pipeline, wait bool) {
	if k.writing == nil {
		return
	}
	var now saved
	select {
	case now = <-k.writing:
	default:
		if !wait {
			return
		}
		now = <-k.writing
	}
	k.writing = nil
	if now.err != nil {
		k.fail(p, now.err)
		return
	}
	k.last, k.err = now, nil
	p.log.Info("checkpoint", "position", k.last.position, "bytes", k.last.bytes,
		"pause", k.last.pause.Round(time.Microsecond), "took", k.last.took.Round(time.Millisecond))
}
