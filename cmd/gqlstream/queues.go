package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"gqlstream/ingest"
	"gqlstream/sinks"
)

// queued is a sink that is not on the broker of the log and so has a queue on the
// disk before it. The name is that of its directory, its metrics and its place in
// the manifest of a checkpoint.
type queued struct {
	name string
	open func(from uint64) (sinks.Sink, error)
}

// fileQueue is the name of the file of estimates.
const fileQueue = "file"

// replaceWaitMax bounds how long a file that is replaced is waited for.
const replaceWaitMax = 2 * time.Second

// queuedSinks returns the file of estimates, if it is one.
func (p *pipeline) queuedSinks(file string) (list []queued) {
	if file != "" && file != "-" {
		list = append(list, queued{fileQueue, func(from uint64) (sinks.Sink, error) {
			return sinks.OpenLines(sinks.LinesConfig{Path: file, Log: p.logID, From: from})
		}})
	}
	return list
}

// openQueues opens the queues before the core is restored, since how far they are
// decides from which checkpoint. Nothing is delivered before startQueues.
func (p *pipeline) openQueues(ctx context.Context, more []queued) (err error) {
	if p.logID, err = logIdentity(ctx, p.broker.js); err != nil {
		return err
	}
	p.closers = append(p.closers, p.closeQueues)
	for _, sink := range append(p.queuedSinks(p.settings.Output.File), more...) {
		q, err := p.openQueue(sink)
		if err != nil {
			return err
		}
		p.queues = append(p.queues, q)
	}
	return nil
}

func (p *pipeline) openQueue(sink queued) (*sinks.Queue, error) {
	return sinks.OpenQueue(sinks.QueueConfig{
		Name: sink.name, Dir: filepath.Join(p.settings.State, "queues", sink.name), Log: p.logID,
		BytesMax: int64(p.settings.Output.QueueBytesMax), Open: sink.open,
	})
}

func (p *pipeline) closeQueues() (err error) {
	for _, q := range p.queues {
		err = errors.Join(err, q.Close())
	}
	p.queues = nil
	return err
}

// replaceFile puts another file of estimates, or none, in the place of the one
// that is. What that cannot take in a moment goes to the new one, which must be
// possible to open.
func (p *pipeline) replaceFile(ctx context.Context, file string) error {
	list := p.queuedSinks(file)
	for _, sink := range list {
		probe, err := sink.open(uint64(p.core.Position()))
		if err != nil {
			return err
		}
		if err := probe.Close(); err != nil {
			return err
		}
	}
	is := func(q *sinks.Queue) bool { return q.State().Name == fileQueue }
	if i := slices.IndexFunc(p.queues, is); i >= 0 {
		old := p.queues[i]
		given, cancel := context.WithTimeout(ctx, replaceWaitMax)
		_ = old.Flush(given)
		cancel()
		p.queues = slices.Delete(p.queues, i, i+1)
		p.sinks = slices.DeleteFunc(p.sinks, func(s sinks.Sink) bool { return s == sinks.Sink(old) })
		if err := old.Close(); err != nil {
			return err
		}
	}
	for _, sink := range list {
		q, err := p.openQueue(sink)
		if err == nil {
			p.queues = append(p.queues, q)
			err = q.Start(uint64(p.core.Position()))
		}
		if err != nil {
			return err
		}
		p.sinks = append(p.sinks, q)
	}
	p.watch()
	return nil
}

// startQueues begins to deliver, a new queue after where the core stands.
func (p *pipeline) startQueues() error {
	for _, q := range p.queues {
		if err := q.Start(uint64(p.core.Position())); err != nil {
			return err
		}
		p.sinks = append(p.sinks, q)
	}
	return nil
}

// syncQueues puts the queues on the disk, for a checkpoint that is newer.
func (p *pipeline) syncQueues() (err error) {
	for _, q := range p.queues {
		err = errors.Join(err, q.Sync())
	}
	return err
}

// flushQueues waits until every sink has everything, at the end of a run that
// ends by itself.
func (p *pipeline) flushQueues(ctx context.Context) error {
	for _, q := range p.queues {
		if err := q.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stateful is a sink that says how it does.
type stateful interface{ State() sinks.State }

// watch notes which sinks say how they do.
func (p *pipeline) watch() {
	var list []stateful
	for _, sink := range p.sinks {
		if s, ok := sink.(stateful); ok {
			list = append(list, s)
		}
	}
	p.watched.Store(&list)
}

// sinkStates returns how the sinks do. Any goroutine may call it once the sinks
// are open.
func (p *pipeline) sinkStates() (states []sinks.State) {
	if list := p.watched.Load(); list != nil {
		for _, sink := range *list {
			states = append(states, sink.State())
		}
	}
	names := ingest.DefaultStreamNames()
	states = append(states, stateOfStream(names.Quarantine, p.quarantine.Waiting()))
	if ticker := p.ticker.Load(); ticker != nil {
		states = append(states, stateOfStream(names.Log, ticker.Waiting()))
	}
	return states
}

// stateOfStream tells of a stream as of a sink: of the quarantine, and of the log,
// which the loop waits for while the broker takes no ticks.
func stateOfStream(name string, waiting ingest.Waiting) sinks.State {
	s := sinks.State{Name: name, Condition: sinks.Delivering, Retries: waiting.Retries}
	if waiting.Reason != "" {
		s.Condition, s.Reason, s.Since = sinks.Holding, waiting.Reason, waiting.Since
	}
	return s
}

// sinkWatchEvery is how often the watch looks.
const sinkWatchEvery = time.Second

// watchSinks logs when a sink begins and ceases to be in trouble, until close.
func (p *pipeline) watchSinks() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(sinkWatchEvery)
		defer ticker.Stop()
		before := map[string]sinks.State{}
		for {
			select {
			case <-ticker.C:
				p.logSinks(before)
			case <-stop:
				return
			}
		}
	}()
	p.closers = append(p.closers, func() error {
		close(stop)
		<-done
		return nil
	})
}

// logSinks logs what has changed since before, and brings that up to date.
func (p *pipeline) logSinks(before map[string]sinks.State) {
	for _, s := range p.sinkStates() {
		was := before[s.Name]
		before[s.Name] = s
		switch {
		case s.Condition == was.Condition || was.Condition == "" && s.Condition == sinks.Delivering:
		case s.Condition == sinks.Delivering:
			p.log.Info("a sink delivers again", "sink", s.Name, "waiting", s.Emissions,
				"after", time.Since(was.Since).Round(time.Second))
		default:
			what := "a sink fails and is tried again; estimates wait in its queue"
			if s.Condition == sinks.Holding {
				what = "waiting for a sink"
			}
			p.log.Warn(what, "sink", s.Name, "reason", s.Reason, "waiting", s.Emissions)
		}
	}
}
