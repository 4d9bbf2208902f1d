package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gqlstream/alerts"
	"gqlstream/quant"
	"gqlstream/request"
)

const (
	scrapesMax          = 4 // at a time
	scrapeWaitMax       = 10 * time.Second
	communitiesExported = 1_000 // at most
)

// newMetrics returns a registry whose metrics read the store and the journal when Prometheus asks, so
// that the number of communities costs nothing in between. Only durations of steps are counted as they
// come. The help of a metric is its reference: docs/metrics.md shows how to read it.
func newMetrics(s *Server) *prometheus.Registry {
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	s.step = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "gqlstream_step_seconds", Help: "Duration of a step.", Buckets: buckets,
	})
	s.stages = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gqlstream_stage_seconds", Help: "Duration of a stage of a step.", Buckets: buckets,
	}, []string{"stage"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(s, s.step, s.stages, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Describe sends nothing: which metrics there are is seen when they are collected.
func (s *Server) Describe(chan<- *prometheus.Desc) {}

// Collect sends every metric, as prometheus.Collector asks.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	x := &collection{s, ch, time.Now(), map[string]*prometheus.Desc{}}
	x.collectLoop()
	x.collectStore()
	x.collectSinks()
	x.collectAlerts()
}

// collection is one answer to Prometheus.
type collection struct {
	*Server
	ch    chan<- prometheus.Metric
	now   time.Time
	descs map[string]*prometheus.Desc // by name
}

// gauge sends a value with its name, but for the prefix, its help, and pairs of a label and its value.
func (x *collection) gauge(name, help string, value float64, labels ...string) {
	x.send(prometheus.GaugeValue, name, help, value, labels)
}

// count sends a value that never falls.
func (x *collection) count(name, help string, n uint64, labels ...string) {
	x.send(prometheus.CounterValue, name, help, float64(n), labels)
}

func (x *collection) send(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names = append(names, labels[i])
		values = append(values, strings.ToValidUTF8(labels[i+1], "\uFFFD")) // any other would fail the whole scrape
	}
	if x.descs[name] == nil {
		x.descs[name] = prometheus.NewDesc("gqlstream_"+name, help, names, nil)
	}
	x.ch <- prometheus.MustNewConstMetric(x.descs[name], kind, value, values...)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (x *collection) collectLoop() {
	status, _ := x.journal.read()
	for kind, n := range status.Events {
		x.count("events_total", "Events applied.", n, "kind", kind)
	}
	for reason, n := range status.Refused {
		x.count("refused_total", "Messages and events put into the quarantine.", n, "reason", reason)
	}
	for kind, n := range status.Late {
		x.count("late_total", "Events that came late: applied, or diverted, which counts as refused too.", n, "kind", kind)
	}
	names := slices.Sorted(maps.Keys(status.Mismatches))
	for _, name := range names[:min(len(names), communitiesExported)] {
		x.count("rule_mismatches_total", "Values of another type than the rule of the community compares with.", status.Mismatches[name], "community", name)
	}
	ready, _ := x.ready(x.now)
	x.gauge("ready", "1 when the run loop reported within 30 s, as /readyz.", boolean(ready))
	x.gauge("position", "Position of the last message applied.", float64(status.Position))
	x.gauge("lag_messages", "Messages in the stream that are not applied yet.", float64(status.lag()))
	x.count("steps_total", "Steps done.", status.Steps)
	if status.LogTime != nil {
		x.gauge("log_time_seconds", "Log time, Unix seconds; time() less this is the lag in time.", float64(status.LogTime.UnixMilli())/1000)
	}
	x.gauge("log_ahead_seconds", "Log time before the clocks, after a leap.", status.LogAhead.Seconds())
	for _, f := range status.Fills {
		x.gauge("fill", "Share of a limit in use; at 1 more is refused.", float64(f.Used)/float64(max(f.Max, 1)), "what", f.Kind)
	}
	for what, n := range map[string]uint64{"vertices": status.Graph.Vertices, "edges": status.Graph.Edges} {
		x.gauge("graph", "Vertices and edges in the store, without those that were erased.", float64(n), "what", what)
	}
	x.collectState(&status)
	x.collectModels(status.Models)
}

// collectState tells of the checkpoints and the quarantine.
func (x *collection) collectState(s *Status) {
	c, q := cmp.Or(s.Checkpoint, &Checkpoint{}), s.Quarantine
	if !c.At.IsZero() {
		x.gauge("checkpoint_position", "Position of the newest checkpoint; absent when there is none, like the next three.", float64(c.Position))
		x.gauge("checkpoint_age_seconds", "Seconds since the newest checkpoint.", x.now.Sub(c.At).Seconds())
		x.gauge("checkpoint_seconds", "Duration of the newest checkpoint.", c.Seconds)
		x.gauge("checkpoint_bytes", "Size of the newest checkpoint.", float64(c.Bytes))
	}
	x.count("checkpoint_failures_total", "Checkpoints that failed.", c.Failed)
	x.count("refused_without_entry_total", "Refusals that another entry of the quarantine counts: a message has at most 100 entries, a step 1,000.", s.LeftOut)
	x.gauge("quarantine_entries", "Entries of the quarantine.", float64(q.Entries))
	x.gauge("quarantine_fill", "Share of the quarantine's bytes in use; at 1 the oldest entries go.", float64(q.Bytes)/float64(max(q.BytesMax, 1)))
	x.count("quarantine_removed_total", "Entries of the quarantine that are gone by space, age or purge.", q.Removed)
}

func (x *collection) collectModels(models []Model) {
	for _, v := range models {
		x.gauge("model_drift", "Evidence that the version is worse than at first; 0 is none, at 1 it is flagged.", v.Drift, "version", v.Version)
		x.gauge("model_degraded", "1 while its estimates have the flag classifier-drift.", boolean(v.Degraded), "version", v.Version)
		for _, c := range v.Classes {
			of := []string{"version", v.Version, "class", c.Class}
			x.count("model_judged_total", "Calibration labels of this true class that were compared with a prediction of this version.", c.Judged, of...)
			x.gauge("model_accuracy", "Share of them for which the prediction named this class, fading over 200 labels.", c.Accuracy, of...)
			x.gauge("model_brier", "Fading mean of its Brier score, 0 to 2.", c.Brier, of...)
			x.gauge("model_log_score", "Fading mean of its log score.", c.LogScore, of...)
			if c.Reference != nil {
				x.gauge("model_accuracy_reference", "The same of the first hundred; absent before.", *c.Reference, of...)
			}
		}
	}
}

// collectStore tells of the newest records of the first communities by order of mention: the
// choice is the same at every scrape.
func (x *collection) collectStore() {
	s := x.store
	s.mu.RLock()
	n, dropped, certificate := len(s.order), s.dropped, 0.0
	var list []*record
	for i, c := range s.order {
		for _, ser := range c.series {
			certificate = max(certificate, ser.latest.estimate.Certificate)
			if i < communitiesExported {
				list = append(list, ser.latest)
			}
		}
	}
	s.mu.RUnlock()
	x.gauge("certificate_max", "Largest certificate of all communities, exported or not.", certificate)
	x.gauge("communities", "Communities with an estimate.", float64(n))
	x.gauge("metrics_communities_dropped", "Communities left out of the metrics because there are too many.", float64(max(0, n-communitiesExported)))
	x.count("web_estimates_dropped_total", "Estimates not shown: one community too many, or of other classes.", uint64(dropped))
	x.gauge("info", "Always 1.", 1, "version", x.config.Version, "pipeline", x.config.Pipeline)
	for _, r := range list {
		x.collectEstimate(r)
	}
}

func (x *collection) collectEstimate(r *record) {
	e := &r.estimate
	of := []string{"community", e.Community, "method", e.Method}
	x.gauge("estimate_freshness_seconds", "Seconds since the estimate was last published; a quiet community grows old without being wrong.", x.now.Sub(r.received).Seconds(), of...)
	x.gauge("estimate_suppressed", "1 when the community is below the privacy floor.", boolean(e.Suppressed), of...)
	if !r.at.IsZero() {
		x.gauge("estimate_log_time_seconds", "Log time of the estimate, Unix seconds.", float64(r.at.UnixMilli())/1000, of...)
	}
	seen := map[string]bool{}
	for _, f := range e.Flags {
		if name := quant.FlagName(f); !seen[name] {
			seen[name] = true
			x.gauge("estimate_flag", "1 for every flag that the estimate has; absent otherwise.", 1, append(of, "flag", name)...)
		}
	}
	if e.Suppressed {
		return
	}
	x.gauge("estimate_certificate", "Proven bound on the numerical error of the kernel; no part of the interval.", e.Certificate, of...)
	x.gauge("estimate_members", "Total multiplicity of the community's members.", e.Members, of...)
	x.gauge("estimate_labelled", "Multiplicity of the members with a known label.", e.Labelled, of...)
	x.gauge("estimate_coverage", "Share of the unlabelled members with a prediction; below 0.8 is flagged.", e.Coverage, of...)
	x.gauge("estimate_lambda", "Share of the kernel in the weights of the labels.", e.Lambda, of...)
	byClass := func(name, help string, values []float64) {
		for k, v := range values[:min(len(values), len(x.config.Classes))] {
			x.gauge(name, help, v, append(of, "class", x.config.Classes[k])...)
		}
	}
	byClass("estimate", "Estimated share of a class in a community.", e.Prevalence)
	byClass("estimate_low", "Low end of the interval.", e.Low)
	byClass("estimate_high", "High end of the interval.", e.High)
	byClass("estimate_se", "Standard error of the share.", e.SE)
	byClass("estimate_n_eff", "Effective calibration labels of the class; below 30 is thin.", e.NEff)
}

func (x *collection) collectSinks() {
	for _, s := range x.config.Sinks() {
		x.gauge("sink_up", "1 when the sink takes what it gets; 0 while it fails and is tried again, or the loop waits for it.", boolean(s.Condition == request.Delivering), "sink", s.Name)
		x.gauge("sink_holding", "1 while the run loop waits for the sink; after 5 s /readyz names it.", boolean(s.Condition == request.Holding), "sink", s.Name)
		x.count("sink_retries_total", "Failed attempts of the sink, each of which is repeated.", s.Retries, "sink", s.Name)
		if s.Follows {
			x.gauge("sink_behind", "Messages of the log out that the follower has not taken; absent for what is no follower, like the next one.", float64(s.Behind), "sink", s.Name)
			x.gauge("sink_position", "Position of the log up to which the output of the follower is durable.", float64(s.Position), "sink", s.Name)
		}
	}
}

func (x *collection) collectAlerts() {
	b := &x.alertBoard
	b.mu.RLock()
	defer b.mu.RUnlock()
	x.gauge("alerts_dropped", "Alerts that are not evaluated because there are more than 100,000.", float64(b.now.Dropped))
	for _, c := range b.now.Rules {
		for state, n := range map[alerts.State]int{alerts.Inactive: c.Inactive, alerts.Pending: c.Pending, alerts.Firing: c.Firing} {
			x.gauge("alerts", "Alerts, one for each community and class, that are inactive, pending or firing.", float64(n), "rule", c.Rule, "state", string(state))
		}
		x.gauge("alerts_suppressed", "Alerts that a flag of their estimate keeps from beginning and ending.", float64(c.Suppressed), "rule", c.Rule)
		x.gauge("alerts_no_data", "Alerts whose community has no data.", float64(c.NoData), "rule", c.Rule)
		x.count("alerts_fired_total", "Alerts that began to fire.", b.now.Fired[c.Rule], "rule", c.Rule)
	}
	for _, t := range b.now.Targets {
		x.gauge("notify_queue", "Transitions that wait for a webhook; alerts that an Alertmanager gets.", float64(t.Queue), "target", t.Name)
		for outcome, n := range t.Outcomes {
			x.count("notify_attempts_total", "Attempts to reach a target: delivered, failed (tried again), dropped (given up), skipped (older than max_age).", n, "target", t.Name, "outcome", outcome)
		}
	}
}
