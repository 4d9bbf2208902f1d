package pipeline

import (
	"context"
	"encoding/json"
	"log/slog"
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

// alerting holds the follower that evaluates the rules of alerts, and the targets that are told
// of them. A reload replaces both. Any goroutine may use it.
type alerting struct {
	config    sinks.AlertingConfig // but for the rules
	followers *followers
	page      *web.Server
	caughtUp  func() bool // the log in is read; before, no Alertmanager is told
	log       *slog.Logger

	mu       sync.Mutex
	follower *sinks.Alerting
	targets  *notify.Targets
	fired    map[string]uint64 // transitions into firing since the process began, by rule
	told     uint64            // position of the newest transitions that the page has
}

// start begins to evaluate the alerts of settings and, unless another worker of the group
// does, to store and to deliver what begins and ends.
func (a *alerting) start(ctx context.Context, settings config.Settings, leads bool) error {
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
	targets, err := notify.Start(ctx, a.config.JS, a.config.Streams.Names.Alerts, conf, a.log)
	if err != nil {
		return err
	}
	one := a.config
	one.Rules, one.Standby, one.Told = rules, !leads, a.tell
	follower, err := sinks.NewAlerting(ctx, one)
	if err != nil {
		targets.Stop()
		return err
	}
	a.mu.Lock()
	former := a.targets
	a.follower, a.targets = follower, targets
	a.mu.Unlock()
	if former != nil {
		former.Stop()
	}
	if leads {
		if err := targets.RemoveOthers(ctx); err != nil { // the next start tries again
			a.log.Warn("alerts", "error", err)
		}
	}
	a.followers.start(ctx, sinks.FollowConfig{Name: followerAlerts, Open: follower.Open}, leads)
	return nil
}

func (a *alerting) close() error {
	a.show() // of the last moment
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.targets == nil {
		return nil
	}
	return a.targets.Close()
}

// tell tells the log and the page what has begun or ended, each once. The follower of the alerts calls it, once what it tells is stored.
func (a *alerting) tell(position uint64, transitions []alerts.Transition) {
	a.mu.Lock()
	news := position > a.told
	a.told = max(a.told, position)
	for _, t := range transitions {
		if news && t.State == alerts.Firing {
			a.fired[t.Rule]++
		}
	}
	a.mu.Unlock()
	if !news {
		return // another worker was first, or this one before it took over
	}
	for _, t := range transitions {
		a.log.Info("alert", "rule", t.Rule, "community", t.Community, "class", t.Class, "state", t.State,
			"position", position, "reason", t.Reason)
	}
	a.page.AddTransitions(transitions)
}

// show tells the page and the Alertmanagers all that fires, and returns how long it took.
func (a *alerting) show() time.Duration {
	a.mu.Lock()
	follower, targets, fired := a.follower, a.targets, maps.Clone(a.fired)
	a.mu.Unlock()
	if follower == nil {
		return 0
	}
	begun := time.Now()
	active, rules, dropped := follower.Now()
	if targets.NeedsActive() && a.caughtUp() {
		targets.Set(active)
	}
	view := web.Alerts{Active: active, Rules: rules, Fired: fired, Dropped: dropped}
	for _, t := range targets.Stats() {
		view.Targets = append(view.Targets, web.Target{Name: t.Name, Outcomes: t.Outcomes, Queue: t.Depth, Error: t.Error})
	}
	a.page.SetAlerts(view)
	return time.Since(begun)
}

func (a *alerting) last(ctx context.Context) (uint64, error) {
	stream, err := a.config.JS.Stream(ctx, a.config.Streams.Names.Alerts)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

func (a *alerting) seed(ctx context.Context) error {
	stream, err := a.config.JS.Stream(ctx, a.config.Streams.Names.Alerts)
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
			list, a.told = append(list, t), max(a.told, t.Position)
		}
	}
	a.page.AddTransitions(list)
	return nil
}
