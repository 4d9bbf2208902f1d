package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gqlstream/internal/request"
	"gqlstream/sinks"
)

// followers holds all followers of the output log in this process. Each has a goroutine and a
// position of its own. Any goroutine may use them.
type followers struct {
	output sinks.FollowConfig
	group  *membership
	log    *slog.Logger
	failed chan error // first final error of a follower; capacity 1

	mu    sync.Mutex // guards the tasks and their runners
	tasks []*task
}

// newFollowers returns the followers of a run, which has none yet.
func newFollowers(b *base, reader sinks.ReaderConfig, folds *folds) *followers {
	return &followers{
		output: sinks.FollowConfig{
			JS: b.Broker.JS, Reader: reader,
			End: func() uint64 { return folds.main.Load().outlets.sequence() },
		},
		group:  b.group,
		log:    b.log,
		failed: make(chan error, 1),
	}
}

// assignTasks starts those of the tasks that belong to this worker.
func (f *followers) assignTasks(ctx context.Context, tasks []*task) error {
	f.mu.Lock()
	f.tasks = tasks
	f.mu.Unlock()
	return f.assign(ctx)
}

// task is the work of one follower. Every worker does it, or one worker of a group at a time.
type task struct {
	sinks.FollowConfig
	single bool // one worker of a group at a time
	// the other workers follow too, but store nothing
	standsBy bool
	// ready is called before the task begins; nil: nothing to do
	ready func(ctx context.Context, leads bool) error

	begun bool
	// this worker does the work: the output log must keep the records that it has not taken
	leads  bool
	runner *sinks.Runner // nil: another worker has the task
	stop   context.CancelFunc
	done   chan struct{}
}

// assign starts the tasks that now belong to this worker, and ends the others. A worker that takes
// a task over continues after the last durable position. It has one caller at a time.
func (f *followers) assign(ctx context.Context) error {
	for _, t := range f.tasks {
		leads := !t.single || f.group.leads(t.Name)
		if t.begun && leads == t.leads {
			continue
		}
		if t.begun = false; t.single && f.group != nil {
			f.log.Info("a follower is assigned", "follower", t.Name, "here", leads)
		}
		f.end(t)
		if t.ready != nil {
			if err := t.ready(ctx, leads); err != nil {
				return err
			}
		}
		if t.begun, t.leads = true, leads; leads || t.standsBy {
			f.start(ctx, t)
		}
	}
	return nil
}

func (f *followers) start(ctx context.Context, t *task) {
	c := t.FollowConfig
	c.JS, c.Reader = f.output.JS, f.output.Reader
	if c.Reader.Alerts = t.Reader.Alerts; !c.Reader.Alerts {
		c.End = f.output.End
	}
	runner, done := sinks.NewRunner(c), make(chan struct{})
	ctx, t.stop = context.WithCancel(ctx)
	f.mu.Lock()
	t.runner, t.done = runner, done
	f.mu.Unlock()
	go func() {
		defer close(done)
		if err := runner.Run(ctx); err != nil {
			select {
			case f.failed <- err:
			default:
			}
		}
	}()
}

// end stops a task and waits for it.
func (f *followers) end(t *task) {
	f.mu.Lock()
	running := t.runner != nil
	t.runner = nil
	f.mu.Unlock()
	if running {
		t.stop()
		<-t.done
	}
}

// close ends all tasks in parallel.
func (f *followers) close() error {
	var all sync.WaitGroup
	for _, t := range f.tasks {
		all.Go(func() { f.end(t) })
	}
	all.Wait()
	return nil
}

func (f *followers) watch(ctx context.Context) error {
	select {
	case err := <-f.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// running lists the runners of the tasks that satisfy a condition.
func (f *followers) running(holds func(*task) bool) (list []*sinks.Runner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tasks {
		if t.runner != nil && holds(t) {
			list = append(list, t.runner)
		}
	}
	return list
}

// needs reports whether the broker must keep records that the task has not taken.
func (t *task) needs() bool { return t.leads && !t.Reader.Alerts }

// slowest returns the follower that is furthest behind in the output log, and the sequence that it
// has stored.
func (f *followers) slowest() (name string, taken uint64) {
	return sinks.Slowest(f.running((*task).needs))
}

// slowestOfGroup returns the follower of any worker of the group that is furthest behind in the
// output log, and the sequence that it has stored.
func (f *followers) slowestOfGroup() (name string, taken uint64) {
	name, taken = f.slowest()
	if f.group == nil {
		return name, taken
	}
	if other, at := f.group.member.Slowest(); other != "" && (name == "" || at < taken) {
		return other, at
	}
	return name, taken
}

func (f *followers) states() (states []request.State) {
	for _, one := range f.running(func(*task) bool { return true }) {
		states = append(states, one.State())
	}
	return states
}

const catchUpLookEvery = 20 * time.Millisecond

// catchUp waits until every follower has taken the records up to a position, and those of alerts
// have also taken the resulting alerts.
func (f *followers) catchUp(
	ctx context.Context, position uint64, newestAlert func() sinks.Place,
) error {
	lags := func(reads func(*task) bool, to sinks.Place) bool {
		return slices.ContainsFunc(f.running(reads),
			func(one *sinks.Runner) bool { return one.Taken().Compare(to) < 0 })
	}
	for lags((*task).needs, sinks.Place{Position: position}) ||
		lags(func(t *task) bool { return t.Reader.Alerts }, newestAlert()) {
		select {
		case err := <-f.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(catchUpLookEvery):
		}
	}
	return nil
}

// listTasks lists the followers of this worker, or of another one of its group.
func (p *Pipeline) listTasks(o *Options) (tasks []*task) {
	out, from := p.settings.Output, p.folds.main.Load().outputEnd
	add := func(t task) { tasks = append(tasks, &t) }
	file := func(name string, reader sinks.ReaderConfig, open openFollower) {
		if o.Drain {
			open = once(open)
		}
		add(task{
			single:       true,
			FollowConfig: sinks.FollowConfig{Name: name, Open: open, Reader: reader},
		})
	}
	add(p.pageTask(from))
	add(task{FollowConfig: sinks.FollowConfig{
		Name:   "alerts page",
		Open:   takeBehind(p.alerting.begin, p.alerting.report),
		Reader: sinks.ReaderConfig{Alerts: true},
	}})
	add(task{
		single:       true,
		standsBy:     true,
		ready:        p.alerting.start,
		FollowConfig: sinks.FollowConfig{Name: "alerts", Open: p.alerting.follower.Open},
	})
	add(task{
		single:       true,
		standsBy:     true,
		FollowConfig: sinks.FollowConfig{Name: "history", Open: p.rollups.Open},
		ready: func(_ context.Context, leads bool) error {
			p.rollups.SetStandby(!leads)
			return nil
		},
	})
	if out.File == "-" {
		add(task{FollowConfig: sinks.FollowConfig{
			Name: "stdout",
			Open: takeBehind(from, printer(o.Out)),
		}})
	} else if out.File != "" {
		file("file", sinks.ReaderConfig{}, p.linesOf(out.File))
	}
	if out.Alerts != "" {
		file("alerts file", sinks.ReaderConfig{Alerts: true}, p.linesOf(out.Alerts))
	}
	if out.Parquet != "" {
		file("parquet", sinks.ReaderConfig{},
			func(context.Context) (sinks.Follower, sinks.Cursor, error) {
				return sinks.OpenPartsDir(sinks.PartsDirConfig{
					Dir:         out.Parquet,
					Every:       out.Every,
					Log:         p.logID,
					StreamBytes: int64(out.StreamBytesMax),
				})
			})
	}
	for name, take := range o.Follow {
		add(task{FollowConfig: sinks.FollowConfig{Name: name, Open: takeBehind(from, take)}})
	}
	return tasks
}

type openFollower = func(context.Context) (sinks.Follower, sinks.Cursor, error)

// once makes an error of open final: a run that ends by itself does not wait until somebody has
// repaired an output.
func once(open openFollower) openFollower {
	return func(ctx context.Context) (sinks.Follower, sinks.Cursor, error) {
		f, at, err := open(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, sinks.ErrNotOurs) {
			err = fmt.Errorf("%w: %w", err, sinks.ErrNotOurs)
		}
		return f, at, err
	}
}

func (p *Pipeline) linesOf(path string) openFollower {
	return func(context.Context) (sinks.Follower, sinks.Cursor, error) {
		return sinks.OpenLinesFile(path, p.logID)
	}
}

// TakeFunc is a follower without stored state: it gets everything published from now on.
type TakeFunc func(context.Context, *sinks.Stored) error

// memoryless is a TakeFunc as a sinks.Follower. One runner at a time uses it.
type memoryless struct {
	take TakeFunc
	at   sinks.Cursor // where to continue after a failure
}

func (m *memoryless) Take(ctx context.Context, e *sinks.Stored) error {
	err := m.take(ctx, e)
	if err == nil {
		m.at = e.Cursor
	}
	return err
}

func (m *memoryless) Sync(_ context.Context, taken sinks.Cursor) (sinks.Cursor, error) {
	return taken, nil
}

func (m *memoryless) Close() error { return nil }

// takeBehind opens a follower without stored state that begins after a cursor, and continues after
// failures while the process lives.
func takeBehind(at sinks.Cursor, take TakeFunc) openFollower {
	m := &memoryless{take, at}
	return func(context.Context) (sinks.Follower, sinks.Cursor, error) { return m, m.at, nil }
}

func printer(w io.Writer) TakeFunc {
	return func(_ context.Context, e *sinks.Stored) error {
		lines, err := e.Lines()
		if err != nil {
			return err
		}
		for _, record := range lines {
			if _, err := fmt.Fprintf(w, "%s\n", record); err != nil {
				return fmt.Errorf("standard output: %w: %w", err, sinks.ErrNotOurs)
			}
		}
		return nil
	}
}
