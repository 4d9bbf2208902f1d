package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/request"
	"gqlstream/sinks"
)

// Run follows the log until it is drained, if asked to, or interrupted. read gives
// the settings: at the start, and again at every SIGHUP.
func Run(ctx context.Context, read func() (config.Settings, error), o Options) error {
	settings, err := read()
	if err != nil {
		return err
	}
	reload := &reloader{signals: make(chan os.Signal, 1), read: read}
	signal.Notify(reload.signals, syscall.SIGHUP) // which would end the process otherwise
	defer signal.Stop(reload.signals)
	err = OnceElected(ctx, o.Log, func() error {
		o.member, err = joinGroup(ctx, settings, o)
		return err
	})
	if err == nil {
		err = runAgain(ctx, settings, reload, o)
		o.member.leave()
	}
	if errors.Is(err, errInterrupted) {
		return nil
	}
	return err
}

func runAgain(ctx context.Context, settings config.Settings, reload *reloader, o Options) error {
	for answered := o.member != nil; ; answered = true { // whether the broker has
		var p *Pipeline
		err := OnceElected(ctx, o.Log, func() (err error) {
			if p, err = Open(ctx, settings, o); answered {
				err = away(err)
			}
			return err
		})
		if err != nil {
			return err
		}
		p.reload = reload
		greet(o.Err, p)
		err = p.Run(ctx)
		if ctx.Err() == nil && slices.ContainsFunc(startAgain, func(reason error) bool { return errors.Is(err, reason) }) {
			settings, o.Skip = p.settings, 0
			o.Log.Warn("starting again from the newest checkpoint", "reason", err)
			if errors.Is(err, errRegroup) {
				p.group.saves = p.Checkpoints.handOn()
			}
			if err := p.Close(); err != nil {
				o.Log.Warn("before starting again", "error", err) // the run that has ended is told of, and no more
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, errDrained) {
			err = nil // interrupted: everything up to the last step is out
		}
		return errors.Join(err, p.Close())
	}
}

const electionWaitMax = time.Minute // that a start waits for a cluster to elect its leaders

var errInterrupted = errors.New("interrupted before the broker was ready")

// OnceElected does something, and tries again while a cluster elects its leaders.
func OnceElected(ctx context.Context, log *slog.Logger, try func() error) error {
	for begun := time.Now(); ; {
		err := try()
		again := elects(err) && time.Since(begun) <= electionWaitMax && request.Pause(ctx, 300*time.Millisecond) == nil
		if err != nil && ctx.Err() != nil {
			log.Info(errInterrupted.Error(), "at", err)
			return errInterrupted
		}
		if !again {
			return err
		}
		log.Warn("the broker is not ready; trying again", "reason", err)
	}
}

// elects reports whether a start failed because a cluster elects: it says so, or nothing, or the connection ended under
// the question; or a known broker is away. A stream that another worker is just making is in use and not found at once.
func elects(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.ErrorCode(nats.JSErrCodeJetStreamNotAvailable) || api.ErrorCode == jetstream.JSErrCodeStreamNotFound) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errAway)
}

// errAway is matched by the error of a run that cannot connect to a broker that has answered before.
var errAway = errors.New("the broker is away")

// away returns an error of a start as one that passes, if it is that of a connection, or can pass: the address was right
// before.
func away(err error) error {
	var connecting net.Error
	if request.Passes(err) || errors.As(err, &connecting) || errors.Is(err, nats.ErrNoServers) {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

var startAgain = []error{errAgain, errRegroup, sinks.ErrLost} // reasons to go on from a checkpoint

// errAgain ends a run whose embedded server must be started again: once it could not
// write, it takes nothing any more, also when there is room again.
var errAgain = errors.New("the embedded server could not write, and there is room again")

// Run runs the loop and the goroutines that watch it, until the log is drained, ctx ends, or
// something cannot go on.
func (p *Pipeline) Run(ctx context.Context) error {
	running, cancel := context.WithCancelCause(ctx)
	var watches sync.WaitGroup
	watch := func(run func(context.Context) error) {
		watches.Go(func() {
			if err := run(running); err != nil && running.Err() == nil {
				cancel(err)
			}
		})
	}
	watch(p.followers.watch)
	watch(p.quarantine.Run)
	if p.Broker.Embedded != nil {
		watch(p.watchStore)
	}
	watch(p.watchOutput)
	watch(p.outlets.watchHeld)
	if p.group != nil {
		watch(func(ctx context.Context) error {
			return repeat(ctx, regroupAfter, func() error {
				_ = sinks.WatchMarks(ctx, p.Broker.JS, p.names.Out, p.logID, func(m sinks.Mark) { p.outlets.heed(m, p.group.self) }) // what they say comes again
				return nil
			})
		})
		watch(p.watchGroup)
	}
	if p.reload != nil {
		watch(func(ctx context.Context) error { return p.reload.watch(ctx, p) })
	}
	watch(p.watchStatus)
	err := p.loop(running)
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		err = cause
	}
	cancel(nil)
	watches.Wait()
	if !errors.Is(err, errRegroup) {
		p.group.drop()
	}
	return err
}

// loop is the only loop over the log: next, step, refuse, publish, checkpoint.
func (p *Pipeline) loop(ctx context.Context) error {
	var batch event.Batch
	for {
		p.idle.Store(true)
		asked := time.Now()
		err := p.source.Next(ctx, &batch)
		p.idle.Store(false)
		if time.Since(asked) > caughtUpAfter {
			p.tookOver = time.Time{}
		}
		if errors.Is(err, io.EOF) {
			p.Checkpoints.collect(true) // said before a follower is waited for that may be away for long
			return cmp.Or(p.quarantine.Settle(ctx), p.followers.catchUp(ctx, p.outlets.published(), p.alerting.newest))
		}
		if err != nil {
			return err
		}
		p.outlets.disown(func(shard int) {
			p.Core.Disown(shard)
			p.log.Info("another worker has taken a shard over", "shard", shard)
		})
		begun := time.Now()
		p.step.Store(&stepUnderWay{begun, batch.Last, batch.Events(), batch.Emit})
		result := p.Core.Step(&batch)
		p.step.Store(nil)
		stepped := time.Now()
		if err := p.quarantine.Write(ctx, append(batch.Refused, result.Refused...)); err != nil {
			return err
		}
		if batch.Emit {
			emission := sinks.Emission{Position: uint64(batch.Last), Time: int64(batch.Time), Estimates: result.Estimates, Cut: batch.Checkpoint, Notes: batch.Notes()}
			if err := p.outlets.publish(ctx, emission); err != nil {
				return err
			}
			p.behind.Store(result.Behind)
		}
		p.applied.Store(uint64(batch.Last))
		p.record(&batch, &result)
		p.stats.watchFill(p.Core.View().Fills(), p.log.Warn)
		configured := slices.ContainsFunc(batch.Controls, func(c event.Control) bool { return c.Op == event.Configure })
		p.definitions.show(p.Core.View(), p.Page, p.log, configured)
		p.showStatus(&result, [2]time.Duration{stepped.Sub(begun), time.Since(stepped)})
		if result.Compacted {
			if err := p.save(ctx, &batch, batch.Checkpoint || result.Owed, stepped.Sub(begun)); err != nil {
				return err
			}
		}
	}
}

// takesOver reports whether shards wait for the processors that a checkpoint would take: the next pipeline is
// being prepared, or this one has just begun with what was, and has not caught up with the log.
func (p *Pipeline) takesOver() bool {
	return p.preparing.Load() || time.Since(p.tookOver) < takeOverLasts
}

// save starts a checkpoint of the step just taken, unless one is being written or shards are taken over. One
// that must be, because the log or an erasure asks for it, waits for the former. step is how long the step took.
func (p *Pipeline) save(ctx context.Context, b *event.Batch, must bool, step time.Duration) error {
	k := p.Checkpoints
	if !must && p.takesOver() {
		return nil
	}
	if k.collect(must || p.group != nil); k.writing != nil {
		return nil
	}
	if err := cmp.Or(p.outlets.settle(ctx), p.quarantine.Settle(ctx)); err != nil {
		return err
	}
	begun := time.Now()
	state, err := p.Core.Copy()
	if err != nil {
		return err
	}
	k.write(p.manifest(b), state, begun, step)
	return nil
}

// manifest describes the state: its place in the log, and the end of the log out then.
func (p *Pipeline) manifest(b *event.Batch) checkpoint.Manifest {
	id := p.source.Identity()
	var watermarks map[int]uint64
	if p.group != nil {
		watermarks = p.outlets.watermarks()
	}
	return checkpoint.Manifest{
		Position: uint64(b.Last), LogTime: int64(b.Time), Emitted: b.Emit, Config: p.Config.Digest(), Classes: p.settings.Classes,
		Version: p.version, Written: time.Now().UTC(),
		Stream:    checkpoint.Stream{Name: id.Stream, Created: id.Created, Digest: id.Digest},
		Published: p.outlets.published(), Watermarks: watermarks, Erased: uint64(p.Core.Erased()),
	}
}

// How often the embedded server is asked whether it can write, the log out is compared with what was
// acknowledged, and the settings of the streams are audited.
const (
	storeLookEvery    = time.Second
	outputAuditEvery  = time.Second
	streamsAuditEvery = time.Minute
)

// watchOutput audits what the broker acknowledged, also while nothing is published, and the streams.
func (p *Pipeline) watchOutput(ctx context.Context) error {
	audited := time.Now()
	return repeat(ctx, outputAuditEvery, func() error {
		if err := p.outlets.audit(ctx); err != nil || time.Since(audited) < p.auditEvery {
			return err
		}
		audited = time.Now()
		return p.auditStreams(ctx)
	})
}

// watchStore waits until the embedded server could not write, and then until there is room.
func (p *Pipeline) watchStore(ctx context.Context) error {
	return repeat(ctx, storeLookEvery, func() error {
		switch reason := p.Broker.Embedded.WriteError(); {
		case reason == "":
			return nil
		case p.full.Load() == nil:
			p.full.Store(&request.State{Name: p.names.In.Log, Condition: request.Holding, Reason: reason, Since: time.Now()})
			p.log.Error("the embedded server cannot write, and takes nothing until there is room", "bytes", broker.RoomMin, "reason", reason)
		}
		if p.Broker.Embedded.Room() != nil {
			return nil
		}
		return errAgain
	})
}

// repeat calls do, with a pause after each, until it fails or ctx ends, which is no failure.
func repeat(ctx context.Context, pause time.Duration, do func() error) error {
	for {
		if err := do(); err != nil || request.Pause(ctx, pause) != nil {
			return err
		}
	}
}
