package web

import (
	"context"
	"slices"
	"sync"

	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
	"gqlstream/sinks/notify"
)

// Bounds of the alerts that are kept and listed.
const (
	transitionsMax = 2_000 // the newest, for marks in the charts
	NotesMax       = 1_000 // the same
	alertsDefault  = 200
	alertsMax      = 1_000
)

// Alerts lists the alerts for the page and the API. The server takes over its slices.
type Alerts struct {
	Active  []alerts.Alert    `json:"active"` // pending and firing, firing first
	Rules   []alerts.Counts   `json:"rules"`  // in the order of the rules
	Fired   map[string]uint64 `json:"-"`
	Dropped uint64            `json:"dropped"` // alerts that there was no room for

	Silences []alerts.Quieting `json:"silences"` // in force, and acknowledgements
	Targets  []notify.Stats    `json:"targets"`
}

// alertBoard keeps the last Alerts, and the newest transitions.
type alertBoard struct {
	mu     sync.RWMutex
	now    Alerts
	recent []alerts.Transition // oldest first
	notes  []sinks.Note        // the same
}

// AddNotes adds notes of the log, oldest first, for the charts.
func (b *alertBoard) AddNotes(list []sinks.Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, list...)
	b.notes = b.notes[max(0, len(b.notes)-NotesMax):]
}

// SetAlerts replaces the alerts that are shown.
func (b *alertBoard) SetAlerts(a Alerts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = a
}

// AddTransitions adds beginnings and ends of alerts, oldest first, for the charts.
func (b *alertBoard) AddTransitions(list []alerts.Transition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recent = append(b.recent, list...)
	b.recent = b.recent[max(0, len(b.recent)-transitionsMax):]
}

// alertsAnswer lists the firing alerts and the newest transitions.
type alertsAnswer struct {
	Alerts
	Firing      int                 `json:"firing"` // altogether, of all communities
	Pending     int                 `json:"pending"`
	Transitions []alerts.Transition `json:"transitions"` // newest first
	// messages of the log for people, oldest first
	Notes  []sinks.Note `json:"notes"`
	Levels []alertLevel `json:"levels"` // that rules watch in the community, for its chart
}

// alertLevel is the share where a rule on a class of a community begins to fire.
type alertLevel struct {
	Rule  string `json:"rule"`
	Class string `json:"class"`
	alerts.Level
}

// levels returns the thresholds of the rules on a community.
func levels(rules []alerts.Counts, community string, classes []string) []alertLevel {
	out := []alertLevel{}
	for _, r := range rules {
		for _, class := range classes {
			if r.Level != nil && r.Level.Watches(community, class) {
				out = append(out, alertLevel{r.Rule, class, *r.Level})
			}
		}
	}
	return out
}

// askAlerts describes the alerts of one community, or of all.
func askAlerts(_ context.Context, s *Server, q *params) (any, error) {
	limit := q.number("limit", alertsDefault, 1, alertsMax)
	community := q.query.Get("community")
	only := q.query.Has("community")
	b := &s.alertBoard
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := alertsAnswer{
		Alerts:      b.now,
		Transitions: []alerts.Transition{},
		Notes:       append([]sinks.Note{}, b.notes...),
	}
	out.Active, out.Rules, out.Targets = []alerts.Alert{}, append(
		[]alerts.Counts{},
		b.now.Rules...), append([]notify.Stats{}, b.now.Targets...)
	out.Silences = append([]alerts.Quieting{}, b.now.Silences...)
	for _, c := range b.now.Rules {
		out.Firing = out.Firing + c.Firing
		out.Pending = out.Pending + c.Pending
	}
	out.Levels = []alertLevel{}
	if only {
		out.Levels = levels(b.now.Rules, community, s.config.Classes)
	}
	for _, a := range b.now.Active {
		if (!only || a.Community == community) && len(out.Active) < limit {
			out.Active = append(out.Active, a)
		}
	}
	for _, t := range slices.Backward(b.recent) {
		if (!only || t.Community == community) && len(out.Transitions) < limit {
			out.Transitions = append(out.Transitions, t)
		}
	}
	return out, nil
}
