package web

import (
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"gqlstream/alerts"
)

// Bounds of what is kept and answered of alerts.
const (
	transitionsMax = 2_000 // the newest, for marks in the charts
	alertsDefault  = 200
	alertsMax      = 1_000
)

// Alerts is what the run loop knows of alerts. Its slices become the server's.
type Alerts struct {
	Active  []alerts.Alert  // pending and firing, firing first
	Rules   []alerts.Counts // in the order of the rules
	Fired   map[string]uint64
	Dropped uint64 // alerts beyond alerts.AlertsMax
	Targets []Target
}

// Target is someone who is told of alerts.
type Target struct {
	Name     string            `json:"name"`
	Outcomes map[string]uint64 `json:"outcomes"` // of attempts
	Queue    uint64            `json:"queue"`
	Error    string            `json:"error"` // of the last attempt; empty: it went well
}

// alertBoard keeps the last Alerts, and the newest transitions.
type alertBoard struct {
	mu     sync.RWMutex
	now    Alerts
	recent []alerts.Transition // oldest first
}

// SetAlerts replaces what is shown of alerts.
func (s *Server) SetAlerts(a Alerts) {
	s.alerts.mu.Lock()
	defer s.alerts.mu.Unlock()
	s.alerts.now = a
}

// AddTransitions adds beginnings and ends of alerts, oldest first, for the charts.
func (s *Server) AddTransitions(list []alerts.Transition) {
	b := &s.alerts
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recent = append(b.recent, list...)
	if over := len(b.recent) - transitionsMax; over > 0 {
		b.recent = slices.Delete(b.recent, 0, over)
	}
}

// alertsAnswer is what fires, and what began and ended.
type alertsAnswer struct {
	Firing      int                 `json:"firing"` // altogether, of all communities
	Pending     int                 `json:"pending"`
	Active      []alertAnswer       `json:"active"`      // firing first
	Transitions []alerts.Transition `json:"transitions"` // newest first
	Rules       []ruleAnswer        `json:"rules"`
	Targets     []Target            `json:"targets"`
	Dropped     uint64              `json:"dropped"`
}

// alertAnswer is one alert that is pending or firing.
type alertAnswer struct {
	alerts.Transition
	Now string `json:"now"`
}

type ruleAnswer struct {
	Rule       string `json:"rule"`
	Inactive   int    `json:"inactive"`
	Pending    int    `json:"pending"`
	Firing     int    `json:"firing"`
	Suppressed int    `json:"suppressed"`
	NoData     int    `json:"no_data"`
}

func (s *Server) serveAlerts(w http.ResponseWriter, _ *http.Request, query url.Values) {
	limit, err := readInt(query, "limit", alertsDefault, 1, alertsMax)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, s.alerts.answer(query.Get("community"), query.Has("community"), limit))
}

// answer describes the alerts of one community, or of all.
func (b *alertBoard) answer(community string, only bool, limit int) alertsAnswer {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := alertsAnswer{
		Active: []alertAnswer{}, Transitions: []alerts.Transition{}, Rules: []ruleAnswer{},
		Targets: []Target{}, Dropped: b.now.Dropped,
	}
	for _, c := range b.now.Rules {
		out.Firing, out.Pending = out.Firing+c.Firing, out.Pending+c.Pending
		out.Rules = append(out.Rules, ruleAnswer(c))
	}
	for _, a := range b.now.Active {
		if (!only || a.Community == community) && len(out.Active) < limit {
			out.Active = append(out.Active, alertAnswer{a.Transition, a.Now})
		}
	}
	for _, t := range slices.Backward(b.recent) {
		if (!only || t.Community == community) && len(out.Transitions) < limit {
			out.Transitions = append(out.Transitions, t)
		}
	}
	out.Targets = append(out.Targets, b.now.Targets...)
	return out
}

// alertDescs are the metrics of alerts.
type alertDescs struct {
	alerts, fired, suppressed, noData, dropped, told, queue *prometheus.Desc
}

func (m *metrics) describeAlerts(desc describe) {
	m.alerts = alertDescs{
		alerts:     desc("alerts", "Alerts by rule and state.", "rule", "state"),
		fired:      desc("alerts_fired_total", "Alerts that began to fire.", "rule"),
		suppressed: desc("alerts_suppressed", "Alerts whose estimate decides nothing because of a flag.", "rule"),
		noData:     desc("alerts_no_data", "Alerts whose community has no data.", "rule"),
		dropped:    desc("alerts_dropped", "Alerts that are not evaluated because there are too many."),
		told:       desc("notify_attempts_total", "Attempts to tell a target of alerts.", "target", "outcome"),
		queue:      desc("notify_queue", "Transitions that wait for a webhook; alerts that an Alertmanager is told.", "target"),
	}
}

func (m *metrics) collectAlerts(ch chan<- prometheus.Metric) {
	b, d := &m.server.alerts, &m.alerts
	b.mu.RLock()
	defer b.mu.RUnlock()
	gauge(ch, d.dropped, float64(b.now.Dropped))
	for _, c := range b.now.Rules {
		gauge(ch, d.alerts, float64(c.Inactive), c.Rule, string(alerts.Inactive))
		gauge(ch, d.alerts, float64(c.Pending), c.Rule, string(alerts.Pending))
		gauge(ch, d.alerts, float64(c.Firing), c.Rule, string(alerts.Firing))
		gauge(ch, d.suppressed, float64(c.Suppressed), c.Rule)
		gauge(ch, d.noData, float64(c.NoData), c.Rule)
		count(ch, d.fired, b.now.Fired[c.Rule], c.Rule)
	}
	for _, t := range b.now.Targets {
		gauge(ch, d.queue, float64(t.Queue), t.Name)
		for outcome, n := range t.Outcomes {
			count(ch, d.told, n, t.Name, outcome)
		}
	}
}
