package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"gqlstream/internal/request"
	"gqlstream/sinks/alerts"
)

const (
	scrapesMax      = 4 // at a time
	scrapeWaitMax   = 10 * time.Second
	mismatchesShown = 1_000 // communities, at most
)

// newMetrics returns the collector of the metrics. It reads the store and the journal when
// Prometheus asks, so that the number of communities costs nothing in between. Only durations of
// steps are counted as they come. The help of a metric is its reference: docs/metrics.md shows how
// to read it.
func newMetrics(s *Server) prometheus.Gatherer {
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	s.step = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "gqlstream_step_seconds", Help: "Duration of a step.", Buckets: buckets,
	})
	s.stages = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gqlstream_stage_seconds", Help: "Duration of a stage of a step.", Buckets: buckets,
	}, []string{"stage"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(s, s.step, s.stages, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := registry.Gather()
		return append(families, s.estimateFamilies()...), err
	})
}

// Describe sends nothing: which metrics there are is seen when they are collected.
func (s *Server) Describe(chan<- *prometheus.Desc) {}

// Collect sends every metric, as prometheus.Collector asks.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	x := &collection{s, ch, time.Now(), map[string]*prometheus.Desc{}}
	x.collectLoop()
	x.collectSinks()
	x.collectAlerts()
	deployment := x.config.Deployment()
	x.collectDeployment(&deployment)
}

// collection is one answer to Prometheus.
type collection struct {
	*Server
	ch    chan<- prometheus.Metric
	now   time.Time
	descs map[string]*prometheus.Desc // by name
}

// gauge sends a value with its name, but for the prefix, its help, and pairs of a label and its
// value.
func (x *collection) gauge(name, help string, value float64, labels ...string) {
	x.send(prometheus.GaugeValue, name, help, value, labels)
}

// count sends a value that never falls.
func (x *collection) count(name, help string, n uint64, labels ...string) {
	x.send(prometheus.CounterValue, name, help, float64(n), labels)
}

func (x *collection) send(
	kind prometheus.ValueType, name, help string, value float64, labels []string,
) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names = append(names, labels[i])
		// any other would fail the whole scrape
		values = append(values, strings.ToValidUTF8(labels[i+1], "\uFFFD"))
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
	counts := func(name, help, label string, counted map[string]uint64, all []string) {
		for _, value := range all {
			if _, some := counted[value]; !some {
				x.count(name, help, 0, label, value) // so that the first one is an increase
			}
		}
		for value, n := range counted {
			x.count(name, help, n, label, value)
		}
	}
	counts("events_total", "Events applied.", "kind", status.Events, x.config.Kinds)
	counts("refused_total", "Messages and events put into the quarantine.", "reason",
		status.Refused, x.config.Reasons)
	counts("late_total", "Late events: applied, or diverted (also counted as refused).", "kind",
		status.Late, x.config.Kinds)
	names := slices.Sorted(maps.Keys(status.Mismatches))
	for _, name := range names[:min(len(names), mismatchesShown)] {
		x.count("rule_mismatches_total",
			"Values of another type than the rule of the community compares with.",
			status.Mismatches[name], "community", name)
	}
	x.count("replies_refused_total",
		"Questions on NATS that were not answered, because the subject of the reply is no inbox.",
		x.repliesRefused.Load())
	ready, _ := x.ready(x.now)
	x.gauge("ready", "1 when the run loop reported within 30 s, as /readyz.", boolean(ready))
	x.gauge("position", "Position of the last message applied.", float64(status.Position))
	x.gauge("lag_messages", "Messages in the stream that are not applied yet.",
		float64(status.lag()))
	x.count("steps_total", "Steps done.", status.Steps)
	if status.LogTime != nil {
		x.time("log_timestamp_seconds", "Log time; time() less this is the lag in time.",
			*status.LogTime)
	}
	x.gauge("log_ahead_seconds", "Seconds of log time ahead of the clocks, after a leap of the "+
		"broker's clock.",
		status.LogAhead.Seconds())
	for _, f := range status.Fills {
		x.gauge("limit_used_ratio", "Share of a limit in use; at 1 more is refused.",
			float64(f.Used)/float64(max(f.Max, 1)), "what", f.Kind)
	}
	for what, n := range map[string]uint64{
		"vertices": status.Graph.Vertices,
		"edges":    status.Graph.Edges,
	} {
		x.gauge("graph", "Vertices and edges in the store, without erased ones.", float64(n),
			"what", what)
	}
	x.collectState(&status)
	x.collectModels(status.Models)
}

// collectState tells of the checkpoints and the quarantine.
func (x *collection) collectState(s *Status) {
	c, q := cmp.Or(s.Checkpoint, &Checkpoint{}), s.Quarantine
	if !c.At.IsZero() {
		x.gauge("checkpoint_position",
			"Position of the newest checkpoint; absent without a checkpoint, like the next three.",
			float64(c.Position))
		x.gauge("checkpoint_age_seconds", "Seconds since the newest checkpoint.",
			x.now.Sub(c.At).Seconds())
		x.gauge("checkpoint_seconds", "Duration of the newest checkpoint.", c.Seconds)
		x.gauge("checkpoint_bytes", "Size of the newest checkpoint.", float64(c.Bytes))
	}
	x.count("checkpoint_failures_total", "Checkpoints that failed.", c.Failed)
	x.count("refused_without_entry_total", "Refusals that another entry of the quarantine "+
		"counts: a message has at most 100 entries, a step 1,000.", s.LeftOut)
	x.gauge("quarantine_entries", "Entries of the quarantine.", float64(q.Entries))
	x.gauge("quarantine_used_ratio",
		"Share of the quarantine's bytes in use; at 1 the oldest entries go.",
		float64(q.Bytes)/float64(max(q.BytesMax, 1)))
	x.count("quarantine_removed_total",
		"Entries of the quarantine that are gone by space, age or purge.", q.Removed)
}

func (x *collection) collectModels(models []Model) {
	for _, v := range models {
		x.gauge("model_drift",
			"Evidence that the version is worse than at first; 0 is none, at 1 it is flagged.",
			v.Drift, "version", v.Version)
		x.gauge("model_degraded", "1 while its estimates have the flag classifier-drift.",
			boolean(v.Degraded), "version", v.Version)
		for _, c := range v.Classes {
			of := []string{"version", v.Version, "class", c.Class}
			x.count("model_judged_total", "Calibration labels of this true class that were "+
				"compared with a prediction of this version.", c.Judged, of...)
			x.gauge("model_accuracy",
				"Share of them for which the prediction named this class, fading over 200 labels.",
				c.Accuracy, of...)
			x.gauge("model_brier", "Fading mean of its Brier score, 0 to 2.", c.Brier, of...)
			x.gauge("model_log_score", "Fading mean of its log score.", c.LogScore, of...)
			if c.Reference != nil {
				x.gauge("model_accuracy_reference", "The same share over the first hundred "+
					"labels; absent before.",
					*c.Reference, of...)
			}
		}
	}
}

func (x *collection) collectSinks() {
	for _, s := range x.config.Sinks() {
		of := sinkLabels(&s)
		x.gauge("sink_up", "1 when the sink accepts records; 0 while it fails and is tried "+
			"again, or the loop waits for it.", boolean(s.Condition == request.Delivering), of...)
		x.gauge("sink_holding",
			"1 while the run loop waits for the sink; after 5 s /readyz names it.",
			boolean(s.Condition == request.Holding), of...)
		x.count("sink_retries_total", "Failed attempts of the sink; each is repeated.", s.Retries,
			of...)
		if s.Follows {
			x.gauge("sink_behind", "Messages of the output log that the follower has not taken; "+
				"absent for other sinks, like the next one.", float64(s.Behind), of...)
			x.gauge("sink_position",
				"Position of the log up to which the output of the follower is durable.",
				float64(s.Position), of...)
		}
	}
}

func (x *collection) collectAlerts() {
	b := &x.alertBoard
	b.mu.RLock()
	defer b.mu.RUnlock()
	x.gauge("alerts_dropped", "Alerts beyond 100,000, which are not evaluated.",
		float64(b.now.Dropped))
	for _, c := range b.now.Rules {
		for state, n := range map[alerts.State]int{
			alerts.Inactive: c.Inactive,
			alerts.Pending:  c.Pending,
			alerts.Firing:   c.Firing,
		} {
			x.gauge("alerts",
				"Alerts, one for each community and class, that are inactive, pending or firing.",
				float64(n), "rule", c.Rule, "state", string(state))
		}
		x.gauge("alerts_suppressed",
			"Alerts that a flag of their estimate keeps from beginning and ending.",
			float64(c.Suppressed), "rule", c.Rule)
		x.gauge("alerts_no_data", "Alerts whose community has no data.", float64(c.NoData), "rule",
			c.Rule)
		x.count("alerts_fired_total", "Alerts that began to fire.", b.now.Fired[c.Rule], "rule",
			c.Rule)
	}
	for _, t := range b.now.Targets {
		x.gauge("notify_queue",
			"Transitions that wait for a webhook; alerts that an Alertmanager gets.",
			float64(t.Queue), "target", t.Name)
		for outcome, n := range t.Outcomes {
			x.count("notify_attempts_total", "Attempts to reach a target: delivered, failed "+
				"(tried again), dropped (given up), skipped (older than "+
				"max_age).", n, "target", t.Name, "outcome", outcome)
		}
	}
}
