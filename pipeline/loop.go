package pipeline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/config"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

// Run follows the log until it is drained, if asked to, or interrupted. read gives
// the settings: at the start, and again at every SIGHUP.
func Run(ctx context.Context, read func() (config.Settings, error), o Options) error {
	settings, err := read()
	if err != nil {
		return err
	}
	reload := newReloader(read)
	defer reload.stop()
	err = onceElected(ctx, o.Log, func() error {
		o.member, err = joinGroup(ctx, settings, o)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(runAgain(ctx, settings, reload, o), o.member.leave())
}

// runAgain opens and runs a pipeline, again as long as what ended it is mended by that.
func runAgain(ctx context.Context, settings config.Settings, reload *reloader, o Options) error {
	for {
		var p *Pipeline
		err := onceElected(ctx, o.Log, func() (err error) {
			p, err = Open(ctx, settings, o)
			return err
		})
		if err != nil {
			return err
		}
		p.reload = reload
		p.greet(o.Err)
		err = p.Run(ctx)
		if ctx.Err() == nil && slices.ContainsFunc(startAgain, func(reason error) bool { return errors.Is(err, reason) }) {
			settings, o.Skip = p.settings, 0
			o.Log.Warn("starting again from the newest checkpoint", "reason", err)
			if err := p.Close(); err != nil {
				o.Log.Warn("before starting again", "error", err) // of what is behind us
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, errDrained) {
			err = nil // interrupted: everything up to the last step is out
		}
		return errors.Join(err, p.Close())
	}
}

// electionWaitMax is how long a start waits for a cluster that elects its leaders.
const electionWaitMax = time.Minute

// onceElected tries something again while a cluster elects its leaders.
func onceElected(ctx context.Context, log *slog.Logger, try func() error) error {
	for begun := time.Now(); ; {
		err := try()
		if !elects(err) || time.Since(begun) > electionWaitMax || ingest.Pause(ctx, time.Second) != nil {
			return err
		}
		log.Warn("the broker is not ready; trying again", "reason", err)
	}
}

// codeNotReady is the answer of a cluster in which nobody can decide now.
const codeNotReady jetstream.ErrorCode = 10008

// elects reports whether a start failed because a cluster elects: it says so, or nothing.
func elects(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeNotReady || errors.Is(err, context.DeadlineExceeded)
}

// startAgain are the reasons to go on from a checkpoint.
var startAgain = []error{errAgain, errRegroup, sinks.ErrLost}

// errAgain ends a run whose embedded server must be started again: once it could not
// write, it takes nothing any more, also when there is room again.
var errAgain = errors.New("the embedded server could not write, and there is room again")

// Run runs the loop and, beside it, what watches over it, until the log is drained, ctx
// ends, or something cannot go on.
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
	watch(p.watchServer)
	watch(p.watchFollowers)
	watch(p.watchOutput)
	watch(p.watchHeld)
	if p.group != nil {
		watch(p.watchMarks)
		watch(p.watchGroup)
		watch(p.group.store.WatchDisagreements)
	}
	watch(p.watchReload)
	watch(p.watchStatus)
	watch(p.watchSteps)
	watch(p.watchQuarantine)
	err := p.loop(running)
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		err = cause
	}
	cancel(nil)
	watches.Wait()
	return err
}

// loop is the only loop over the log: next, step, refuse, publish, checkpoint.
func (p *Pipeline) loop(ctx context.Context) error {
	var batch event.Batch
	for {
		p.idle.Store(true)
		err := p.source.Next(ctx, &batch)
		p.idle.Store(false)
		if errors.Is(err, io.EOF) {
			p.Checkpoints.collect(p, true) // said before a follower is waited for that may be away for long
			return p.followers.catchUp(ctx, p.outlets.published(), p.alertsLast)
		}
		if err != nil {
			return err
		}
		p.disownGone()
		begun := time.Now()
		p.underWay.Store(&stepUnderWay{begun, batch.Last, batch.Events(), batch.Emit})
		result := p.Core.Step(&batch)
		p.underWay.Store(nil)
		stepped := time.Now()
		if refused := slices.Concat(batch.Refused, result.Refused); len(refused) > 0 {
			if err := p.quarantine.Write(ctx, refused); err != nil {
				return err
			}
		}
		if batch.Emit {
			emission := sinks.Emission{
				Position: uint64(batch.Last), Time: int64(batch.Time), Estimates: result.Estimates, Cut: batch.Checkpoint,
				Notes: batch.Notes(),
			}
			if err := p.outlets.publish(ctx, emission); err != nil {
				return err
			}
		}
		p.applied.Store(uint64(batch.Last))
		p.record(&batch, &result)
		p.stats.watchFill(p.Core.View().Fills(), p.log.Warn)
		p.showDefinitions()
		p.showStatus(&result, [2]time.Duration{stepped.Sub(begun), time.Since(stepped)})
		if result.Compacted {
			if err := p.save(ctx, &batch, batch.Checkpoint || result.Owed, stepped.Sub(begun)); err != nil {
				return err
			}
		}
	}
}

// auditEvery is how often the log out is compared with what was acknowledged, and the log
// in with what a log must be.
const (
	outputAuditEvery = time.Second
	inputAuditEvery  = time.Minute
)

// watchOutput asks the broker whether it still has what it acknowledged, also while
// nothing is published, and whether the log in can still be relied upon.
func (p *Pipeline) watchOutput(ctx context.Context) error {
	ticker := time.NewTicker(outputAuditEvery)
	defer ticker.Stop()
	audited := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		if err := p.outlets.audit(ctx); err != nil {
			return err
		}
		if time.Since(audited) >= inputAuditEvery {
			audited = time.Now()
			if err := p.auditLog(ctx); err != nil {
				return err
			}
		}
	}
}

// watchServer waits until the embedded server must be started again.
func (p *Pipeline) watchServer(ctx context.Context) error {
	if p.Broker.Embedded == nil {
		return nil
	}
	select {
	case <-p.Broker.Embedded.Again():
		return errAgain
	case <-ctx.Done():
		return nil
	}
}

// watchFollowers waits until a follower cannot go on, whatever is tried.
func (p *Pipeline) watchFollowers(ctx context.Context) error {
	select {
	case err := <-p.followers.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
