package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

const (
	// prepareMemory is how many times its live memory a worker must have to prepare a core beside its own:
	// twice, with what that is restored from and a checkpoint that is being written.
	prepareMemory = 4
	// doubtAgain is the time after a worker was doubted, and was not dead, in which no doubt is acted upon.
	doubtAgain = time.Minute
	// takeOverLasts is the longest time after the change in which the log is caught up with, and caughtUpAfter
	// how long the loop waits for a step when it is.
	takeOverLasts = 5 * time.Second
	caughtUpAfter = 20 * time.Millisecond
)

// preparation makes, beside a pipeline that goes on, the core with which the next one begins, so that the
// shards of this one do not stand still meanwhile. It begins when a worker may be dead, before it is known.
type preparation struct {
	owned  []int
	cancel context.CancelFunc
	done   chan struct{} // closed when what follows is there

	core      *incremental.Core // nil: none, and the next pipeline restores its own
	at        ingest.Resume
	id        *ingest.Identity
	published map[int]uint64 // up to where each shard was published when the core was there, or further
	behind    bool           // as of the pipeline
}

// prepare begins to prepare the next pipeline where shards of others are this worker's, or may be soon, and
// gives a preparation up that is not needed any more. It reports whether nothing is to be waited for.
func (m *membership) prepare(ctx context.Context, p *Pipeline) bool {
	defer func() { p.preparing.Store(m.next != nil) }()
	live := p.outlets.live()
	missing := func(shards []int) bool {
		return slices.ContainsFunc(shards, func(shard int) bool {
			return !slices.Contains(m.spare, shard) && !slices.ContainsFunc(live, func(o *outlet) bool { return o.shard == shard })
		})
	}
	now := m.mine(p.outlets.shards, true)
	want := m.mine(p.outlets.shards, false)
	if !missing(want) || time.Since(m.doubted) < doubtAgain {
		want = now
	}
	if m.next != nil {
		if missing(want) && m.next.serves(want) {
			return m.next.ended()
		}
		if m.next.cancel(); !m.next.ended() {
			return false // a core that is being restored takes its time
		}
		if m.drop(); !missing(now) {
			m.doubted = time.Now()
		}
	}
	if !missing(want) || !roomForTwo() {
		return true
	}
	p.log.Info("preparing to estimate other shards", "shards", want, "sure", missing(now))
	ctx, cancel := context.WithCancel(ctx)
	m.next = &preparation{owned: want, cancel: cancel, done: make(chan struct{})}
	go func(n *preparation) {
		if err := n.run(ctx, p); err != nil {
			p.log.Info("nothing is prepared", "because", err)
		}
		close(n.done)
		select {
		case m.woken <- struct{}{}:
		default:
		}
	}(m.next)
	return false
}

// roomForTwo reports whether there is memory for a second core.
func roomForTwo() bool {
	most := machineMemory("")
	return most == 0 || prepareMemory*liveBytes() <= most
}

func (n *preparation) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// serves reports whether the core has, or will have, these shards.
func (n *preparation) serves(shards []int) bool {
	return !slices.ContainsFunc(shards, func(shard int) bool { return !slices.Contains(n.owned, shard) })
}

// run restores the core, and brings it up to where all its shards are published, and this worker has been.
func (n *preparation) run(ctx context.Context, p *Pipeline) error {
	c := p.Config
	c.Owned = n.owned
	r := restorer{Pipeline: p, config: c, shards: p.outlets.markedOf(n.owned)}
	core, m, err := r.restoreShards(ctx)
	if err != nil || core == nil {
		return err
	}
	n.at, n.id = ResumeOf(m)
	n.published = m.Watermarks
	until := p.applied.Load()
	for _, position := range p.outlets.markedOf(n.owned) {
		until = min(until, position)
	}
	if err := n.readOn(ctx, p, core, event.Position(until)); err != nil {
		core.Close()
		return err
	}
	n.core = core
	p.log.Info("prepared", "position", n.at.Position, "shards", n.owned)
	return nil
}

// readOn takes the steps up to a position, at which one ends. All that they come to is published, but for what
// is refused, which is written as after any restart.
func (n *preparation) readOn(ctx context.Context, p *Pipeline, core *incremental.Core, until event.Position) (err error) {
	if n.at.Position >= until {
		return nil
	}
	p.followers.assigning.Lock()
	settings := p.settings // of which a reload replaces some
	p.followers.assigning.Unlock()
	steps, err := settings.Steps()
	if err != nil {
		return err
	}
	source, err := OpenLog(ctx, p.Broker.JS, &settings, ingest.JetStreamConfig{Step: steps, From: n.at, Identity: n.id})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	refused, err := ingest.NewQuarantineWriter(ctx, p.Broker.NC, p.names.In)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var writing sync.WaitGroup
	writing.Go(func() { cancel(refused.Run(ctx)) })
	defer writing.Wait()
	defer cancel(nil)
	core.Limit(source.Limits())
	for b := (event.Batch{}); n.at.Position < until; {
		if err := source.Next(ctx, &b); err != nil {
			return err
		}
		result := core.Step(&b)
		if err := refused.Write(ctx, append(b.Refused, result.Refused...)); err != nil {
			return err
		}
		n.behind = b.Emit && result.Behind || !b.Emit && n.behind
		n.at = ingest.Resume{Position: b.Last, Time: b.Time, Emitted: b.Emit}
	}
	if n.at.Position != until {
		return fmt.Errorf("a step ends at %d, and something was published at %d", n.at.Position, until)
	}
	for shard := range n.published {
		n.published[shard] = max(n.published[shard], uint64(until))
	}
	id := source.Identity()
	n.id = &id
	return refused.Settle(ctx)
}

// take returns the preparation if it serves a pipeline that begins, and else drops it.
func (m *membership) take(r *restorer) *preparation {
	if m == nil || m.next == nil {
		return nil
	}
	n := m.next
	if n.cancel(); !n.ended() || n.core == nil || !n.serves(r.config.Owned) {
		m.drop()
		return nil
	}
	for _, shard := range n.owned {
		if !slices.Contains(r.config.Owned, shard) {
			n.core.Disown(shard)
			delete(n.published, shard)
		}
	}
	if err := r.behind(n.published); err != nil {
		r.log.Info("what was prepared is not used", "because", err)
		m.drop()
		return nil
	}
	m.next = nil
	return n
}

// drop gives up the preparation, whether it is ready or not.
func (m *membership) drop() {
	if m == nil || m.next == nil {
		return
	}
	m.next.cancel()
	if <-m.next.done; m.next.core != nil {
		m.next.core.Close()
	}
	m.next = nil
}
