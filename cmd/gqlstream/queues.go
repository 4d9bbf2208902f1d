package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"gqlstream/alerts"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// queued is a sink that is not on the broker of the log and so has a queue on the
// disk before it. The name is that of its directory, its metrics and its place in
// the manifest of a checkpoint.
type queued struct {
	name  string
	place string // what it writes to, and how; empty: not of the settings
	open  func(from uint64) (sinks.Sink, error)
}

// alertsQueue is the name of the file of alerts.
const alertsQueue = "alerts"

// placed is a queue in use.
type placed struct {
	queued
	*sinks.Queue
}

// queuedSinks returns the sinks with a queue that the settings name.
func (p *pipeline) queuedSinks(o outputConfig) (list []queued) {
	for _, file := range []struct{ name, path string }{{"file", o.File}, {alertsQueue, o.Alerts}} {
		if file.path != "" && file.path != "-" {
			list = append(list, queued{file.name, file.path, func(from uint64) (sinks.Sink, error) {
				return sinks.OpenLines(sinks.LinesConfig{Path: file.path, Log: p.logID, From: from})
			}})
		}
	}
	for _, parts := range []struct{ format, dir string }{{"parquet", o.Parquet}, {"arrow", o.Arrow}} {
		if parts.dir != "" {
			place := fmt.Sprint(parts.dir, " every ", o.Every)
			list = append(list, queued{parts.format, place, func(from uint64) (sinks.Sink, error) {
				return sinks.OpenParts(sinks.PartsConfig{
					Dir: parts.dir, Format: parts.format, Every: o.Every, Log: p.logID, From: from,
				})
			}})
		}
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
	for _, sink := range append(p.queuedSinks(p.settings.Output), more...) {
		q, err := p.openQueue(sink)
		if err != nil {
			return err
		}
		p.queues = append(p.queues, placed{sink, q})
	}
	return nil
}

func (p *pipeline) openQueue(sink queued) (*sinks.Queue, error) {
	q, err := sinks.OpenQueue(sinks.QueueConfig{
		Name: sink.name, Dir: filepath.Join(p.settings.State, "queues", sink.name), Log: p.logID,
		BytesMax: int64(p.settings.Output.QueueBytesMax), Open: sink.open,
	})
	if err != nil {
		return nil, err
	}
	if damaged := q.SetAside(); len(damaged) > 0 {
		p.log.Warn("damaged files of a queue were set aside; what they held comes again from an older checkpoint",
			"sink", sink.name, "files", strings.Join(damaged, ", "))
	}
	return q, nil
}

func (p *pipeline) closeQueues() (err error) {
	for _, q := range p.queues {
		err = errors.Join(err, q.Close())
	}
	p.queues = nil
	return err
}

// through returns up to where nothing is to be published any more once a step is: the
// next one, which may have no events, can emit at the position of one that has not.
func through(last event.Position, emitted bool) uint64 {
	if emitted || last == 0 {
		return uint64(last)
	}
	return uint64(last) - 1
}

// startQueues begins to deliver, a new queue after where the core stands.
func (p *pipeline) startQueues() error {
	for _, q := range p.queues {
		if err := q.Start(p.through); err != nil {
			return err
		}
	}
	return nil
}

// enqueue puts what a step has into the queues: estimates or, into that of the
// alerts, transitions.
func (p *pipeline) enqueue(ctx context.Context, b *event.Batch, estimates []quant.Estimate, transitions []alerts.Transition) error {
	for _, q := range p.queues {
		e := sinks.Emission{Position: uint64(b.Last), Cut: b.Checkpoint}
		if q.name == alertsQueue {
			e.Transitions = transitions
		} else {
			e.Estimates = estimates
		}
		if err := q.Put(ctx, e); err != nil {
			return fmt.Errorf("position %d: %w", b.Last, err)
		}
	}
	p.through = through(b.Last, b.Emit)
	return nil
}

// syncQueues puts the queues on the disk, for a checkpoint after the step just taken.
func (p *pipeline) syncQueues() (err error) {
	for _, q := range p.queues {
		err = errors.Join(err, q.Sync(p.through))
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
	for _, q := range p.queues {
		list = append(list, q)
	}
	list = append(list, p.alerts.stream)
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
	return append(states, stateOfStream(names.Log, p.logWaiting()))
}

// logWaiting says why the log takes nothing, if that is known.
func (p *pipeline) logWaiting() (w ingest.Waiting) {
	if ticker := p.ticker.Load(); ticker != nil {
		w = ticker.Waiting()
	}
	if p.broker.embedded != nil {
		if own := p.broker.embedded.Waiting(); own.Reason != "" { // the ticker cannot know as much
			w.Reason, w.Since = own.Reason, own.Since
		}
	}
	return w
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
