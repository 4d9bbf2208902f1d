package main

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"gqlstream/alerts"
	"gqlstream/ingest"
	"gqlstream/sinks/web"
)

const (
	alertsShownEvery = time.Second // when nothing begins or ends
	alertsShownShare = 20          // and never more than this share of the loop's time: a twentieth
	alertsSeedMax    = 200         // transitions of earlier processes that the page gets
)

// shown is when the list of what fires was made, and for how long: it has a line for each
// alert, of which there may be alerts.AlertsMax.
type shown struct {
	at   time.Time
	took time.Duration
}

// due reports whether to make it anew.
func (s *shown) due(now time.Time, changed bool) bool {
	wait := alertsShownShare * s.took
	if !changed {
		wait = max(wait, alertsShownEvery)
	}
	return now.Sub(s.at) >= wait
}

// tellAlerts tells the page and the Alertmanagers what began and ended, and now and then
// all that fires. While the pipeline catches up with an old log no Alertmanager is told.
func (p *pipeline) tellAlerts(transitions []alerts.Transition) {
	a := p.alerts
	manages := a.targets.NeedsActive() && p.source.Stats().Behind <= catchingUp
	if manages {
		a.targets.Tell(transitions)
	}
	if p.page != nil {
		p.page.AddTransitions(transitions)
	}
	now := time.Now()
	if !manages && p.page == nil || !a.shown.due(now, len(transitions) > 0) {
		return
	}
	active := a.engine.Active()
	if manages {
		a.targets.Set(active)
	}
	if p.page != nil {
		p.page.SetAlerts(a.view(active))
	}
	a.shown = shown{now, time.Since(now)}
}

// view is what the page shows of alerts.
func (a *alerting) view(active []alerts.Alert) web.Alerts {
	out := web.Alerts{
		Active: active, Rules: a.engine.Counts(), Fired: maps.Clone(a.fired), Dropped: a.engine.Dropped(),
	}
	for _, t := range a.targets.Stats() {
		out.Targets = append(out.Targets, web.Target{Name: t.Name, Outcomes: t.Outcomes, Queue: t.Depth, Error: t.Error})
	}
	return out
}

// seedAlerts gives the page the last transitions that are stored, but for those that
// the run comes to again.
func (p *pipeline) seedAlerts(ctx context.Context) error {
	stream, err := p.broker.js.Stream(ctx, ingest.DefaultStreamNames().Alerts)
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
		if json.Unmarshal(m.Data, &t) == nil && t.Position <= uint64(p.core.Position()) {
			list = append(list, t)
		}
	}
	p.page.AddTransitions(list)
	return nil
}
