package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// Limits of a follower's life.
const (
	followSyncEvery = time.Second
	// making output durable takes at most 1/followSyncShare of the time
	followSyncShare = 50
	// but this is waited at most: where the output log is full, the worker waits too
	followSyncWaitMax  = time.Minute
	followRetryWaitMin = 50 * time.Millisecond
	followRetryWaitMax = 5 * time.Second
	followLastSyncMax  = 5 * time.Second // after the end, to make the taken records durable
)

// ErrNotOurs is matched by the error of an Open that trying again cannot mend: the
// output belongs to something else, or the configuration is wrong.
var ErrNotOurs = errors.New("choose another place for the output, or move the old one away")

// Follower turns the output log into an output for people. After an error it is closed, reopened
// after its last durable position, and gets everything since: a full disk or an unreachable
// receiver loses nothing.
type Follower interface {
	// Take takes the next emission. It need not be durable yet.
	Take(ctx context.Context, e *Stored) error

	// Sync makes the output durable, together with the cursor. It returns the cursor up to which
	// the output is durable, which can be earlier: rows may wait for the end of their file.
	Sync(ctx context.Context, taken Cursor) (durable Cursor, err error)

	Close() error
}

// FollowConfig configures a Runner: which follower reads which output log.
type FollowConfig struct {
	Name   string // for people and metrics
	JS     jetstream.JetStream
	Reader ReaderConfig // After is not used

	// Open returns the follower and how far it is. An error that matches ErrNotOurs
	// is final; every other one is tried again.
	Open func(ctx context.Context) (Follower, Cursor, error)

	// End returns the sequence of the newest available message, for State; nil: the broker's last
	// answer.
	End func() uint64
}

// Runner opens a follower, feeds it, and opens it again after an error. Run has one caller; any
// goroutine may ask State, After and Taken.
type Runner struct {
	config  FollowConfig
	tracker request.Tracker

	mu      sync.Mutex
	durable Cursor
	taken   Cursor
	behind  uint64
}

// NewRunner returns a runner. Its follower is not open yet.
func NewRunner(c FollowConfig) *Runner {
	c.Reader.Report = cmp.Or(c.Reader.Report, slog.New(slog.DiscardHandler))
	return &Runner{config: c}
}

// Run opens the follower and feeds it until ctx ends, which is no error. An error is
// final, and matches ErrNotOurs.
func (r *Runner) Run(ctx context.Context) error {
	for wait := followRetryWaitMin; ctx.Err() == nil; {
		before := r.After()
		err := r.runOnce(ctx)
		if errors.Is(err, ErrNotOurs) {
			return fmt.Errorf("%s: %w", r.config.Name, err)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		r.tracker.Failed(err, false)
		if r.After() != before {
			wait = followRetryWaitMin
		}
		if request.Pause(ctx, wait) == nil {
			wait = min(2*wait, followRetryWaitMax)
		}
	}
	return nil
}

// runOnce opens the follower and feeds it until it fails or ctx ends.
func (r *Runner) runOnce(ctx context.Context) (err error) {
	f, after, err := r.config.Open(ctx)
	if err != nil {
		return err
	}
	r.setProgress(after, true, 0)
	config := r.config.Reader
	config.After = after
	reader := newLogReader(r.config.JS, config)
	defer func() {
		reader.Close()
		err = errors.Join(err, f.Close())
	}()
	if err := r.feed(ctx, reader, f, after); err != nil {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), followLastSyncMax)
	defer cancel()
	return r.sync(last, f, r.Taken())
}

// feed takes emissions until ctx ends, which is no error, and has them made durable when a while
// has passed, whether or not more come. A follower that fails, or is ended, while it takes one may
// have taken a part of it: its state must not be saved then, and it is opened again from the saved
// one.
func (r *Runner) feed(ctx context.Context, reader *logReader, f Follower, last Cursor) error {
	durable, syncAt := last, time.Time{}
	for {
		waiting, cancel := ctx, func() {}
		if last != durable { // which is to be made durable by then
			waiting, cancel = context.WithDeadline(ctx, syncAt)
		}
		e, err := reader.Next(waiting)
		cancel()
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			if err := f.Take(ctx, e); err != nil {
				return fmt.Errorf("position %d: %w", e.Position, err)
			}
			if last == durable && syncAt.Before(now.Add(followSyncEvery)) {
				syncAt = now.Add(followSyncEvery)
			}
			last = e.Cursor
			r.setProgress(last, false, e.Behind)
		}
		if begun := time.Now(); last != durable && !begun.Before(syncAt) {
			if err := r.sync(ctx, f, last); err != nil && ctx.Err() == nil {
				return err
			}
			// Some output becomes durable later than it is asked for. It is asked for again though
			// nothing comes: the worker may be waiting for it.
			durable, syncAt = r.After(), time.Now().Add(syncPause(time.Since(begun)))
		}
	}
}

// syncPause returns how long nothing is made durable after that took a while.
func syncPause(took time.Duration) time.Duration {
	return min(max(followSyncEvery, followSyncShare*took), followSyncWaitMax)
}

func (r *Runner) sync(ctx context.Context, f Follower, taken Cursor) error {
	if taken == r.After() {
		return nil
	}
	durable, err := f.Sync(ctx, taken)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.durable = durable
	r.mu.Unlock()
	r.tracker.Works()
	return nil
}

// setProgress remembers how far the follower is.
func (r *Runner) setProgress(c Cursor, durable bool, behind uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken, r.behind = c, behind
	if durable {
		r.durable = c
	}
}

// After returns the cursor of the follower's durable output.
func (r *Runner) After() Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.durable
}

// Taken returns the cursor of the newest emission that the follower took, durably or not.
func (r *Runner) Taken() Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}

// State returns the condition of the follower.
func (r *Runner) State() request.State {
	s := r.tracker.State(r.config.Name)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Follows = true
	s.Behind = r.behind
	s.Position = r.durable.Position
	if r.config.End != nil {
		s.Behind = max(r.config.End(), r.taken.Sequence) - r.taken.Sequence
	}
	return s
}

// Slowest returns the runner with the lowest durable position, and that position, for
// WriterConfig.Needed. A runner that has never been open needs everything. Of several with the same
// position it returns the one that has read least: the others have only not saved yet.
func Slowest(runners []*Runner) (name string, taken uint64) {
	var read uint64
	for _, r := range runners {
		at, now := r.After().Sequence, r.Taken().Sequence
		if name == "" || at < taken || at == taken && now < read {
			name = r.config.Name
			taken = at
			read = now
		}
	}
	return name, taken
}
