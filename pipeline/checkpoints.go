package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
	"gqlstream/sinks/web"
)

// checkpoints saves the core: the loop makes the copy, and a goroutine writes it. At most one is
// being written; a boundary during a write is skipped. If a checkpoint fails, for lack of space for
// example, nothing is lost: the previous one stays, and the next boundary makes another.
type checkpoints struct {
	Dir *checkpoint.Dir
	log *slog.Logger
	// share passes a state to other workers; nil: there are none
	share   func(context.Context, *checkpoint.Checkpoint)
	end     context.CancelFunc // ends the sharing
	given   context.Context
	writing slot
	sharing slot

	mu       sync.Mutex     // guards the fields below
	last     web.Checkpoint // the newest successful one, and the number of failures
	loggedAt time.Time      // when the program's log last mentioned one
	unlogged int            // checkpoints since then
	err      error          // of the newest one
}

// slot is a lock for work of which only one may be under way.
type slot chan struct{}

func newSlot() slot { return make(slot, 1) }

// await waits until the work is over, up to a time limit or until ctx ends.
func (s slot) await(ctx context.Context, most time.Duration) {
	select {
	case s <- struct{}{}:
		<-s
	case <-time.After(most):
	case <-ctx.Done():
	}
}

func checkpointsIn(state string) string { return filepath.Join(state, "checkpoints") }

func openCheckpoints(state string, log *slog.Logger) (*checkpoints, error) {
	dir, err := checkpoint.Open(checkpoint.Disk{}, checkpointsIn(state))
	if err != nil {
		return nil, err
	}
	k := &checkpoints{Dir: dir, log: log, writing: newSlot(), sharing: newSlot()}
	k.given, k.end = context.WithCancel(context.Background())
	return k, dir.CheckFormat()
}

// write writes a state in a goroutine, after the previous write has ended. The loop has been
// blocked since begun, and before that for pause.
func (k *checkpoints) write(
	m checkpoint.Manifest, state []incremental.Section, begun time.Time, pause time.Duration,
) {
	pause += time.Since(begun)
	k.writing <- struct{}{}
	go func() {
		n, err := k.store(m, state)
		k.record(
			web.Checkpoint{
				Position: m.Position,
				At:       time.Now().UTC(),
				Seconds:  time.Since(begun).Seconds(),
				Bytes:    n,
			},
			pause,
			err,
		)
		<-k.writing
	}()
}

// store writes a state, and also passes it to other workers: a worker that takes shards over reads
// the log from there. A slow network does not delay later states: a state that comes while another
// one is being passed on stays on this machine.
func (k *checkpoints) store(
	m checkpoint.Manifest,
	state []incremental.Section,
) (bytes int64, err error) {
	if err := incremental.Encode(state); err != nil {
		return 0, err
	}
	c := checkpoint.New(m)
	for _, s := range state {
		c.Add(s.Name, s.Data)
	}
	if k.share != nil && m.Derived != checkpoint.NoDerived {
		select {
		case k.sharing <- struct{}{}:
			go func() {
				k.share(k.given, c)
				<-k.sharing
			}()
		default:
			k.log.Warn("other workers do not have this checkpoint", "position", m.Position,
				"reason", "the upload of the previous one is not finished")
		}
	}
	return k.Dir.Save(c)
}

// How long to wait for work under way.
const (
	writtenWaitMax = math.MaxInt64 // for a state that is being written: no limit
	// sharedWaitMax is for a state that is being passed on, before the next one, of which others
	// need all parts as well.
	sharedWaitMax = 2 * time.Second
	sharedLastMax = 5 * time.Second // the same, at the end of a run
)

// finish waits for the writer at the end of a run and returns the error of the newest checkpoint.
func (k *checkpoints) finish() error {
	k.writing.await(context.Background(), writtenWaitMax)
	k.sharing.await(context.Background(), sharedLastMax)
	k.end()
	return k.err
}

// record records the result of the newest checkpoint, which blocked the loop for pause.
func (k *checkpoints) record(now web.Checkpoint, pause time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.last.Failed++
		k.err = fmt.Errorf("checkpoint: %w", err)
		k.log.Warn("a checkpoint failed; the previous one stands", "before", k.last.Position,
			"reason", err)
		return
	}
	now.Failed = k.last.Failed
	k.last, k.err = now, nil
	if k.unlogged++; now.At.Sub(k.loggedAt) < checkpointLineEvery {
		return
	}
	took := time.Duration(now.Seconds * float64(time.Second))
	k.log.Info("checkpoint", "position", now.Position, "bytes", now.Bytes, "pause",
		pause.Round(time.Microsecond), "took", took.Round(time.Millisecond), "written", k.unlogged)
	k.loggedAt, k.unlogged = now.At, 0
}

// newest returns the newest successful checkpoint and the number of failures; nil if none has ended
// yet.
func (k *checkpoints) newest() *web.Checkpoint {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.last; !last.At.IsZero() || last.Failed > 0 {
		return &last
	}
	return nil
}

const checkpointLineEvery = 30 * time.Second // a history being loaded makes several a second

// errBehind is matched if the output log is behind its position in a saved state: the broker has
// lost its end.
var errBehind = errors.New("the output log is behind it")

// restore returns the core of the newest usable state and its place, or a fresh core at the
// beginning of the log if there is none: the log is then read again from its start.
func (p *Pipeline) restore(
	ctx context.Context,
	f *fold,
	same bool,
) (core *incremental.Core, at ingest.Resume, id *ingest.Identity, err error) {
	c, reconfigured, err := p.newestState(ctx, f, same)
	if err != nil {
		return nil, at, nil, err
	}
	if c == nil {
		core, err = incremental.New(f.config)
		return core, at, new(ingest.Start(p.names.In.Log)), err
	}
	if core, err = p.coreOf(f, c, reconfigured); err != nil {
		return nil, at, nil, fmt.Errorf(
			"checkpoint %d is intact, but it cannot be continued: %w\n"+
				"Move %s away to read the log again from its beginning; nothing was changed",
			c.Manifest.Position,
			err,
			checkpointsIn(p.settings.State),
		)
	}
	p.log.Info("restored", "position", c.Manifest.Position, "written", c.Manifest.Written, "shards",
		f.owned())
	at, id = ResumeOf(c.Manifest)
	return core, at, id, nil
}

// newestState returns the latest checkpoint of this configuration, or nil if there is none, or if
// another configuration was published last and the log is whole. It has the graph and every shard
// of this fold, on this machine or in the group's store, and it does not lie beyond the output log,
// so that the same bytes are published again after it. If all states of a run without a group lie
// beyond the output log, the newest is returned: somebody has removed the stream. Other workers
// store and drop states meanwhile, so every call looks again.
func (p *Pipeline) newestState(
	ctx context.Context,
	f *fold,
	same bool,
) (c *checkpoint.Checkpoint, reconfigured bool, err error) {
	published, err := p.continues(f, same)
	if err != nil {
		return nil, false, err
	}
	if !published {
		c, err = p.newestReconfigured(ctx)
		return c, true, err
	}
	var beyond *checkpoint.Checkpoint // the newest of those beyond the output log
	for tried := []uint64(nil); ; {
		local, err := p.Checkpoints.Dir.List()
		positions := local
		if err == nil && p.group != nil {
			positions, err = p.group.positions(ctx, f.config.Digest(), local, f.config.Owned)
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
				f.owned())
			return nil, false, nil // a fresh core
		case i < 0:
			return nil, false, nil // a fresh core
		}
		c, err := p.stateAt(ctx, f, positions[i], slices.Contains(local, positions[i]))
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
func (p *Pipeline) continues(f *fold, same bool) (bool, error) {
	for _, one := range f.outlets.each {
		was, classes := one.writer.Before()
		switch digest := f.config.Digest(); {
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
func (p *Pipeline) stateAt(
	ctx context.Context,
	f *fold,
	position uint64,
	local bool,
) (c *checkpoint.Checkpoint, err error) {
	if local {
		c, err = p.Checkpoints.Dir.Read(position)
		switch {
		case errors.Is(err, checkpoint.ErrFormat):
			p.log.Warn("a checkpoint of another release is ignored", "position", position,
				"reason", err)
		case err != nil:
			p.log.Warn("a damaged checkpoint is ignored", "position", position, "reason", err)
		}
	}
	if p.group != nil && c == nil {
		if c, err = p.group.fetchGraph(ctx, f.config.Digest(), position); err == nil {
			c.Manifest.Watermarks = nil // shards are separate parts
		}
	}
	if err != nil {
		return nil, err
	}
	if m := &c.Manifest; m.Config != f.config.Digest() ||
		len(m.Classes) > 0 && !slices.Equal(m.Classes, p.settings.Classes) {
		return nil, fmt.Errorf("it is of the configuration %s with classes %q", m.Config, m.Classes)
	}
	// without derived tables a shard needs nothing that other workers stored
	if p.group != nil && c.Manifest.Derived == checkpoint.Derived {
		if err := p.group.complete(ctx, c, f.config.Owned); err != nil {
			return nil, err
		}
	}
	now := f.outlets.watermarks()
	for _, shard := range f.owned() {
		if then := c.Manifest.Watermarks[shard]; now[shard] < then {
			return c, fmt.Errorf("shard %d was published up to %d then, and is up to %d now: %w",
				shard, then, now[shard], errBehind)
		}
	}
	return c, nil
}

// ResumeOf returns the place where the log continues after a checkpoint, and its identity.
func ResumeOf(m checkpoint.Manifest) (ingest.Resume, *ingest.Identity) {
	at := ingest.Resume{
		Position: event.Position(m.Position),
		Time:     event.Time(m.LogTime),
		Emitted:  m.Emitted,
		Clock:    event.Time(m.Clock),
	}
	return at, &ingest.Identity{
		Stream:   m.Stream.Name,
		Position: at.Position,
		Digest:   ingest.ParseDigest(m.Stream.Digest),
	}
}
