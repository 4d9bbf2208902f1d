package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gqlstream/alerts"
	"gqlstream/quant"
	"gqlstream/sinks"
)

const (
	scrapesMax          = 4 // at a time
	scrapeWaitMax       = 10 * time.Second
	communitiesExported = 1_000 // at most
)

// metrics reads the store and the journal when Prometheus asks, so that the
// number of communities costs nothing in between. Only durations of steps are
// counted as they come.
type metrics struct {
	view   *view
	step   prometheus.Histogram
	stages *prometheus.HistogramVec
	descs  map[string]*prometheus.Desc // of metricDocs
}

func newMetrics(v *view) *metrics {
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	m := &metrics{view: v, descs: map[string]*prometheus.Desc{}}
	m.step = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "gqlstream_step_seconds", Help: "Duration of a step.", Buckets: buckets,
	})
	m.stages = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gqlstream_stage_seconds", Help: "Duration of a stage of a step.", Buckets: buckets,
	}, []string{"stage"})
	for _, d := range metricDocs {
		m.descs[d.name] = prometheus.NewDesc("gqlstream_"+d.name, d.help, d.labels, nil)
	}
	return m
}

// Describe sends every description, as prometheus.Collector asks.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.step.Describe(ch)
	m.stages.Describe(ch)
	for _, d := range m.descs {
		ch <- d
	}
}

// observe counts the durations of a step.
func (m *metrics) observe(s Status) {
	if s.Steps == 0 {
		return
	}
	m.step.Observe(s.StepSeconds)
	for _, st := range s.Stages {
		m.stages.WithLabelValues(st.Name).Observe(st.Seconds)
	}
}

// Collect sends every metric, as prometheus.Collector asks.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.step.Collect(ch)
	m.stages.Collect(ch)
	x := &collection{m, ch, time.Now()}
	x.collectLoop()
	x.collectSinks()
	x.collectWeb()
	x.collectAlerts()
	for _, r := range m.exported() {
		x.collectEstimate(r)
	}
}

// collection is one answer to Prometheus. Metrics are named as in metricDocs.
type collection struct {
	*metrics
	ch  chan<- prometheus.Metric
	now time.Time
}

func (x *collection) gauge(name string, v float64, labels ...string) {
	x.ch <- prometheus.MustNewConstMetric(x.descs[name], prometheus.GaugeValue, v, valid(labels)...)
}

func (x *collection) count(name string, n uint64, labels ...string) {
	x.ch <- prometheus.MustNewConstMetric(x.descs[name], prometheus.CounterValue, float64(n), valid(labels)...)
}

// exported returns the newest records of the first communities by order of
// mention: the choice is the same at every scrape.
func (m *metrics) exported() []*record {
	s := m.view.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := min(len(s.order), communitiesExported)
	var out []*record
	for _, c := range s.order[:n] {
		for _, ser := range c.series {
			out = append(out, ser.latest)
		}
	}
	return out
}

func (x *collection) collectEstimate(r *record) {
	e := &r.estimate
	set := func(name string, value float64) { x.gauge(name, value, e.Community, e.Method) }
	set("estimate_freshness_seconds", x.now.Sub(r.received).Seconds())
	set("estimate_suppressed", boolean(e.Suppressed))
	if !r.at.IsZero() {
		set("estimate_log_time_seconds", float64(r.at.UnixMilli())/1000)
	}
	seen := map[string]bool{}
	for _, f := range e.Flags {
		if name := quant.FlagName(f); !seen[name] {
			seen[name] = true
			x.gauge("estimate_flag", 1, e.Community, e.Method, name)
		}
	}
	if e.Suppressed {
		return
	}
	set("estimate_certificate", e.Certificate)
	set("estimate_members", e.Members)
	set("estimate_labelled", e.Labelled)
	set("estimate_coverage", e.Coverage)
	set("estimate_lambda", e.Lambda)
	for _, list := range []struct {
		name   string
		values []float64
	}{{"estimate", e.Prevalence}, {"estimate_low", e.Low}, {"estimate_high", e.High}, {"estimate_se", e.SE}, {"estimate_n_eff", e.NEff}} {
		for k, v := range list.values {
			if k < len(x.view.config.Classes) {
				x.gauge(list.name, v, e.Community, e.Method, x.view.config.Classes[k])
			}
		}
	}
}

// valid makes label values UTF-8: any other would fail the whole scrape.
func valid(labels []string) []string {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	return labels
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request, _ url.Values) {
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMax, Timeout: scrapeWaitMax}).ServeHTTP(w, r)
}

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
	x.gauge("certificate_max", x.view.store.certificateMax())
	if status.LogTime != nil {
		x.gauge("log_time_seconds", float64(status.LogTime.UnixMilli())/1000)
	}
	c := cmp.Or(status.Checkpoint, &Checkpoint{})
	if !c.At.IsZero() {
		x.gauge("checkpoint_position", float64(c.Position))
		x.gauge("checkpoint_age_seconds", x.now.Sub(c.At).Seconds())
		x.gauge("checkpoint_seconds", c.Seconds)
		x.gauge("checkpoint_bytes", float64(c.Bytes))
	}
	x.count("checkpoint_failures_total", c.Failed)
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
	for _, v := range models {
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
	x.gauge("communities", float64(totals.communities))
	x.gauge("metrics_communities_dropped", float64(max(0, totals.communities-communitiesExported)))
	x.count("web_estimates_dropped_total", uint64(totals.dropped))
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
