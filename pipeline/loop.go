package pipeline

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/request"
	"gqlstream/sinks"
)

// runFold runs the loop of a fold until it is stopped. A next fold is opened first; if that fails,
// the main fold goes on, and another attempt starts a moment later.
func (p *Pipeline) runFold(ctx context.Context, f *fold) (err error) {
	defer close(f.done)
	if p.folds.main.Load() != f {
		var parts foldParts
		if parts, err = p.opener.open(ctx, f.config, new(Options)); err == nil {
			for _, one := range parts.outlets.each {
				// other workers come first, until this fold replaces the main one
				one.rank.Store(int32(p.group.copies))
			}
			f.install(parts)
		}
	}
	if err == nil {
		err = p.loop(ctx, f)
	}
	main := p.folds.main.Load()
	switch {
	case ctx.Err() != nil:
		return nil
	case main == f || main.ended() && !elects(err, true) || errors.Is(err, sinks.ErrLost):
		return err
	}
	p.log.Info("nothing is prepared", "because", err)
	_ = request.Pause(ctx, prepareAgain)
	return nil
}

// loop is the only loop over the log: next, step, refuse, publish, checkpoint. The main fold and a
// next one each have a goroutine in it.
func (p *Pipeline) loop(ctx context.Context, f *fold) error {
	var batch event.Batch
	for {
		f.idle.Store(true)
		err := f.source.Next(ctx, &batch)
		f.idle.Store(false)
		if errors.Is(err, io.EOF) {
			p.Checkpoints.writing.await(ctx,
				// report it before waiting for a follower, which may be away for long
				writtenWaitMax)
			published := slices.Min(slices.Collect(maps.Values(f.outlets.watermarks())))
			if err := p.quarantine.Settle(ctx); err != nil {
				return err
			}
			newest := p.alerting.follower.Newest
			if err := p.followers.catchUp(ctx, published, newest); err != nil {
				return err
			}
			return errDone
		}
		if err == nil {
			err = p.awaitMain(ctx, f, &batch)
		}
		if err == nil {
			err = p.process(ctx, f, &batch)
		}
		if err != nil {
			return err
		}
	}
}

// awaitMain waits until the main fold has taken a step, or this fold has replaced it. Only the main
// fold refuses, reports and saves, so no other fold may take a step first.
func (p *Pipeline) awaitMain(ctx context.Context, f *fold, b *event.Batch) error {
	over := uint64(b.Last)
	if b.First > b.Last { // a step without messages is over once the next one begins
		over++
	}
	for p.folds.main.Load() != f && p.folds.main.Load().applied.Load() < over {
		f.waitsForMain.Store(true)
		if err := request.Pause(ctx, catchUpLookEvery/4); err != nil {
			return err
		}
	}
	return nil
}

// process runs the core on a step, stores the refused events, publishes the estimates and saves
// the state.
func (p *Pipeline) process(ctx context.Context, f *fold, batch *event.Batch) error {
	main := p.folds.main.Load() == f
	f.outlets.disown(func(shard int) {
		f.core.Disown(shard)
		p.log.Info("another worker has taken a shard over", "shard", shard)
	})
	begun := time.Now()
	f.step.Store(&stepUnderWay{begun, batch.Last, batch.Events(), batch.Emit})
	result := f.core.Step(batch)
	f.step.Store(nil)
	stepped := time.Now()
	if main {
		part := map[bool]string{true: "solve", false: "fold"}[batch.Emit]
		p.tracer.add(part, begun, batch.Events())
	}
	if main && p.status.isNew(batch) {
		refused := append(batch.Refused, result.Refused...)
		if err := p.quarantine.Write(ctx, refused); err != nil {
			return err
		}
		p.status.count(batch, refused, len(result.Estimates))
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
	if main && batch.Emit {
		p.tracer.add("publish", stepped, 0)
	}
	if main {
		p.showStep(f, batch, &result, [2]time.Duration{stepped.Sub(begun), time.Since(stepped)})
	}
	if main && result.Compacted {
		if err := p.save(ctx, f, batch, batch.Checkpoint || result.Owed,
			stepped.Sub(begun)); err != nil {
			return err
		}
	}
	f.applied.Store(uint64(batch.Last))
	if main && batch.Emit {
		p.tracer.emitted(&result)
	}
	if main {
		return p.reached.record(f.source.Identity(), p.logID, f.outlets.sequence())
	}
	return nil
}

// save starts a checkpoint of the step just taken, unless one is being written or shards are being
// taken over. A required one (requested by the log or by an erasure) waits for the previous one.
// step is the duration of the step.
func (p *Pipeline) save(
	ctx context.Context, f *fold, b *event.Batch, must bool, step time.Duration,
) error {
	k := p.Checkpoints
	if next := p.folds.next.Load(); !must && next != nil && time.Since(next.begun) < takeOverLasts {
		return nil // taking over shards needs the processors
	}
	if must || p.group != nil { // other workers of the group save at the same positions
		k.writing.await(ctx, writtenWaitMax)
		k.uploading.await(ctx, uploadWaitMax)
	}
	if len(k.writing) > 0 {
		return nil
	}
	if err := f.outlets.awaitEmpty(ctx); err != nil {
		return err
	}
	if err := p.quarantine.Settle(ctx); err != nil {
		return err
	}
	begun := time.Now()
	state, err := f.core.Copy()
	if err != nil {
		return err
	}
	k.write(p.manifest(f, b), state, begun, step)
	p.tracer.add("checkpoint", begun, 0)
	return nil
}

// manifest describes the state: its place in the input log, and the end of the output log.
func (p *Pipeline) manifest(f *fold, b *event.Batch) checkpoint.Manifest {
	id := f.source.Identity()
	return checkpoint.Manifest{
		Position:   uint64(b.Last),
		LogTime:    int64(b.Time),
		Emitted:    b.Emit,
		Clock:      int64(b.EndsBy),
		Derived:    f.derived(),
		Config:     f.config.Digest(),
		Classes:    p.settings.Classes,
		Version:    p.version,
		Written:    time.Now().UTC(),
		Stream:     checkpoint.Stream{Name: id.Stream, Log: p.logID, Digest: id.Digest.String()},
		Watermarks: f.outlets.watermarks(),
		Erased:     uint64(f.core.Erased()),
	}
}
