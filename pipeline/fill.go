package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// Fill computes the records that the output log lacks again from the input log, and rebuilds
// the output log with them. It returns the number of emissions that it computed. No run may
// publish meanwhile.
func Fill(
	ctx context.Context, b *broker.Broker, settings config.Settings, log *slog.Logger,
) (emissions int, err error) {
	in, out, err := settings.Names()
	if err != nil {
		return 0, err
	}
	path := filepath.Join(settings.State, "filling")
	if _, err := os.Stat(path); err == nil {
		log.Warn("a repair was interrupted and is finished", "file", path)
		return 0, sinks.Replace(ctx, b.JS, out, path)
	}
	stream, err := b.JS.Stream(ctx, in.Log)
	if err != nil {
		return 0, err
	}
	marks, err := sinks.Marks(ctx, b.JS, out)
	if err != nil {
		return 0, err
	}
	for _, m := range marks {
		if b.Embedded == nil && m.Lives() {
			return 0, fmt.Errorf("host %s, process %d publishes to %s: stop it first, or wait a "+
				"minute if it was killed", m.Writer.Host, m.Writer.PID, out.Estimates)
		}
	}
	name := broker.LogName(stream)
	until := func(shard int) uint64 { return publishedTo(settings.State, name, shard) }
	r, err := sinks.FindGaps(ctx, b.JS, out, name, until)
	if err != nil || len(r.Gaps) == 0 {
		return 0, err
	}
	f := &filling{settings: settings, broker: b, log: log, rebuild: r}
	if err := f.replay(ctx, stream.CachedInfo().State.FirstSeq); err != nil {
		return 0, err
	}
	if err := r.Write(ctx, path, f.made); err != nil {
		return 0, err
	}
	return len(f.made), sinks.Replace(ctx, b.JS, out, path)
}

// publishedTo returns the last published position of a shard according to the checkpoints; 0 if no
// checkpoint of this log has one.
func publishedTo(state, log string, shard int) (to uint64) {
	dir := checkpoint.Look(checkpoint.Disk{}, checkpointsIn(state))
	for _, m := range dir.Manifests() {
		if m.Stream.Log == log {
			to = max(to, m.Watermarks[shard])
		}
	}
	return to
}

// LostEnds returns an error for each shard that has lost its last records in the output log.
func LostEnds(ctx context.Context, b *broker.Broker, settings config.Settings) ([]error, error) {
	in, out, err := settings.Names()
	if err != nil {
		return nil, err
	}
	stream, err := b.JS.Stream(ctx, in.Log)
	if err != nil {
		return nil, err
	}
	log := broker.LogName(stream)
	marks, err := sinks.Marks(ctx, b.JS, out)
	if err != nil {
		return nil, err
	}
	var faults []error
	estimates, err := b.JS.Stream(ctx, out.Estimates)
	if err != nil {
		return nil, err
	}
	seen := &reached{path: reachedIn(settings.State)}
	if lost := seen.lostOutput(estimates.CachedInfo()); lost > 0 {
		faults = append(faults, fmt.Errorf("%s: the last %d messages are gone; the next start "+
			"publishes their records again", out.Estimates, lost))
	}
	for _, m := range marks {
		if to := publishedTo(settings.State, log, m.Shard); m.Log == log && m.Position < to {
			faults = append(faults, fmt.Errorf("%s: shard %d ends at position %d, and was "+
				"published to %d", out.Estimates, m.Shard, m.Position, to))
		}
	}
	return faults, nil
}

// filling is a replay of the part of the input log that gives the missing records.
type filling struct {
	settings config.Settings
	broker   *broker.Broker
	log      *slog.Logger
	rebuild  *sinks.Rebuild
	made     []sinks.Emitted
}

// replay computes the emissions in the gaps, from the newest checkpoint before them all or the
// beginning of the log.
func (f *filling) replay(ctx context.Context, first uint64) error {
	from, to := uint64(math.MaxUint64), uint64(0)
	for _, g := range f.rebuild.Gaps {
		from, to = min(from, g.From), max(to, g.To)
	}
	core, c, err := f.openCore(from, first)
	if err != nil {
		return err
	}
	defer core.Close()
	if c.Step, err = f.settings.Steps(); err != nil {
		return err
	}
	c.Until = event.Position(to)
	source, err := OpenLog(ctx, f.broker.JS, &f.settings, c)
	if err != nil {
		return err
	}
	defer source.Close()
	core.Limit(source.Limits())
	var batch event.Batch
	for {
		if err := source.Next(ctx, &batch); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		result := core.Step(&batch)
		if !batch.Emit {
			continue
		}
		if err := f.keepMissing(&sinks.Emission{
			Position:  uint64(batch.Last),
			Digest:    source.Identity().Digest.String(),
			Time:      int64(batch.Time),
			Estimates: result.Estimates,
			Cut:       batch.Checkpoint,
			Notes:     batch.Notes(),
		}); err != nil {
			return err
		}
	}
}

// openCore returns the core that the replay starts with, and the place in the log where it
// starts.
func (f *filling) openCore(
	from, first uint64,
) (core *incremental.Core, c ingest.JetStreamConfig, err error) {
	conf, err := f.settings.Core()
	if err != nil {
		return nil, c, err
	}
	saved, err := NearestCheckpoint(f.settings.State, conf.Digest(),
		Place{Position: event.Position(max(from, 1))},
		func(format string, args ...any) { f.log.Warn(fmt.Sprintf(format, args...)) })
	if err == nil && saved != nil && saved.Manifest.Derived == checkpoint.Derived {
		if core, err := incremental.Restore(conf, saved.Sections); err == nil {
			c.From, c.Identity = ResumeOf(saved.Manifest)
			return core, c, nil
		} // it is of one worker of a group
	}
	if err == nil && first > 1 {
		err = fmt.Errorf("no whole checkpoint is as old as position %d, and the log begins at %d: "+
			"the records that %s lacks cannot be made again", from, first,
			f.broker.Where)
	}
	if err != nil {
		return nil, c, err
	}
	core, err = incremental.New(conf)
	return core, c, err
}

// keepMissing keeps the parts of an emission that the output log lacks.
func (f *filling) keepMissing(e *sinks.Emission) error {
	for shard, part := range divide(e, max(f.settings.Group.Shards, 1)) {
		lacks := slices.ContainsFunc(f.rebuild.Gaps,
			func(g sinks.Gap) bool { return g.Shard == shard && g.Lacks(e.Position) })
		if !lacks || len(part.Estimates) == 0 && len(part.Notes) == 0 && !part.Cut {
			continue
		}
		batches, err := f.rebuild.Made(shard, &part)
		if err != nil {
			return err
		}
		f.made = append(f.made, sinks.Emitted{
			Shard: shard, Position: e.Position, Batches: batches,
		})
	}
	return nil
}
