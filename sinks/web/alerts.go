package web

import (
	"context"
	"slices"
	"sync"

	"gqlstream/alerts"
	"gqlstream/sinks"
)

// Bounds of what is kept and answered of alerts.
const (
	transitionsMax = 2_000 // the newest, for marks in the charts
	NotesMax       = 1_000 // the same
	alertsDefault  = 200
	alertsMax      = 1_000
)

// Alerts lists the alerts for the page and the API. The server takes over its slices.
type Alerts struct {
	Active  []alerts.Alert  // pending and firing, firing first
	Rules   []alerts.Counts // in the order of the rules
	Fired   map[string]uint64
	Dropped uint64 // alerts beyond alerts.AlertsMax
	Targets []Target
}

// Target is one receiver of alerts.
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
	notes  []sinks.Note        // the same
}

// AddNotes adds notes of the log, oldest first, for the charts.
func (v *view) AddNotes(list []sinks.Note) {
	v.alerts.mu.Lock()
	defer v.alerts.mu.Unlock()
	v.alerts.notes = append(v.alerts.notes, list...)
	v.alerts.notes = v.alerts.notes[max(0, len(v.alerts.notes)-NotesMax):]
}

// SetAlerts replaces the alerts that are shown.
func (v *view) SetAlerts(a Alerts) {
	v.alerts.mu.Lock()
	defer v.alerts.mu.Unlock()
	v.alerts.now = a
}

// AddTransitions adds beginnings and ends of alerts, oldest first, for the charts.
func (v *view) AddTransitions(list []alerts.Transition) {
	v.alerts.mu.Lock()
	defer v.alerts.mu.Unlock()
	v.alerts.recent = append(v.alerts.recent, list...)
	v.alerts.recent = v.alerts.recent[max(0, len(v.alerts.recent)-transitionsMax):]
}

// alertsAnswer lists the firing alerts and the newest transitions.
type alertsAnswer struct {
	Firing      int                 `json:"firing"` // altogether, of all communities
	Pending     int                 `json:"pending"`
	Active      []alerts.Alert      `json:"active"`      // firing first
	Transitions []alerts.Transition `json:"transitions"` // newest first
	Notes       []sinks.Note        `json:"notes"`       // what the log says to people, oldest first
	Rules       []alerts.Counts     `json:"rules"`
	Targets     []Target            `json:"targets"`
	Dropped     uint64              `json:"dropped"`
}

func askAlerts(_ context.Context, v *view, q *asked) (any, error) {
	limit := q.number("limit", alertsDefault, 1, alertsMax)
	return v.alerts.answer(q.query.Get("community"), q.query.Has("community"), limit), nil
}

// answer describes the alerts of one community, or of all.
func (b *alertBoard) answer(community string, only bool, limit int) alertsAnswer {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := alertsAnswer{
		Active: []alerts.Alert{}, Transitions: []alerts.Transition{}, Rules: append([]alerts.Counts{}, b.now.Rules...), Notes: append([]sinks.Note{}, b.notes...),
		Targets: append([]Target{}, b.now.Targets...), Dropped: b.now.Dropped,
	}
	for _, c := range b.now.Rules {
		out.Firing, out.Pending = out.Firing+c.Firing, out.Pending+c.Pending
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
	return out
}
