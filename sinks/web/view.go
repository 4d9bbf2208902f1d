package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"gqlstream/alerts"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/notify"
)

// view holds all that the page and the API show of the pipeline. Questions come over HTTP or
// NATS. Any goroutine may ask a view and tell it news.
type view struct {
	config   Config
	instance string // differs after a restart, so that pages know to read anew
	started  time.Time

	store   *store
	journal journal
	orders  orderCache
	pages   chan struct{} // large ones that are being made
	alerts  alertBoard
	metrics *metrics

	waiting chan struct{} // explanations, and whom to label: one in turn, and those that wait
	turn    chan struct{}
	life    context.Context //nolint:containedctx // of what is made in turn
	end     context.CancelFunc
}

func newView(c Config) *view {
	v := &view{
		config: c, started: time.Now(), store: newStore(c), pages: make(chan struct{}, largePagesMax),
		waiting: make(chan struct{}, 1+explainQueueMax), turn: make(chan struct{}, 1),
	}
	v.life, v.end = context.WithCancel(context.Background())
	v.instance = strconv.FormatInt(v.started.UnixNano(), 36)
	v.metrics = newMetrics(v)
	return v
}

// Write stores the estimates of a position, whose lists become the server's. It never waits for a
// reader. Estimates with another number of classes are left out, and counted.
func (v *view) Write(estimates []quant.Estimate) { v.store.write(estimates, time.Now()) }

// Load stores estimates that were published before this server began, the latest of each community
// say. They count as received at their log time. Call it before the first Write.
func (v *view) Load(estimates []quant.Estimate) {
	slices.SortStableFunc(estimates, func(a, b quant.Estimate) int { return cmp.Compare(a.Position, b.Position) })
	v.store.write(estimates, time.Time{})
}

// Recall tells what roll-ups of a community by a method, oldest first, say of the day before the estimates of
// Load, for the trend and the change of the list. Call it after Load and before the first Write.
func (v *view) Recall(community, method string, rollups []sinks.Rollup) {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byName[community]
	if c == nil || c.find(method) == nil {
		return
	}
	ser, limit := c.find(method), pastLimit(s.newest.Len(), s.classes)
	ser.past = nil
	for i := range rollups {
		if r := &rollups[i]; len(r.Last) == s.classes && r.Until.Before(ser.latest.at) {
			ser.keep(point{at: r.Until, shares: wide(r.Last), rests: !slices.Contains(r.Flags, quant.FlagNoLabels)}, limit)
		}
	}
	ser.add(ser.latest, limit)
}

// Status stores what the run loop says of itself. It is cheap: call it after
// every step. Maps and lists become the server's.
func (v *view) Status(status Status) {
	v.metrics.observe(status)
	v.journal.push(status, time.Now())
}

// Progress says in one line what a long step is doing, "" when it has ended, and where the stream
// ends now, 0 if that is not known: what waits behind the step is lag. Any goroutine calls it, once a
// second say, while the run loop cannot report.
func (v *view) Progress(text string, end uint64) { v.journal.progress(text, end, time.Now()) }

// Define sets how communities are defined, in words for people, in place of all earlier
// definitions. Communities without a definition may be left out. The map becomes the server's.
func (v *view) Define(definitions map[string]string) {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	v.store.definitions = definitions
}

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
	Targets []notify.Stats
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
	Targets     []notify.Stats      `json:"targets"`
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
		Targets: append([]notify.Stats{}, b.now.Targets...), Dropped: b.now.Dropped,
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
