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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// Run follows the log until it is drained, if so asked, or interrupted. read returns the settings:
// at the start, and again at every SIGHUP.
func Run(ctx context.Context, read func() (config.Settings, error), o Options) error {
	settings, err := read()
	if err != nil {
		return err
	}
	reload := &reloader{signals: make(chan os.Signal, 1), read: read, settings: settings}
	reload.say(true)
	signal.Notify(reload.signals, syscall.SIGHUP) // it would end the process otherwise
	defer signal.Stop(reload.signals)
	o.since = time.Now().UTC()
	if err = runAgain(ctx, settings, reload, o); errors.Is(err, errInterrupted) {
		return nil
	}
	return err
}

func runAgain(ctx context.Context, settings config.Settings, reload *reloader, o Options) error {
	o.reload = reload
	// whether the broker at this address has ever answered
	for answered := false; ; answered = true {
		var p *Pipeline
		known := answered &&
			settings.NATS.URL == reload.settings.NATS.URL // otherwise the address may be wrong
		err := OnceElected(ctx, o.Log, known, func() (err error) {
			p, err = Open(ctx, reload.settings, o)
			return err
		})
		if err != nil && !errors.Is(err, errInterrupted) && reload.fresh {
			o.Log.Error("the configuration is not reloaded; the run continues with the old one",
				"error", err)
			reload.settings, reload.fresh = settings, false
			reload.say(false)
			continue
		}
		if err != nil {
			return err
		}
		if reload.fresh {
			reload.say(true)
		}
		settings = reload.settings
		reload.fresh = false
		greet(o.Err, p)
		err = p.Run(ctx)
		if ctx.Err() == nil &&
			slices.ContainsFunc(startAgain,
				func(reason error) bool { return errors.Is(err, reason) }) {
			o.Skip, o.Accept = ingest.Range{}, false
			o.Log.Warn("starting again from the newest checkpoint", "reason", err)
			if err := p.Close(); err != nil {
				o.Log.Warn("before starting again", "error",
					err) // report the run that has ended, but nothing else
			}
			continue
		}
		if ctx.Err() != nil {
			err = nil // interrupted: everything up to the last step has been published
		}
		return errors.Join(err, p.Close())
	}
}

// how long a start waits for a cluster to elect leaders, from its first failure on
const electionWaitMax = time.Minute

var errInterrupted = errors.New("interrupted before the broker was ready")

// OnceElected calls try until it succeeds, while a cluster elects its leaders or a known broker is
// away.
func OnceElected(ctx context.Context, log *slog.Logger, known bool, try func() error) error {
	for failed := (time.Time{}); ; {
		err := try()
		failed = cmp.Or(failed, time.Now()) // try may have waited for long
		again := elects(err, known) && time.Since(failed) <= electionWaitMax &&
			request.Pause(ctx, 300*time.Millisecond) == nil
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

// elects reports whether a start failed because a cluster is electing: the error says so, or there
// is no answer, or the connection ended during a request. A stream that another worker is creating
// can appear both in use and not found. A broker with an address that is known to be right may also
// be away.
func elects(err error, known bool) bool {
	var api *jetstream.APIError
	var connecting net.Error
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.ErrorCode(nats.JSErrCodeJetStreamNotAvailable) ||
			api.ErrorCode == jetstream.JSErrCodeStreamNotFound) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || known &&
		(request.Passes(err) || errors.As(err, &connecting) || errors.Is(err, nats.ErrNoServers))
}

var startAgain = []error{errAgain, errReload, sinks.ErrLost} // reasons to restart from a checkpoint

// errAgain ends a run to restart its embedded server: after a failed write it accepts nothing any
// more, even when there is space again.
var errAgain = errors.New("the embedded server can write again")

// errDone ends a run that has no more work.
var errDone = errors.New("all messages are applied and published")

// Run runs the loop and its watching goroutines, until the log is drained, ctx ends, or a failure
// is final.
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
	watch(p.watchDamage)
	if p.settings.Log.Keep != "" {
		watch(p.watchRetention)
	}
	begin := func(f *fold) {
		var own context.Context
		own, f.stop = context.WithCancel(running)
		watch(func(context.Context) error { return p.runFold(own, f) })
	}
	begin(p.folds.main.Load())
	watch(p.watchHeld)
	if p.group != nil {
		watch(func(ctx context.Context) error {
			sinks.WatchMarks(ctx, p.Broker.JS, p.names.Out, p.logID, p.folds.processMark)
			return nil
		})
		watch(func(ctx context.Context) error { return p.watchGroup(ctx, begin) })
		watch(func(ctx context.Context) error {
			return repeat(ctx, assignEvery, func() error {
				if err := p.followers.assign(context.WithoutCancel(ctx)); err != nil {
					p.log.Warn("a follower cannot begin yet, and is tried again", "error", err)
				}
				return nil
			})
		})
	}
	if p.reload != nil {
		watch(func(ctx context.Context) error { return p.reload.watch(ctx, p) })
	}
	watch(p.watchStatus)
	<-running.Done()
	cause := context.Cause(running)
	cancel(nil)
	watches.Wait()
	if errors.Is(cause, errDone) {
		return nil
	}
	return cause
}

// watchHeld publishes held emissions that the first worker has not published, even while no step is
// taken.
func (p *Pipeline) watchHeld(ctx context.Context) error {
	return repeat(ctx, heldLookEvery, func() error {
		for _, f := range p.folds.opened() {
			for _, one := range f.outlets.live() {
				one.mu.Lock()
				err := one.storeOverdue(ctx)
				one.mu.Unlock()
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// How often to check whether the embedded server can write, to compare the output log with the
// acknowledgements, and to audit the settings of the streams.
const (
	storeLookEvery    = time.Second
	outputAuditEvery  = time.Second
	streamsAuditEvery = time.Minute
)

// watchOutput audits acknowledged records, even while nothing is published, and the streams.
func (p *Pipeline) watchOutput(ctx context.Context) error {
	var audited time.Time
	return repeat(ctx, outputAuditEvery, func() error {
		if err := p.folds.main.Load().outlets.audit(ctx); err != nil ||
			time.Since(audited) < p.observed.audits.every {
			return err
		}
		audited = time.Now()
		return p.auditStreams(ctx)
	})
}

// watchStore waits until the embedded server fails to write, and then until there is space again.
func (p *Pipeline) watchStore(ctx context.Context) error {
	return repeat(ctx, storeLookEvery, func() error {
		switch reason := p.Broker.Embedded.WriteError(); {
		case reason == "":
			return nil
		case p.conditions.full.Load() == nil:
			p.conditions.full.Store(
				&request.State{
					Name:      p.names.In.Log,
					Condition: request.Holding,
					Reason:    reason,
					Since:     time.Now(),
				},
			)
			p.log.Error("the embedded server cannot write: free disk space",
				"bytes", broker.RoomMin, "reason", reason)
		}
		if p.Broker.Embedded.CheckSpace() != nil {
			return nil
		}
		return errAgain
	})
}

// repeat calls do, with a pause after each call, until it fails or ctx ends (which is not a
// failure).
func repeat(ctx context.Context, pause time.Duration, do func() error) error {
	for {
		if err := do(); err != nil || request.Pause(ctx, pause) != nil {
			return err
		}
	}
}

// errReload ends a run that restarts with a new configuration.
var errReload = errors.New("the configuration has been read again")

// reloader reads the configuration again at a signal, whether or not events arrive.
type reloader struct {
	signals  chan os.Signal // capacity 1: a second pending signal adds nothing
	read     func() (config.Settings, error)
	settings config.Settings // the newest acceptable ones
	fresh    bool            // no run has started with them yet

	mu    sync.Mutex // guards the fields below
	ok    bool       // the last reload, or the start, was accepted
	taken time.Time  // when settings were last accepted
}

// say records whether settings were accepted.
func (r *reloader) say(ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ok = ok; ok {
		r.taken = time.Now()
	}
}

// outcome returns whether the last reload was accepted, and when one last was.
func (r *reloader) outcome() (ok bool, taken time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ok, r.taken
}

// watch ends the run at a signal. It ignores a configuration that is not valid or gives other
// results.
func (r *reloader) watch(ctx context.Context, p *Pipeline) error {
	for {
		select {
		case <-r.signals:
		case <-ctx.Done():
			return nil
		}
		settings, err := r.read()
		if err == nil {
			err = p.checkReload(&settings)
		}
		if err == nil {
			r.settings, r.fresh = settings, true
			return errReload
		}
		r.say(false)
		p.log.Error("the configuration is not reloaded; the run continues with the old one",
			"error", err)
	}
}

// checkReload returns the reason why settings cannot replace those in force.
func (p *Pipeline) checkReload(settings *config.Settings) error {
	core, err := settings.Core()
	_, err1 := settings.AlertRules()
	targets, err2 := settings.NotifyTargets()
	if err := errors.Join(err, err1, err2, settings.HTTP.Validate()); err != nil {
		return err
	}
	if err := errors.Join(settings.HTTP.ValidateFiles(), targets.ValidateFiles()); err != nil {
		return err // the present settings may name the same files
	}
	if core.Digest() != p.Config.Digest() || !slices.Equal(settings.Classes, p.settings.Classes) {
		return errors.New("it changes results, so the log must be read again: restart")
	}
	return nil
}

// greet prints the places and the names of a run that begins.
func greet(w io.Writer, p *Pipeline) {
	begins := "from the beginning of the log"
	if at := p.Position(); at > 0 {
		begins = fmt.Sprintf("from the checkpoint at position %d", at)
	}
	tracked := []string{}
	for _, rule := range p.Config.Communities {
		tracked = append(tracked, rule.Name)
	}
	fmt.Fprintf(w, "gqlstream %s\n", p.version)
	fmt.Fprintf(w, "  reads      stream %s at %s\n", p.names.In.Log, p.Broker.Where)
	fmt.Fprintf(w, "  state      %s, %s\n", p.settings.State, begins)
	fmt.Fprintf(w, "  classes    %s\n", strings.Join(p.settings.Classes, ", "))
	fmt.Fprintf(w, "  tracks     %s\n",
		strings.Join(append(tracked, "communities named in member events"), ", "))
	fmt.Fprintf(w, "  publishes  stream %s, bucket %s%s\n",
		p.names.Out.Estimates, p.names.Out.Latest, p.settings.Output.AlsoTo())
	if url := p.Page.URL(); url != "" {
		fmt.Fprintf(w, "  page       %s\n", url)
	}
	fmt.Fprintf(w, "  refuses to stream %s, which gqlstream quarantine list reads\n",
		p.names.In.Quarantine)
}
