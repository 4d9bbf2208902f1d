package pipeline

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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
	settings *config.Settings
	js       jetstream.JetStream
	stream   string // of transitions
	log      *slog.Logger
	page     *web.Server
	folds    *folds // nothing is delivered while the main one is far behind
	follower *sinks.Alerting
	before   uint64       // sequence of the newest transition when the process began
	begin    sinks.Cursor // the page reads transitions of earlier processes from here on

	mu      sync.Mutex // guards the fields below
	targets *notify.Targets
	fired   map[string]uint64 // transitions into firing since the process began, by rule
}

// openAlerting returns alerting without targets.
func openAlerting(
	ctx context.Context, b *base, streams sinks.StreamsConfig, page *web.Server, folds *folds,
) (*alerting, error) {
	rules, err := b.settings.AlertRules()
	if err != nil {
		return nil, config.Usage(err)
	}
	follower, err := sinks.NewAlerting(ctx, sinks.AlertingConfig{
		JS:      b.Broker.JS,
		Streams: streams,
		Shards:  b.shards,
		Log:     b.logID,
		State:   b.alertsState,
		Rules:   rules,
	})
	if err != nil {
		return nil, err
	}
	stream, err := b.Broker.JS.Stream(ctx, b.names.Out.Alerts)
	if err != nil {
		return nil, err
	}
	before := stream.CachedInfo().State.LastSeq
	begin := sinks.Cursor{Sequence: before - min(before, alertsSeedMax)}
	// otherwise the page begins with the oldest
	if m, err := stream.GetMsg(ctx, begin.Sequence); err == nil {
		begin.Stamp = m.Time.UnixNano()
	}
	return &alerting{
		settings: &b.settings,
		js:       b.Broker.JS,
		stream:   b.names.Out.Alerts,
		log:      b.log,
		page:     page,
		folds:    folds,
		follower: follower,
		before:   before,
		begin:    begin,
		fired:    map[string]uint64{},
	}, nil
}

// start makes this worker the one that stores and delivers transitions, or a standby.
func (a *alerting) start(ctx context.Context, leads bool) error {
	conf, err := a.settings.NotifyTargets()
	if err != nil {
		return config.Usage(err)
	}
	if !leads {
		conf = notify.Config{}
	}
	targets, err := notify.Start(ctx, a.js, a.stream, conf, a.log)
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

// report is the TakeFunc of the follower that passes transitions to the page, and new ones to the
// program's log.
func (a *alerting) report(_ context.Context, e *sinks.Stored) error {
	for _, record := range e.Records {
		var t alerts.Transition
		if json.Unmarshal(record, &t) != nil {
			continue // not one of our messages
		}
		a.page.AddTransitions([]alerts.Transition{t})
		if e.Cursor.Sequence <= a.before {
			continue
		}
		a.log.Info("alert", "rule", t.Rule, "community", t.Community, "class", t.Class, "state",
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
	if a.folds.main.Load().source.Stats().Behind <= catchingUp {
		targets.Set(active, ended)
	}
	a.page.SetAlerts(
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
