package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"gqlstream/sinks"
)

// replaceWaitMax bounds how long a sink that is replaced may take what waits.
const replaceWaitMax = 2 * time.Second

// addQueues puts the sinks of other settings in force that are new or write to
// another place. undo puts those that were back in force; after an error that is
// done. Whatever fails, every sink goes on, and what waits in its queue stays there.
func (p *pipeline) addQueues(ctx context.Context, output outputConfig) (undo func(), err error) {
	var undos []func()
	undo = func() {
		for _, one := range slices.Backward(undos) {
			one()
		}
	}
	for _, sink := range p.queuedSinks(output) {
		one, err := p.place(ctx, sink)
		if err != nil {
			undo()
			return nil, err
		}
		undos = append(undos, one)
	}
	return undo, nil
}

// place puts a sink in force, if it is not.
func (p *pipeline) place(ctx context.Context, sink queued) (undo func(), err error) {
	i := slices.IndexFunc(p.queues, func(q placed) bool { return q.name == sink.name })
	switch {
	case i < 0:
		err := p.startQueue(sink)
		return func() { p.remove(ctx, sink.name) }, err
	case p.queues[i].place == sink.place:
		return func() {}, nil
	}
	before := p.queues[i].queued
	err = p.exchange(ctx, i, sink)
	return func() {
		if err := p.exchange(ctx, i, before); err != nil {
			p.log.Error("a sink cannot be put back, and waits for a restart", "sink", before.name, "error", err)
		}
	}, err
}

// exchange lets another sink take what comes after what the one before it can take in
// a moment.
func (p *pipeline) exchange(ctx context.Context, i int, sink queued) error {
	p.flushFor(ctx, p.queues[i].Queue)
	if err := p.queues[i].Replace(ctx, sink.open); err != nil {
		return err
	}
	p.queues[i].queued = sink
	return nil
}

// startQueue begins a queue that there was not.
func (p *pipeline) startQueue(sink queued) error {
	q, err := p.openQueue(sink)
	if err != nil {
		return err
	}
	if err := q.Start(p.through); err != nil {
		return errors.Join(err, q.Close())
	}
	p.queues = append(p.queues, placed{sink, q})
	return nil
}

// dropQueues ends those that settings do not name any more.
func (p *pipeline) dropQueues(ctx context.Context, output outputConfig) {
	named := p.queuedSinks(output)
	for _, q := range slices.Clone(p.queues) {
		if q.place != "" && !slices.ContainsFunc(named, func(s queued) bool { return s.name == q.name }) {
			p.remove(ctx, q.name)
		}
	}
}

// remove ends a queue. What its sink cannot take in a moment stays on the disk.
func (p *pipeline) remove(ctx context.Context, name string) {
	i := slices.IndexFunc(p.queues, func(q placed) bool { return q.name == name })
	q := p.queues[i]
	p.flushFor(ctx, q.Queue)
	left := q.State().Emissions
	p.queues = slices.Delete(p.queues, i, i+1)
	if err := q.Close(); err != nil || left > 0 {
		p.log.Warn("a sink is left with what waits in its queue", "sink", name, "waiting", left, "error", err)
	}
}

// flushFor gives a sink a moment to take what waits.
func (p *pipeline) flushFor(ctx context.Context, q *sinks.Queue) {
	given, cancel := context.WithTimeout(ctx, replaceWaitMax)
	defer cancel()
	_ = q.Flush(given)
}
