package pipeline

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// fold processes the input log with a core, and publishes estimates of some shards. A run has one,
// the main fold. A worker of a group that gets other shards starts a next fold beside it, which
// replaces the main fold when it has caught up, so that the present shards do not pause. The loop's
// goroutine owns the core.
type fold struct {
	*Pipeline
	config  incremental.Config // with the shards to estimate
	steps   ingest.StepConfig
	core    *incremental.Core
	source  *ingest.JetStreamSource
	outlets outlets
	applied atomic.Uint64 // last position of a completed step
	// at a step that the main fold has not taken yet, waiting
	waitsForMain atomic.Bool
	behind       atomic.Bool                  // the next emission repeats records of the last one
	idle         atomic.Bool                  // the loop waits for messages
	step         atomic.Pointer[stepUnderWay] // the step in progress; nil: none
	from         sinks.Cursor                 // end of the output log when the fold was opened
	begun        time.Time
	opened       atomic.Bool
	stop         context.CancelFunc // ends the loop
	done         chan struct{}      // closed when the loop has ended
}

func newFold(p *Pipeline, owned []int) *fold {
	f := &fold{Pipeline: p, config: p.Config, begun: time.Now(), done: make(chan struct{})}
	f.config.Owned, f.outlets.shards = owned, p.shards
	return f
}

// owned lists the shards that the fold estimates.
func (f *fold) owned() []int {
	if f.config.Owned == nil {
		return allShards(f.shards)
	}
	return f.config.Owned
}

// open restores the core, and starts reading the log after it.
func (f *fold) open(ctx context.Context, o Options) (err error) {
	if f.steps, err = f.settings.Steps(); err != nil {
		return err
	}
	if err = f.outlets.open(ctx, f.Broker.JS, f.writers, f.owned()); err != nil {
		return err
	}
	if f.from, err = sinks.Newest(ctx, f.Broker.JS, f.followers.base.Reader); err != nil {
		return err
	}
	core, at, identity, err := f.restore(ctx, o.Same)
	if f.core = core; err != nil {
		return err
	}
	f.applied.Store(uint64(at.Position))
	if err = f.skip(ctx, o.Skip); err != nil {
		return err
	}
	if core.Waits() {
		if err = f.askToRecompute(ctx, identity); err != nil {
			return err
		}
	}
	c := ingest.JetStreamConfig{
		Step: f.steps, From: at, Identity: identity, Kept: f.recorded, UntilLast: o.Drain,
	}
	if c.UntilLast {
		if err := identity.Check(ctx, f.Broker.JS); err != nil {
			return err // before anything is published for another log
		}
		if c.Until, err = publishEnd(ctx, f.Broker.JS, f.names.In.Log); err != nil {
			return err
		}
		if c.Until == 1 {
			f.log.Warn("the log was empty: nothing to estimate", "stream", f.names.In.Log,
				"at", f.Broker.Where)
		}
	}
	if f.source, err = OpenLog(ctx, f.Broker.JS, &f.settings, c); err == nil {
		f.core.Limit(f.source.Limits())
	}
	return err
}

// skip records that messages are skipped. Applied messages cannot be.
func (f *fold) skip(ctx context.Context, r ingest.Range) error {
	switch {
	case r == ingest.Range{}:
		return nil
	case r.First <= f.core.Position():
		return config.Usagef("run: --skip %s: the checkpoint at position %d has applied it",
			r, f.core.Position())
	}
	f.log.Warn("the messages are skipped from now on; the log records it", "positions", r)
	return ingest.Skip(ctx, f.Broker.JS, f.names.In.Log, r)
}

// close frees the fold's resources, once its loop has ended.
func (f *fold) close() {
	if f.core == nil {
		return
	}
	if f.source != nil {
		_ = f.source.Close() // fails for files only
	}
	f.core.Close()
	f.core = nil
}

// run runs the loop until it is stopped. A next fold is opened first; if it fails, the main fold
// goes on, and another attempt starts a moment later.
func (f *fold) run(ctx context.Context) (err error) {
	defer close(f.done)
	if f.main.Load() != f {
		if err = f.open(ctx, Options{}); err == nil {
			for _, one := range f.outlets.each {
				// other workers come first, until this fold replaces the main one
				one.rank.Store(int32(f.group.copies))
			}
			f.opened.Store(true)
		}
	}
	if err == nil {
		err = f.loop(ctx)
	}
	main := f.main.Load()
	switch {
	case ctx.Err() != nil:
		return nil
	case main == f || main.ended() && !elects(err, true) || errors.Is(err, sinks.ErrLost):
		return err
	}
	f.log.Info("nothing is prepared", "because", err)
	_ = request.Pause(ctx, prepareAgain)
	return nil
}

// loop is the only loop over the log: next, step, refuse, publish, checkpoint.
func (f *fold) loop(ctx context.Context) error {
	var batch event.Batch
	for {
		f.idle.Store(true)
		err := f.source.Next(ctx, &batch)
		f.idle.Store(false)
		if errors.Is(err, io.EOF) {
			f.Checkpoints.writing.await(ctx,
				// report it before waiting for a follower, which may be away for long
				writtenWaitMax)
			published := slices.Min(slices.Collect(maps.Values(f.outlets.watermarks())))
			if err := f.quarantine.Settle(ctx); err != nil {
				return err
			}
			newest := f.alerting.follower.Newest
			if err := f.followers.catchUp(ctx, published, newest); err != nil {
				return err
			}
			return errDone
		}
		if err == nil {
			err = f.awaitMain(ctx, &batch)
		}
		if err == nil {
			err = f.process(ctx, &batch)
		}
		if err != nil {
			return err
		}
	}
}

// awaitMain waits until the main fold has taken a step, or this fold has replaced it. Only the main
// fold refuses, reports and saves, so no other fold may take a step first.
func (f *fold) awaitMain(ctx context.Context, b *event.Batch) error {
	over := uint64(b.Last)
	if b.First > b.Last { // a step without messages is over once the next one begins
		over++
	}
	for f.main.Load() != f && f.main.Load().applied.Load() < over {
		f.waitsForMain.Store(true)
		if err := request.Pause(ctx, catchUpLookEvery/4); err != nil {
			return err
		}
	}
	return nil
}

// process processes a step.
func (f *fold) process(ctx context.Context, batch *event.Batch) error {
	main := f.main.Load() == f
	f.outlets.disown(func(shard int) {
		f.core.Disown(shard)
		f.log.Info("another worker has taken a shard over", "shard", shard)
	})
	begun := time.Now()
	f.step.Store(&stepUnderWay{begun, batch.Last, batch.Events(), batch.Emit})
	result := f.core.Step(batch)
	f.step.Store(nil)
	stepped := time.Now()
	if main && f.status.isNew(batch) {
		refused := append(batch.Refused, result.Refused...)
		if err := f.quarantine.Write(ctx, refused); err != nil {
			return err
		}
		f.status.count(batch, refused, len(result.Estimates))
	}
	if batch.Emit {
		emission := sinks.Emission{
			Position:  uint64(batch.Last),
			Digest:    f.source.Identity().Digest.String(),
			Time:      int64(batch.Time),
			Estimates: result.Estimates,
			Cut:       batch.Checkpoint,
			Notes:     batch.Notes(),
		}
		if err := f.outlets.publish(ctx, emission); err != nil {
			return err
		}
		f.behind.Store(result.Behind)
	}
	if main {
		f.show(batch, &result, [2]time.Duration{stepped.Sub(begun), time.Since(stepped)})
	}
	if main && result.Compacted {
		if err := f.save(ctx, batch, batch.Checkpoint || result.Owed,
			stepped.Sub(begun)); err != nil {
			return err
		}
	}
	f.applied.Store(uint64(batch.Last))
	if main {
		return f.reached.record(f.source.Identity(), f.logID)
	}
	return nil
}

// save starts a checkpoint of the step just taken, unless one is being written or shards are being
// taken over. A required one (requested by the log or by an erasure) waits for the previous one.
// step is the duration of the step.
func (f *fold) save(ctx context.Context, b *event.Batch, must bool, step time.Duration) error {
	k := f.Checkpoints
	if next := f.nextFold.Load(); !must && next != nil && time.Since(next.begun) < takeOverLasts {
		return nil // taking over shards needs the processors
	}
	if must || f.group != nil { // other workers of the group save at the same positions
		k.writing.await(ctx, writtenWaitMax)
		k.sharing.await(ctx, sharedWaitMax)
	}
	if len(k.writing) > 0 {
		return nil
	}
	if err := f.outlets.flush(ctx); err != nil {
		return err
	}
	if err := f.quarantine.Settle(ctx); err != nil {
		return err
	}
	begun := time.Now()
	state, err := f.core.Copy()
	if err != nil {
		return err
	}
	k.write(f.manifest(b), state, begun, step)
	return nil
}

// manifest describes the state: its place in the input log, and the end of the output log.
func (f *fold) manifest(b *event.Batch) checkpoint.Manifest {
	id := f.source.Identity()
	return checkpoint.Manifest{
		Position:   uint64(b.Last),
		LogTime:    int64(b.Time),
		Emitted:    b.Emit,
		Clock:      int64(b.Clock),
		Derived:    f.derived(),
		Config:     f.config.Digest(),
		Classes:    f.settings.Classes,
		Version:    f.version,
		Written:    time.Now().UTC(),
		Stream:     checkpoint.Stream{Name: id.Stream, Log: f.logID, Digest: id.Digest.String()},
		Watermarks: f.outlets.watermarks(),
		Erased:     uint64(f.core.Erased()),
	}
}
