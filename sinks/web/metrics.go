package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gqlstream/quant"
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
	m.step.Observe(s.Step.Seconds())
	for _, st := range s.Stages {
		m.stages.WithLabelValues(st.Name).Observe(st.Took.Seconds())
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
