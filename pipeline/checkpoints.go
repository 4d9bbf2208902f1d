package pipeline

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
)

// checkpoints saves the core beside the loop: the copy is made in the loop, the
// writing is not. At most one is being written; a boundary that finds one under
// way is passed over.
//
// A checkpoint that fails, for want of space say, loses nothing: the one before
// stands, and the next boundary makes another.
type checkpoints struct {
	Dir     *checkpoint.Dir
	writing chan saved // holds one result when the writer is done; nil when none runs
	last    saved      // that succeeded
	failed  uint64
	said    time.Time // when the log told of one
	unsaid  int       // since then
	err     error     // of the newest one
}

// saved is what became of one checkpoint.
type saved struct {
	position event.Position
	bytes    int64
	pause    time.Duration // of the loop, for the step with its compaction and the copy
	took     time.Duration // altogether
	at       time.Time     // when it was done
	err      error
}

// openCheckpoints opens the checkpoints of a state directory.
func openCheckpoints(state string) (*checkpoints, error) {
	dir, err := checkpoint.Open(checkpoint.Disk{}, filepath.Join(state, "checkpoints"))
	return &checkpoints{Dir: dir}, err
}

// restore returns the core of the newest intact checkpoint and where it stands,
// or a fresh core at the beginning of the log when there is no checkpoint or the
// configuration is another one: then the log is read again from its start.
func (p *Pipeline) restore(ctx context.Context) (ingest.Resume, *ingest.Identity, error) {
	if p.group != nil {
		return p.restoreMember(ctx)
	}
	c, err := p.Checkpoints.Dir.Load()
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
		if c, err = p.notBeyondOutput(ctx, c); err != nil {
			return ingest.Resume{}, nil, err
		}
		if c.Manifest.Config == p.Config.Digest() {
			p.Core, err = incremental.Restore(p.Config, c.Sections)
			if err != nil {
				return ingest.Resume{}, nil, fmt.Errorf("the checkpoint at position %d is whole, but of another version of "+
					"gqlstream: %w\nMove %s away, and the log is read again; or go back to that version, nothing was changed",
					c.Manifest.Position, err, filepath.Join(p.settings.State, "checkpoints"))
			}
			p.log.Info("restored", "position", c.Manifest.Position, "written", c.Manifest.Written)
			at, identity := ResumeOf(c.Manifest)
			return at, identity, nil
		}
		p.log.Warn("the configuration has changed since the last checkpoint; reading the log from its beginning",
			"checkpoint", c.Manifest.Config, "now", p.Config.Digest())
	}
	p.Core, err = incremental.New(p.Config)
	return ingest.Resume{}, nil, err
}

// notBeyondOutput returns the newest checkpoint that is not newer than the log out. A
// broker can lose the end of that, although it had acknowledged it; going through the
// log again from before it puts the same bytes back. If all checkpoints are newer, the
// newest stands: then someone has removed the stream.
func (p *Pipeline) notBeyondOutput(ctx context.Context, newest *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	now := p.outlets.published()
	if newest.Manifest.Published <= now {
		return newest, nil
	}
	// An older copy of the whole store is another matter: the log must be the one
	// of the newest checkpoint.
	_, id := ResumeOf(newest.Manifest)
	if err := id.Check(ctx, p.Broker.JS); err != nil {
		return nil, err
	}
	positions, err := p.Checkpoints.Dir.List()
	if err != nil {
		return nil, err
	}
	for _, position := range positions {
		c, err := p.Checkpoints.Dir.Read(position)
		if err != nil || position >= newest.Manifest.Position || c.Manifest.Published > now {
			continue // a damaged one is set aside when it is the newest
		}
		p.log.Warn("going back to an older checkpoint, to publish again what the broker has lost",
			"published", now, "was", newest.Manifest.Published, "from", newest.Manifest.Position, "to", position)
		return c, nil
	}
	p.log.Warn("what was published before is not there any more, and no checkpoint is older; going on without it",
		"published", now, "was", newest.Manifest.Published, "position", newest.Manifest.Position)
	return newest, nil
}

// ResumeOf returns where the log goes on after a checkpoint, and what it must be.
func ResumeOf(m checkpoint.Manifest) (ingest.Resume, *ingest.Identity) {
	at := ingest.Resume{Position: event.Position(m.Position), Time: event.Time(m.LogTime), Emitted: m.Emitted}
	return at, &ingest.Identity{
		Stream: m.Stream.Name, Created: m.Stream.Created, Position: at.Position, Digest: m.Stream.Digest,
	}
}

// save starts a checkpoint of the step just taken, unless one is being written; for
// one that must be, because the log or an erasure asks for it, it waits. step is how
// long the step took.
func (p *Pipeline) save(ctx context.Context, b *event.Batch, must bool, step time.Duration) error {
	k := p.Checkpoints
	if k.collect(p, must || p.group != nil); k.writing != nil {
		return nil
	}
	if err := p.outlets.settle(ctx); err != nil {
		return err
	}
	begun := time.Now()
	m, err := p.manifest(ctx, b)
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // interrupted, which is no failure
	case err != nil:
		k.fail(p, err)
		return nil
	}
	state, err := p.Core.Save()
	if err != nil {
		return err
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
		n, err := k.Dir.Save(m, sections)
		p.share(m, state)
		done <- saved{position: position, bytes: n, pause: pause, took: time.Since(begun), at: time.Now(), err: err}
	}(k.writing)
	return nil
}

// manifest says where in the log the state is, and how far the log out was.
func (p *Pipeline) manifest(ctx context.Context, b *event.Batch) (checkpoint.Manifest, error) {
	id, err := p.source.Identity(ctx)
	if err != nil {
		return checkpoint.Manifest{}, err
	}
	m := checkpoint.Manifest{
		Position: uint64(b.Last), LogTime: int64(b.Time), Emitted: b.Emit, Config: p.Config.Digest(),
		Version: p.version, Written: time.Now().UTC(),
		Stream:    checkpoint.Stream{Name: id.Stream, Created: id.Created, Digest: id.Digest},
		Published: p.outlets.published(), Erased: uint64(p.Core.Erased()),
	}
	if p.group != nil {
		m.Watermarks = p.outlets.watermarks()
	}
	return m, nil
}

// fail counts a checkpoint that did not come about.
func (k *checkpoints) fail(p *Pipeline, err error) {
	k.failed++
	k.err = fmt.Errorf("checkpoint: %w", err)
	p.log.Warn("a checkpoint failed; the one before stands", "before", k.last.position, "reason", err)
}

// finish waits for the writer at the end of a run and returns what became of the
// newest checkpoint.
func (k *checkpoints) finish(p *Pipeline) error {
	k.collect(p, true)
	return k.err
}

// collect takes the result of the writer, if it is there or if wait is set.
func (k *checkpoints) collect(p *Pipeline, wait bool) {
	if k.writing == nil || !wait && len(k.writing) == 0 {
		return
	}
	now := <-k.writing
	k.writing = nil
	if now.err != nil {
		k.fail(p, now.err)
		return
	}
	k.last, k.err = now, nil
	if k.unsaid++; now.at.Sub(k.said) < checkpointLineEvery {
		return
	}
	p.log.Info("checkpoint", "position", k.last.position, "bytes", k.last.bytes,
		"pause", k.last.pause.Round(time.Microsecond), "took", k.last.took.Round(time.Millisecond), "written", k.unsaid)
	k.said, k.unsaid = now.at, 0
}

const checkpointLineEvery = 30 * time.Second // while a history is read there are several a second
