package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// deployment is the run's latest information about its streams. Any goroutine may use it.
type deployment struct {
	mu  sync.Mutex
	now web.Deployment
}

// deploymentLookEvery is how often the broker is asked about streams and newest events.
const deploymentLookEvery = 10 * time.Second

// lookAtStreams asks the broker for the contents of the streams, and the time of the newest event
// of each kind. It also works before the first step and after a restart.
func (p *Pipeline) lookAtStreams(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, deploymentLookEvery/2)
	defer cancel()
	now := web.Deployment{LastEvents: map[string]time.Time{}}
	for _, one := range p.ownStreams() {
		stream, err := p.Broker.JS.Stream(ctx, one[0])
		if err != nil {
			continue // reported elsewhere; the stream may not exist yet
		}
		has := stream.CachedInfo()
		now.Streams = append(now.Streams, web.Stream{
			Name: one[0], Holds: one[1], Messages: has.State.Msgs, Bytes: has.State.Bytes,
			BytesMax: has.Config.MaxBytes, Oldest: has.State.FirstTime,
		})
		if one[0] == p.names.In.Log {
			p.lastEvents(ctx, stream, now.LastEvents)
		}
	}
	p.observed.deployed.mu.Lock()
	defer p.observed.deployed.mu.Unlock()
	if len(now.Streams) > 0 { // otherwise the broker is away, and the last answer stays
		p.observed.deployed.now = now
	}
}

// ownStreams lists the streams that a run makes, and what each holds.
func (b *base) ownStreams() [][2]string {
	list := [][2]string{
		{b.names.In.Log, "log"},
		{b.names.In.Quarantine, "quarantine"},
		{b.names.Out.Estimates, "estimates"},
		{b.names.Out.Alerts, "alerts"},
	}
	for _, name := range b.names.Out.HistoryStreams() {
		list = append(list, [2]string{name, "history"})
	}
	list = append(list, [2]string{b.names.Out.LatestStream(), "latest"})
	if b.group != nil {
		for _, name := range b.group.member.Streams() {
			list = append(list, [2]string{name, "group"})
		}
	}
	return list
}

// lastEvents stores the time of the newest event of each kind, except control events, which come
// from the operator and the ticker.
func (p *Pipeline) lastEvents(ctx context.Context, log jetstream.Stream, at map[string]time.Time) {
	for kind := range event.Kind(event.Kinds) {
		if kind == event.KindControl {
			continue
		}
		m, err := log.GetLastMsgForSubject(ctx, broker.Subject(p.names.In.Log, kind))
		if err == nil {
			at[kind.String()] = m.Time
		}
	}
}

// observed has the observations of a run about its streams, for the page and the metrics. Any
// goroutine may use it.
type observed struct {
	digest     string // of the configuration
	outputLost uint64 // messages that the output log had lost at its end at the start
	group      *membership
	folds      *folds
	reload     *reloader
	audits     audits
	scrubbed   scrubbing
	refused    atomic.Pointer[web.Quarantine] // how full the quarantine is; nil until known
	deployed   deployment
}

// deployment returns the run's deployment.
func (o *observed) deployment() web.Deployment {
	o.deployed.mu.Lock()
	now := o.deployed.now
	o.deployed.mu.Unlock()
	now.Config, now.Lacks = o.digest, o.audits.missing()
	now.Scrub, now.OutputLost = o.scrubbed.result(), o.outputLost
	if o.reload != nil {
		now.ReloadOK, now.Reloaded = o.reload.outcome()
	}
	if o.group != nil {
		now.Silent = !o.group.leads("metrics")
		now.Group = o.group.status(len(o.folds.main.Load().outlets.shardsHere()))
	}
	return now
}

// silentWarned is how long no event may arrive before the page warns: producers may be dead.
const silentWarned = 15 * time.Minute

// silence describes how long no event has arrived, if that is long; else it is empty.
func (d *deployment) silence(now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	newest, kind := time.Time{}, ""
	for k, at := range d.now.LastEvents {
		if at.After(newest) || at.Equal(newest) && k < kind {
			newest, kind = at, k
		}
	}
	age := now.Sub(newest)
	if newest.IsZero() || age < silentWarned {
		return ""
	}
	return fmt.Sprintf("no event has come for %v, and the last was a %s: do the producers run?",
		age.Truncate(time.Minute), kind)
}

// status describes the group as seen by this worker, which estimates this number of shards.
func (m *membership) status(here int) *web.Group {
	served := make([]bool, m.shards)
	workers := m.member.Workers()
	for _, w := range workers {
		for _, shard := range w.Shards {
			if shard >= 0 && shard < len(served) {
				served[shard] = true
			}
		}
	}
	g := &web.Group{
		Worker: m.member.Name(), Workers: len(workers), Shards: m.shards, Here: here,
	}
	for _, s := range served {
		if !s {
			g.Unserved++
		}
	}
	return g
}
