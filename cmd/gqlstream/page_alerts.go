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
	alertsSeedMax    = 200         // transitions of earlier processes that the page gets
)

// tellAlerts shows on the page what fires.
func (p *pipeline) tellAlerts(transitions []alerts.Transition) {
	if p.page == nil {
		return
	}
	if now := time.Now(); len(transitions) > 0 || now.Sub(p.alerts.shown) >= alertsShownEvery {
		p.alerts.shown = now
		a := web.Alerts{
			Active: p.alerts.engine.Active(), Rules: p.alerts.engine.Counts(),
			Fired: maps.Clone(p.alerts.fired), Dropped: p.alerts.engine.Dropped(),
		}
		for _, t := range p.alerts.targets.Stats() {
			a.Targets = append(a.Targets, web.Target{Name: t.Name, Outcomes: t.Outcomes, Queue: t.Depth, Error: t.Error})
		}
		p.page.SetAlerts(a)
	}
	p.page.AddTransitions(transitions)
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
