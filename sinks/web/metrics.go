package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gqlstream/quant"
)

const (
	scrapesMax    = 4 // at a time
	scrapeWaitMax = 10 * time.Second
)

// metrics reads the store and the journal when Prometheus asks, so that the
// number of communities costs nothing in between. Only durations of steps are
// counted as they come. docs/metrics.md lists what it exports.
type metrics struct {
	server *Server
	step   prometheus.Histogram
	stages *prometheus.HistogramVec
	all    []*prometheus.Desc
	gauges estimateDescs
	loop   loopDescs
	sinks  sinkDescs
	models modelDescs
	web    webDescs
	alerts alertDescs
}

// estimateDescs are the gauges of one community and method.
type estimateDescs struct {
	share, low, high, se, nEff                 *prometheus.Desc // by class too
	certificate, freshness, members, coverage  *prometheus.Desc
	labelled, lambda, flag, suppressed, logged *prometheus.Desc
}

// loopDescs are what the run loop says of itself.
type loopDescs struct {
	events, refused, late, mismatches, position, lag, logTime, steps, ready, worst, engine *prometheus.Desc
	checkpointPosition, checkpointTime                                                     *prometheus.Desc
	checkpointTook, checkpointBytes, checkpointFailed, graph                               *prometheus.Desc
}

// webDescs are about this package.
type webDescs struct {
	communities, notExported, dropped, streams, streamsDropped, streamsRefused, info *prometheus.Desc
}

func newMetrics(s *Server) *metrics {
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	m := &metrics{server: s}
	m.step = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "gqlstream_step_seconds", Help: "Duration of a step.", Buckets: buckets,
	})
	m.stages = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gqlstream_stage_seconds", Help: "Duration of a stage of a step.", Buckets: buckets,
	}, []string{"stage"})
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc("gqlstream_"+name, help, labels, nil)
		m.all = append(m.all, d)
		return d
	}
	m.describeEstimates(desc)
	m.describeLoop(desc)
	m.describeAlerts(desc)
	m.describeSinks(desc)
	m.describeModels(desc)
	m.web = webDescs{
		communities:    desc("communities", "Communities with an estimate."),
		notExported:    desc("metrics_communities_dropped", "Communities left out of the metrics because there are too many."),
		dropped:        desc("web_estimates_dropped_total", "Estimates not shown: one community too many, or not finite."),
		streams:        desc("web_streams", "Open event streams."),
		streamsDropped: desc("web_streams_slow_total", "Event streams closed because the client was too slow."),
		streamsRefused: desc("web_streams_refused_total", "Event streams refused because there were too many."),
		info:           desc("info", "Always 1.", "version", "pipeline"),
	}
	return m
}

type describe func(name, help string, labels ...string) *prometheus.Desc

func (m *metrics) describeEstimates(desc describe) {
	by := []string{"community", "method"}
	byClass := []string{"community", "method", "class"}
	m.gauges = estimateDescs{
		share:       desc("estimate", "Estimated share of a class in a community.", byClass...),
		low:         desc("estimate_low", "Low end of the interval.", byClass...),
		high:        desc("estimate_high", "High end of the interval.", byClass...),
		se:          desc("estimate_se", "Standard error of the share.", byClass...),
		nEff:        desc("estimate_n_eff", "Effective calibration labels of the class.", byClass...),
		certificate: desc("estimate_certificate", "Proven bound on the numerical error of the kernel.", by...),
		freshness:   desc("estimate_freshness_seconds", "Seconds since the estimate was last published.", by...),
		logged:      desc("estimate_log_time_seconds", "Log time of the estimate, Unix seconds.", by...),
		members:     desc("estimate_members", "Total multiplicity of the community's members.", by...),
		labelled:    desc("estimate_labelled", "Multiplicity of the members with a known label.", by...),
		coverage:    desc("estimate_coverage", "Share of the unlabelled members with a prediction.", by...),
		lambda:      desc("estimate_lambda", "Share of the kernel in the weights of the labels.", by...),
		suppressed:  desc("estimate_suppressed", "1 when the community is below the privacy floor.", by...),
		flag:        desc("estimate_flag", "1 for every flag that the estimate has.", "community", "method", "flag"),
	}
}

func (m *metrics) describeLoop(desc describe) {
	m.loop = loopDescs{
		events:             desc("events_total", "Events applied.", "kind"),
		refused:            desc("refused_total", "Messages and events put into the quarantine.", "reason"),
		late:               desc("late_total", "Events that came late, applied or put into the quarantine.", "kind"),
		mismatches:         desc("rule_mismatches_total", "Values that the rule of a community could not compare.", "community"),
		position:           desc("position", "Position of the last message applied."),
		lag:                desc("lag_messages", "Messages in the stream that are not applied yet."),
		logTime:            desc("log_time_seconds", "Log time, Unix seconds."),
		steps:              desc("steps_total", "Steps done."),
		ready:              desc("ready", "1 when the pipeline runs."),
		engine:             desc("engine", "1 for the engine that keeps the kernels.", "engine"),
		worst:              desc("certificate_max", "Largest certificate of all communities."),
		checkpointPosition: desc("checkpoint_position", "Position of the newest checkpoint."),
		checkpointTime:     desc("checkpoint_age_seconds", "Seconds since the newest checkpoint."),
		checkpointTook:     desc("checkpoint_seconds", "Duration of the newest checkpoint."),
		checkpointBytes:    desc("checkpoint_bytes", "Size of the newest checkpoint."),
		checkpointFailed:   desc("checkpoint_failures_total", "Checkpoints that failed."),
		graph:              desc("graph", "Things in the graph store.", "what"),
	}
}

// Describe sends every description, as prometheus.Collector asks.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.step.Describe(ch)
	m.stages.Describe(ch)
	for _, d := range m.all {
		ch <- d
	}
}

// observe counts the durations of a step.
func (m *metrics) observe(s Status) {
	if s.Steps == 0 {
		return
	}
	m.step.Observe(s.Step.Seconds())
	for _, st := range s.Stages {
		m.stages.WithLabelValues(st.Name).Observe(st.Took.Seconds())
	}
}

// Collect sends every metric, as prometheus.Collector asks.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	m.step.Collect(ch)
	m.stages.Collect(ch)
	m.collectLoop(ch, now)
	m.collectSinks(ch, now)
	m.collectWeb(ch)
	m.collectAlerts(ch)
	for _, c := range m.exported() {
		m.collectEstimate(ch, c, now)
	}
}

// exported returns the newest records of the first communities by order of
// mention: the choice is the same at every scrape.
func (m *metrics) exported() []*record {
	s := m.server.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := min(len(s.order), m.server.config.MetricsMax)
	var out []*record
	for _, c := range s.order[:n] {
		for _, ser := range c.series {
			out = append(out, ser.latest)
		}
	}
	return out
}

func (m *metrics) collectEstimate(ch chan<- prometheus.Metric, r *record, now time.Time) {
	e, d := &r.estimate, &m.gauges
	set := func(desc *prometheus.Desc, value float64) { gauge(ch, desc, value, e.Community, e.Method) }
	set(d.freshness, now.Sub(r.received).Seconds())
	set(d.suppressed, boolean(e.Suppressed))
	if !r.at.IsZero() {
		set(d.logged, float64(r.at.UnixMilli())/1000)
	}
	seen := map[string]bool{}
	for _, f := range e.Flags {
		if name := quant.FlagName(f); !seen[name] {
			seen[name] = true
			gauge(ch, d.flag, 1, e.Community, e.Method, name)
		}
	}
	if e.Suppressed {
		return
	}
	set(d.certificate, e.Certificate)
	set(d.members, e.Members)
	set(d.labelled, e.Labelled)
	set(d.coverage, e.Coverage)
	set(d.lambda, e.Lambda)
	for _, list := range []struct {
		desc   *prometheus.Desc
		values []float64
	}{{d.share, e.Prevalence}, {d.low, e.Low}, {d.high, e.High}, {d.se, e.SE}, {d.nEff, e.NEff}} {
		for k, v := range list.values {
			if k < len(m.server.config.Classes) {
				gauge(ch, list.desc, v, e.Community, e.Method, m.server.config.Classes[k])
			}
		}
	}
}

func (m *metrics) collectLoop(ch chan<- prometheus.Metric, now time.Time) {
	d := &m.loop
	status, _, _ := m.server.journal.read()
	for kind, n := range status.Events {
		count(ch, d.events, n, kind)
	}
	for reason, n := range status.Refused {
		count(ch, d.refused, n, reason)
	}
	for kind, n := range status.Late {
		count(ch, d.late, n, kind)
	}
	names := slices.Sorted(maps.Keys(status.Mismatches))
	for _, name := range names[:min(len(names), m.server.config.MetricsMax)] {
		count(ch, d.mismatches, status.Mismatches[name], name)
	}
	ready, _ := m.server.ready(now)
	gauge(ch, d.ready, boolean(ready))
	gauge(ch, d.position, float64(status.Position))
	gauge(ch, d.lag, float64(status.lag()))
	count(ch, d.steps, status.Steps)
	if status.Engine != "" {
		gauge(ch, d.engine, 1, status.Engine)
	}
	gauge(ch, d.worst, m.server.store.totals().certificate)
	if !status.LogTime.IsZero() {
		gauge(ch, d.logTime, float64(status.LogTime.UnixMilli())/1000)
	}
	if c := status.Checkpoint; !c.At.IsZero() {
		gauge(ch, d.checkpointPosition, float64(c.Position))
		gauge(ch, d.checkpointTime, now.Sub(c.At).Seconds())
		gauge(ch, d.checkpointTook, c.Took.Seconds())
		gauge(ch, d.checkpointBytes, float64(c.Bytes))
	}
	count(ch, d.checkpointFailed, status.Checkpoint.Failed)
	gauge(ch, d.graph, float64(status.Graph.Vertices), "vertices")
	gauge(ch, d.graph, float64(status.Graph.Edges), "edges")
	m.collectModels(ch, status.Models)
}

func (m *metrics) collectWeb(ch chan<- prometheus.Metric) {
	d, s := &m.web, m.server
	totals := s.store.totals()
	streams, dropped, refused := s.hub.counts()
	gauge(ch, d.communities, float64(totals.communities))
	gauge(ch, d.notExported, float64(max(0, totals.communities-s.config.MetricsMax)))
	count(ch, d.dropped, uint64(totals.dropped))
	gauge(ch, d.streams, float64(streams))
	count(ch, d.streamsDropped, dropped)
	count(ch, d.streamsRefused, refused)
	gauge(ch, d.info, 1, s.config.Version, s.config.Pipeline)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, valid(labels)...)
}

func count(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), valid(labels)...)
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
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesMax, Timeout: scrapeWaitMax,
	}).ServeHTTP(w, r)
}
