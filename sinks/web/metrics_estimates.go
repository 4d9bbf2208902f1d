package web

import (
	"strings"

	dto "github.com/prometheus/client_model/go"

	"gqlstream/quant"
)

// MetricsCommunitiesDefault is how many communities the metrics have where nothing is configured,
// and MetricsCommunitiesMax how many they can have: each has dozens of series.
const (
	MetricsCommunitiesDefault = 1_000
	MetricsCommunitiesMax     = 10_000
)

// communitiesExported returns how many communities the metrics have at most.
func (c HTTP) communitiesExported() int {
	if c.MetricsCommunities == nil {
		return MetricsCommunitiesDefault
	}
	return *c.MetricsCommunities
}

// estimateFamilies returns the metrics of the newest records of the first communities by order of
// mention: the choice is the same at every scrape. There may be 100,000 series, which the registry
// would take a second to collect, check and sort; these are written in order, once each.
func (s *Server) estimateFamilies() []*dto.MetricFamily {
	most := s.config.communitiesExported()
	if s.config.Deployment().Silent {
		most = 0
	}
	s.store.mu.RLock()
	n := len(s.order)
	dropped := s.dropped
	certificate := 0.0
	var list []*record
	var published []uint64
	for i, c := range s.order {
		for _, ser := range c.series {
			certificate = max(certificate, ser.latest.estimate.Certificate)
			if i < most {
				list, published = append(list, ser.latest), append(published, ser.published)
			}
		}
	}
	s.store.mu.RUnlock()
	f := &families{}
	f.add("certificate_max", "Largest certificate of all communities, exported or not.",
		certificate)
	f.add("communities", "Communities with an estimate.", float64(n))
	f.add("metrics_communities", "Communities in the metrics: of a group one worker has them.",
		float64(min(n, most)))
	left := max(0, n-most)
	if most == 0 {
		left = 0 // as configured, or because another worker has them
	}
	f.add("metrics_communities_dropped", "Communities beyond the limit of the metrics.",
		float64(left))
	f.add("info", "Always 1.", 1, label("config", s.config.Deployment().Config),
		label("pipeline", s.config.Pipeline), label("version", s.config.Version))
	f.count("web_estimates_dropped_total",
		"Estimates that are not shown: beyond the limit of communities, or with other classes.",
		uint64(dropped))
	classes := make([]*dto.LabelPair, len(s.config.Classes))
	for k, name := range s.config.Classes {
		classes[k] = label("class", name)
	}
	for i, r := range list {
		f.addEstimate(r, classes, published[i])
	}
	return f.list
}

// addEstimate adds the metrics of a record. Those of a class are labelled with it.
func (f *families) addEstimate(r *record, classes []*dto.LabelPair, published uint64) {
	e := &r.estimate
	community := label("community", e.Community)
	method := label("method", e.Method)
	f.count("estimate_records_total",
		"Published records of the estimate that this worker has seen: the cost of the community.",
		published, community, method)
	at := r.at
	if at.IsZero() {
		at = r.received
	}
	f.add("estimate_timestamp_seconds",
		"Log time of the estimate; a quiet community grows old without being wrong.",
		float64(at.UnixMilli())/1000, community, method)
	seen := map[string]bool{}
	for _, flag := range e.Flags {
		if name := quant.FlagName(flag); !seen[name] {
			seen[name] = true
			f.add("estimate_flag", "1 for every flag that the estimate has; absent otherwise.", 1,
				community, label("flag", name), method)
		}
	}
	if e.Suppressed {
		return
	}
	f.add("estimate_members", "Total multiplicity of the community's members.", e.Members,
		community, method)
	f.add("estimate_labelled", "Multiplicity of the members with a known label.", e.Labelled,
		community, method)
	f.add("estimate_coverage_ratio",
		"Share of the unlabelled members with a prediction; below 0.8 is flagged.", e.Coverage,
		community, method)
	if e.EvidenceAge > 0 {
		f.add("estimate_evidence_age_seconds",
			"How long ago members were observed last, on average.", e.EvidenceAge,
			community, method)
	}
	for _, of := range []struct {
		name, help string
		values     []float64
	}{
		{"estimate", "Estimated share of a class in a community.", e.Prevalence},
		{"estimate_low", "Low end of the interval.", e.Low},
		{"estimate_high", "High end of the interval.", e.High},
		{"estimate_se", "Standard error of the share.", e.SE},
		{"estimate_n_eff", "Effective calibration labels of the class; below 30 is thin.", e.NEff},
	} {
		for k, value := range of.values[:min(len(of.values), len(classes))] {
			f.add(of.name, of.help, value, classes[k], community, method)
		}
	}
}

// families collects metrics by name, in the order of first mention. Each series must be added once,
// with its labels in the order of their names.
type families struct {
	list   []*dto.MetricFamily
	byName map[string]*dto.MetricFamily
}

// add adds a value that may rise and fall.
func (f *families) add(name, help string, value float64, labels ...*dto.LabelPair) {
	family := f.family(name, help, dto.MetricType_GAUGE)
	family.Metric = append(family.Metric,
		&dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}})
}

// count adds a value that never falls.
func (f *families) count(name, help string, n uint64, labels ...*dto.LabelPair) {
	value := float64(n)
	family := f.family(name, help, dto.MetricType_COUNTER)
	family.Metric = append(family.Metric,
		&dto.Metric{Label: labels, Counter: &dto.Counter{Value: &value}})
}

func (f *families) family(name, help string, kind dto.MetricType) *dto.MetricFamily {
	if f.byName == nil {
		f.byName = map[string]*dto.MetricFamily{}
	}
	family := f.byName[name]
	if family == nil {
		full := "gqlstream_" + name
		family = &dto.MetricFamily{Name: &full, Help: &help, Type: &kind}
		f.byName[name] = family
		f.list = append(f.list, family)
	}
	return family
}

// label returns a label with a valid value: an invalid one would fail the whole scrape.
func label(name, value string) *dto.LabelPair {
	value = strings.ToValidUTF8(value, "\uFFFD")
	return &dto.LabelPair{Name: &name, Value: &value}
}
