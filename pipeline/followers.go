package pipeline

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gqlstream/config"
	"gqlstream/sinks"
)

// Files of the state directory that keep what the alerts and the roll-ups of a run alone have
// come to, and up to where in the log out that is.
const (
	alertingFile = "alerting.json"
	historyFile  = "history.json"
)

// Names of followers, for people and metrics.
const (
	followerAlerts     = "alerts"
	followerAlertsFile = "alerts file"
	followerFile       = "file"
	followerHistory    = "history"
	followerPage       = "page"
	followerParts      = "parquet"
	followerStdout     = "stdout"
)

// followers are all who follow the log out in this process, each in a goroutine of its
// own and with a position of its own. Any goroutine may use them.
type followers struct {
	base   sinks.FollowConfig // the log out
	failed chan error         // the first final error of one; capacity 1

	mu      sync.Mutex
	running []*following
}

type following struct {
	name   string
	runner *sinks.Runner
	needs  bool // the log out must keep what it has not taken
	stop   context.CancelFunc
	done   chan struct{}
}

type openFollower = func(context.Context) (sinks.Follower, sinks.Cursor, error)

func (f *followers) start(ctx context.Context, c sinks.FollowConfig, needs bool) {
	alerts := c.Reader.Alerts
	c.JS, c.Reader = f.base.JS, f.base.Reader
	if c.Reader.Alerts = alerts; !alerts {
		c.End = f.base.End
	}
	ctx, cancel := context.WithCancel(ctx)
	one := &following{
		name: c.Name, runner: sinks.NewRunner(c), needs: needs && !alerts, stop: cancel, done: make(chan struct{}),
	}
	f.mu.Lock()
	f.running = append(f.running, one)
	f.mu.Unlock()
	go func() {
		defer close(one.done)
		if err := one.runner.Run(ctx); err != nil {
			select {
			case f.failed <- err:
			default:
			}
		}
	}()
}

// end stops the followers of a name, or all where it is empty, and waits for them.
func (f *followers) end(name string) {
	f.mu.Lock()
	var ended []*following
	f.running = slices.DeleteFunc(f.running, func(one *following) bool {
		if name != "" && one.name != name {
			return false
		}
		ended = append(ended, one)
		return true
	})
	f.mu.Unlock()
	for _, one := range ended {
		one.stop()
	}
	for _, one := range ended {
		<-one.done
	}
}

func (f *followers) watch(ctx context.Context) error {
	select {
	case err := <-f.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (f *followers) list() []*following {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.running)
}

// slowest returns the follower that has durably taken least of the log out. Records that it has
// not taken must not be discarded.
func (f *followers) slowest() (name string, taken uint64) {
	var runners []*sinks.Runner
	for _, one := range f.list() {
		if one.needs {
			runners = append(runners, one.runner)
		}
	}
	return sinks.Slowest(runners)
}

func (f *followers) states() (states []sinks.State) {
	for _, one := range f.list() {
		states = append(states, one.runner.State())
	}
	return states
}

const catchUpLookEvery = 20 * time.Millisecond

// catchUp waits until every follower has taken what is published up to a position. Who
// follows the alerts has taken all of them a moment after the alerts are evaluated.
func (f *followers) catchUp(ctx context.Context, position uint64, alertsLast func(context.Context) (uint64, error)) error {
	err := f.await(ctx, func(one *following) bool { return !one.needs || one.runner.Taken().Position >= position })
	if err != nil {
		return err
	}
	last, err := alertsLast(ctx)
	if err != nil {
		return err
	}
	return f.await(ctx, func(one *following) bool {
		return one.name != followerAlertsFile || one.runner.Taken().Sequence >= last
	})
}

// await waits until something holds of every follower.
func (f *followers) await(ctx context.Context, holds func(*following) bool) error {
	for slices.ContainsFunc(f.list(), func(one *following) bool { return !holds(one) }) {
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

// single is a follower whose work one worker of a group does at a time.
type single struct {
	name  string
	start func(ctx context.Context, leads bool) error // begins it, as the one who works or standing by
	begun bool
	leads bool
}

// startFollowers begins to feed the outputs that every worker has, and lists the others.
func (p *Pipeline) startFollowers(ctx context.Context, o Options) {
	out := p.settings.Output
	alone := func(c sinks.FollowConfig) {
		p.singles = append(p.singles, single{name: c.Name, start: func(ctx context.Context, leads bool) error {
			if leads {
				p.followers.start(ctx, c, true)
			}
			return nil
		}})
	}
	p.singles = []single{
		{name: followerAlerts, start: func(ctx context.Context, leads bool) error { return p.alerting.start(ctx, p.settings, leads) }},
		{name: followerHistory, start: func(ctx context.Context, leads bool) error {
			p.rollups.StandBy(!leads)
			p.followers.start(ctx, sinks.FollowConfig{Name: followerHistory, Open: p.rollups.Open}, leads)
			return nil
		}},
	}
	if out.File == "-" {
		p.followers.start(ctx, sinks.FollowConfig{Name: followerStdout, Open: p.fromNow(printer(o.Out))}, true)
	} else if out.File != "" {
		alone(sinks.FollowConfig{Name: followerFile, Open: p.linesOf(out.File)})
	}
	if out.Alerts != "" {
		alone(sinks.FollowConfig{Name: followerAlertsFile, Open: p.linesOf(out.Alerts), Reader: sinks.ReaderConfig{Alerts: true}})
	}
	if out.Parquet != "" {
		alone(sinks.FollowConfig{Name: followerParts, Open: p.partsOf(out)})
	}
	for name, take := range o.Follow {
		p.followers.start(ctx, sinks.FollowConfig{Name: name, Open: p.fromNow(take)}, true)
	}
}

// assignFollowers begins what this worker is to do for the group now, and ends what another one
// is to do. Who takes a follower over goes on behind what is durable.
func (p *Pipeline) assignFollowers(ctx context.Context) error {
	p.assigning.Lock()
	defer p.assigning.Unlock()
	for i := range p.singles {
		one := &p.singles[i]
		leads := p.group.leads(one.name)
		if one.begun && leads == one.leads {
			continue
		}
		if one.begun = false; p.group != nil {
			p.log.Info("a follower is assigned", "follower", one.name, "here", leads)
		}
		p.followers.end(one.name)
		if err := one.start(ctx, leads); err != nil {
			return err
		}
		one.begun, one.leads = true, leads
	}
	return nil
}

func (p *Pipeline) shelf(follower, file string) sinks.Shelf {
	if p.group != nil {
		return p.group.store.Shelf(follower)
	}
	return sinks.FileShelf(filepath.Join(p.settings.State, file))
}

func (p *Pipeline) linesOf(path string) openFollower {
	return func(context.Context) (sinks.Follower, sinks.Cursor, error) {
		return sinks.OpenLinesFile(path, p.logID)
	}
}

func (p *Pipeline) partsOf(out config.Output) openFollower {
	return func(context.Context) (sinks.Follower, sinks.Cursor, error) {
		return sinks.OpenPartsDir(sinks.PartsDirConfig{
			Dir: out.Parquet, Every: out.Every, Log: p.logID, StreamBytes: int64(out.StreamBytesMax),
		})
	}
}

// Take is a follower without memory: it gets everything published from now on.
type Take func(context.Context, *sinks.Stored) error

// memoryless is a Take as a sinks.Follower. One runner at a time has it.
type memoryless struct {
	take Take
	at   sinks.Cursor // behind which it goes on after a failure
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

// fromNow returns the open of a follower without a memory, which begins behind what was
// published when the pipeline was opened.
func (p *Pipeline) fromNow(take Take) openFollower {
	m := &memoryless{take, p.beginAt}
	return func(context.Context) (sinks.Follower, sinks.Cursor, error) { return m, m.at, nil }
}

func printer(w io.Writer) Take {
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
