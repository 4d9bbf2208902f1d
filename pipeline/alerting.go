package pipeline

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"gqlstream/alerts"
	"gqlstream/config"
	"gqlstream/sinks"
	"gqlstream/sinks/notify"
	"gqlstream/sinks/web"
)

const (
	alertsShownEvery = time.Second // how often the page and the Alertmanagers get what fires
	alertsShownShare = 20          // and making that takes at most one part in so many of the time
	alertsSeedMax    = 200         // transitions of earlier processes that the page gets
)

// alerting is what follows from the log out about alerts: the follower that evaluates the
// rules, and who is told. A reload replaces both. Any goroutine may use it.
type alerting struct {
	mu       sync.Mutex
	follower *sinks.Alerting
	targets  *notify.Targets
	fired    map[string]uint64 // transitions into firing since the process began, by rule
	told     uint64            // position of the newest transitions that the page has
}

// startAlerts begins to evaluate the alerts of settings and, unless another worker of the group
// does, to store and to deliver what begins and ends.
func (p *Pipeline) startAlerts(ctx context.Context, settings config.Settings, leads bool) error {
	rules, err := settings.AlertRules()
	if err != nil {
		return config.Usage(err)
	}
	conf, err := settings.NotifyTargets()
	if err != nil {
		return config.Usage(err)
	}
	if !leads {
		conf = notify.Config{}
	}
	targets, err := notify.Start(ctx, p.Broker.JS, p.names.Out.Alerts, conf, p.log)
	if err != nil {
		return err
	}
	follower, err := sinks.NewAlerting(ctx, sinks.AlertingConfig{
		JS: p.Broker.JS, Streams: p.streams(), Shards: p.outlets.shards, Log: p.logID, Rules: rules, Standby: !leads,
		Shelf: p.shelf(followerAlerts, alertingFile), Told: p.tellTransitions,
	})
	if err != nil {
		targets.Stop()
		return err
	}
	a := &p.alerting
	a.mu.Lock()
	former := a.targets
	a.follower, a.targets = follower, targets
	a.mu.Unlock()
	if former != nil {
		former.Stop()
	}
	if leads {
		if err := targets.RemoveOthers(ctx); err != nil { // the next start tries again
			p.log.Warn("alerts", "error", err)
		}
	}
	p.followers.start(ctx, sinks.FollowConfig{Name: followerAlerts, Open: follower.Open}, leads)
	return nil
}

// closeAlerts lets the targets finish.
func (p *Pipeline) closeAlerts() error {
	p.alerting.mu.Lock()
	defer p.alerting.mu.Unlock()
	if p.alerting.targets == nil {
		return nil
	}
	return p.alerting.targets.Close()
}

// tellTransitions tells the log, the page and the Alertmanagers what has begun or ended, each
// once. The follower of the alerts calls it, once what it tells is stored.
func (p *Pipeline) tellTransitions(position uint64, transitions []alerts.Transition) {
	a := &p.alerting
	a.mu.Lock()
	news := position > a.told
	a.told = max(a.told, position)
	for _, t := range transitions {
		if news && t.State == alerts.Firing {
			a.fired[t.Rule]++
		}
	}
	targets := a.targets
	a.mu.Unlock()
	if targets != nil && targets.NeedsActive() && p.source.Stats().Behind <= catchingUp {
		targets.Tell(transitions)
	}
	if !news {
		return // another worker was first, or this one before it took over
	}
	for _, t := range transitions {
		p.log.Info("alert", "rule", t.Rule, "community", t.Community, "class", t.Class, "state", t.State,
			"position", position, "reason", t.Reason)
	}
	p.Page.AddTransitions(transitions)
}

// showAlerts tells the page and the Alertmanagers all that fires, and returns how long it
// took. While the pipeline catches up with an old log no Alertmanager is told.
func (p *Pipeline) showAlerts() time.Duration {
	a := &p.alerting
	a.mu.Lock()
	follower, targets, fired := a.follower, a.targets, maps.Clone(a.fired)
	a.mu.Unlock()
	if follower == nil {
		return 0
	}
	begun := time.Now()
	active, rules, dropped := follower.Now()
	if targets.NeedsActive() && p.source.Stats().Behind <= catchingUp {
		targets.Set(active)
	}
	view := web.Alerts{Active: active, Rules: rules, Fired: fired, Dropped: dropped}
	for _, t := range targets.Stats() {
		view.Targets = append(view.Targets, web.Target{Name: t.Name, Outcomes: t.Outcomes, Queue: t.Depth, Error: t.Error})
	}
	p.Page.SetAlerts(view)
	return time.Since(begun)
}

// alertsLast returns the sequence of the newest alert that is stored.
func (p *Pipeline) alertsLast(ctx context.Context) (uint64, error) {
	stream, err := p.Broker.JS.Stream(ctx, p.names.Out.Alerts)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// seedAlerts gives the page the last transitions that are stored.
func (p *Pipeline) seedAlerts(ctx context.Context) error {
	stream, err := p.Broker.JS.Stream(ctx, p.names.Out.Alerts)
	if err != nil {
		return err
	}
	state := stream.CachedInfo().State
	var list []alerts.Transition
	for n := max(state.FirstSeq, state.LastSeq-min(state.LastSeq, alertsSeedMax)+1); n <= state.LastSeq && state.Msgs > 0; n++ {
		m, err := stream.GetMsg(ctx, n)
		if err != nil {
			break // trimmed meanwhile; the page does without
		}
		var t alerts.Transition
		if json.Unmarshal(m.Data, &t) == nil {
			list, p.alerting.told = append(list, t), max(p.alerting.told, t.Position)
		}
	}
	p.Page.AddTransitions(list)
	return nil
}
