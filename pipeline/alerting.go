package pipeline

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"gqlstream/pipeline/config"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
	"gqlstream/sinks/notify"
	"gqlstream/sinks/web"
)

const (
	alertsShownEvery = time.Second // how often the page and the Alertmanagers get the firing alerts
	// building that list may take at most one part in this many of the time
	alertsShownShare = 20
	alertsSeedMax    = 200 // transitions of earlier processes that the page shows
)

// alerting holds the follower that evaluates the alert rules, and the targets that it notifies. Any
// goroutine may use it.
type alerting struct {
	p        *Pipeline
	follower *sinks.Alerting
	before   uint64 // sequence of the newest transition when the process began

	mu      sync.Mutex // guards the fields below
	targets *notify.Targets
	fired   map[string]uint64 // transitions into firing since the process began, by rule
}

// openAlerting returns alerting without targets, and the position from which the page reads alerts
// of earlier processes.
func openAlerting(ctx context.Context, p *Pipeline) (a *alerting, at sinks.Cursor, err error) {
	rules, err := p.settings.AlertRules()
	if err != nil {
		return nil, at, config.Usage(err)
	}
	a = &alerting{p: p, fired: map[string]uint64{}}
	a.follower, err = sinks.NewAlerting(ctx, sinks.AlertingConfig{
		JS:      p.Broker.JS,
		Streams: p.streams(),
		Shards:  p.shards,
		Log:     p.logID,
		State:   p.stateStore("alerts", "alerting.json"),
		Rules:   rules,
	})
	if err != nil {
		return nil, at, err
	}
	stream, err := p.Broker.JS.Stream(ctx, p.names.Out.Alerts)
	if err != nil {
		return nil, at, err
	}
	a.before = stream.CachedInfo().State.LastSeq
	at.Sequence = a.before - min(a.before, alertsSeedMax)
	// otherwise the page begins with the oldest
	if m, err := stream.GetMsg(ctx, at.Sequence); err == nil {
		at.Stamp = m.Time.UnixNano()
	}
	return a, at, nil
}

// start makes this worker the one that stores and delivers transitions, or a standby.
func (a *alerting) start(ctx context.Context, leads bool) error {
	conf, err := a.p.settings.NotifyTargets()
	if err != nil {
		return config.Usage(err)
	}
	if !leads {
		conf = notify.Config{}
	}
	targets, err := notify.Start(ctx, a.p.Broker.JS, a.p.names.Out.Alerts, conf, a.p.log)
	if err != nil {
		return err
	}
	a.follower.SetStandby(!leads)
	a.mu.Lock()
	former := a.targets
	a.targets = targets
	a.mu.Unlock()
	if former != nil {
		former.Stop()
	}
	return nil
}

func (a *alerting) close() error {
	a.show() // the final state
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.targets == nil {
		return nil
	}
	return a.targets.Close()
}

// report is the Take of the follower that passes transitions to the page, and new ones to the
// program's log.
func (a *alerting) report(_ context.Context, e *sinks.Stored) error {
	for _, record := range e.Records {
		var t alerts.Transition
		if json.Unmarshal(record, &t) != nil {
			continue // not one of our messages
		}
		a.p.Page.AddTransitions([]alerts.Transition{t})
		if e.Cursor.Sequence <= a.before {
			continue
		}
		a.p.log.Info("alert", "rule", t.Rule, "community", t.Community, "class", t.Class, "state",
			t.State, "position", t.Position, "text", t.Text)
		if t.State == alerts.Firing {
			a.mu.Lock()
			a.fired[t.Rule]++
			a.mu.Unlock()
		}
	}
	return nil
}

// show passes the firing alerts to the page and the Alertmanagers, and returns how long it took.
func (a *alerting) show() time.Duration {
	a.mu.Lock()
	targets, fired := a.targets, maps.Clone(a.fired)
	a.mu.Unlock()
	if targets == nil {
		return 0
	}
	begun := time.Now()
	active, rules, dropped := a.follower.Now()
	ended := a.follower.Ended()
	if a.p.main.Load().source.Stats().Behind <= catchingUp {
		targets.Set(active, ended)
	}
	a.p.Page.SetAlerts(
		web.Alerts{
			Active:  active,
			Rules:   rules,
			Fired:   fired,
			Dropped: dropped,
			Targets: targets.Stats(),

			Silences: a.follower.Quietings(),
		},
	)
	return time.Since(begun)
}
