package web

import (
	"maps"
	"slices"

	"gqlstream/alerts"
	"gqlstream/sinks"
)

func (x *collection) collectLoop() {
	status, _, _ := x.view.journal.read()
	for kind, n := range status.Events {
		x.count("events_total", n, kind)
	}
	for reason, n := range status.Refused {
		x.count("refused_total", n, reason)
	}
	for kind, n := range status.Late {
		x.count("late_total", n, kind)
	}
	names := slices.Sorted(maps.Keys(status.Mismatches))
	for _, name := range names[:min(len(names), communitiesExported)] {
		x.count("rule_mismatches_total", status.Mismatches[name], name)
	}
	ready, _ := x.view.ready(x.now)
	x.gauge("ready", boolean(ready))
	x.gauge("position", float64(status.Position))
	x.gauge("lag_messages", float64(status.lag()))
	x.count("steps_total", status.Steps)
	if status.Engine != "" {
		x.gauge("engine", 1, status.Engine)
	}
	x.gauge("certificate_max", x.view.store.totals().certificate)
	if !status.LogTime.IsZero() {
		x.gauge("log_time_seconds", float64(status.LogTime.UnixMilli())/1000)
	}
	if c := status.Checkpoint; !c.At.IsZero() {
		x.gauge("checkpoint_position", float64(c.Position))
		x.gauge("checkpoint_age_seconds", x.now.Sub(c.At).Seconds())
		x.gauge("checkpoint_seconds", c.Took.Seconds())
		x.gauge("checkpoint_bytes", float64(c.Bytes))
	}
	x.count("checkpoint_failures_total", status.Checkpoint.Failed)
	for _, f := range status.Fills {
		x.gauge("fill", float64(f.Used)/float64(max(f.Max, 1)), f.Kind)
	}
	x.gauge("log_ahead_seconds", status.LogAhead.Seconds())
	x.count("clock_leaps_total", status.ClockLeaps)
	x.count("refused_without_entry_total", status.LeftOut)
	q := status.Quarantine
	x.gauge("quarantine_entries", float64(q.Entries))
	x.gauge("quarantine_fill", float64(q.Bytes)/float64(max(q.BytesMax, 1)))
	x.count("quarantine_removed_total", q.Removed)
	x.gauge("graph", float64(status.Graph.Vertices), "vertices")
	x.gauge("graph", float64(status.Graph.Edges), "edges")
	x.collectModels(status.Models)
}

func (x *collection) collectModels(models []Model) {
	for _, v := range judgedModels(models) {
		x.gauge("model_drift", v.Drift, v.Version)
		x.gauge("model_degraded", boolean(v.Degraded), v.Version)
		for _, c := range v.Classes {
			x.count("model_judged_total", c.Judged, v.Version, c.Class)
			x.gauge("model_accuracy", c.Accuracy, v.Version, c.Class)
			x.gauge("model_brier", c.Brier, v.Version, c.Class)
			x.gauge("model_log_score", c.LogScore, v.Version, c.Class)
			if c.Reference != nil {
				x.gauge("model_accuracy_reference", *c.Reference, v.Version, c.Class)
			}
		}
	}
}

func (x *collection) collectSinks() {
	for _, s := range x.view.config.Sinks() {
		x.gauge("sink_up", boolean(s.Condition == sinks.Delivering), s.Name)
		x.gauge("sink_holding", boolean(s.Condition == sinks.Holding), s.Name)
		x.count("sink_retries_total", s.Retries, s.Name)
		if s.Follows {
			x.gauge("sink_behind", float64(s.Behind), s.Name)
			x.gauge("sink_position", float64(s.Position), s.Name)
		}
	}
}

func (x *collection) collectWeb() {
	s := x.view
	totals := s.store.totals()
	streams, dropped, refused := s.hub.counts()
	x.gauge("communities", float64(totals.communities))
	x.gauge("metrics_communities_dropped", float64(max(0, totals.communities-communitiesExported)))
	x.count("web_estimates_dropped_total", uint64(totals.dropped))
	x.gauge("web_streams", float64(streams))
	x.count("web_streams_slow_total", dropped)
	x.count("web_streams_refused_total", refused)
	x.gauge("info", 1, s.config.Version, s.config.Pipeline)
}

func (x *collection) collectAlerts() {
	b := &x.view.alerts
	b.mu.RLock()
	defer b.mu.RUnlock()
	x.gauge("alerts_dropped", float64(b.now.Dropped))
	for _, c := range b.now.Rules {
		x.gauge("alerts", float64(c.Inactive), c.Rule, string(alerts.Inactive))
		x.gauge("alerts", float64(c.Pending), c.Rule, string(alerts.Pending))
		x.gauge("alerts", float64(c.Firing), c.Rule, string(alerts.Firing))
		x.gauge("alerts_suppressed", float64(c.Suppressed), c.Rule)
		x.gauge("alerts_no_data", float64(c.NoData), c.Rule)
		x.count("alerts_fired_total", b.now.Fired[c.Rule], c.Rule)
	}
	for _, t := range b.now.Targets {
		x.gauge("notify_queue", float64(t.Queue), t.Name)
		for outcome, n := range t.Outcomes {
			x.count("notify_attempts_total", n, t.Name, outcome)
		}
	}
}
