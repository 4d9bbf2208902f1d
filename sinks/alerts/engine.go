package alerts

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"gqlstream/quant"
	"gqlstream/quant/difference"
)

// Engine is the state of all alerts. One goroutine owns it.
type Engine struct {
	config  Config // rules with their defaults
	list    []*alert
	of      map[string][]*alert // by community, once matched; empty: no rule is about it
	there   map[string][]*alert // by community, of list, where not matched yet
	due     int64               // the earliest of all
	now     int64               // log time of the last emission
	Dropped uint64              // alerts that there was no room for

	differences difference.Fold // that rules are about
	tails       []*tail         // by rule, of changes and CUSUMs
	series      []int           // alerts, by rule
	budgeted    int             // rules that share the budget
	ended       []Transition    // not long ago, oldest first
	quietings   []Quieting      // in force, oldest first
}

// Ends are kept for a while, for targets that deliver them again.
const (
	endedKept = 15 * time.Minute // of log time
	endedMax  = 10_000
)

// Ended returns the ends of the last minutes of log time, oldest first. A caller that has taken
// Active before finds here each alert that was active earlier and was not then.
func (e *Engine) Ended() []Transition { return slices.Clone(e.ended) }

// keepEnd keeps an end, and forgets old ones.
func (e *Engine) keepEnd(t *Transition, now int64) {
	old := func(t Transition) bool {
		at, err := time.Parse(time.RFC3339Nano, t.Time)
		return err == nil && now-at.UnixNano() > int64(endedKept)
	}
	e.ended = append(slices.DeleteFunc(e.ended, old), *t)
	e.ended = e.ended[max(0, len(e.ended)-endedMax):]
}

// Moment is an emission of the log.
type Moment struct {
	Position uint64
	Time     int64 // log time, nanoseconds since 1970; 0: the log has none
	Notes    []string
}

// New returns an engine without firing alerts.
func New(c Config) (*Engine, error) {
	e := &Engine{}
	return e, e.Configure(c)
}

// Configure replaces the rules, from the next emission on. An alert of a rule that has not changed
// stays as it is. Where a rule of the same name is another now, firing stays firing until the new
// rule says otherwise, and detectors that compare with the past begin again. Alerts without a
// rule are resolved at the next emission. A configuration that is not valid changes nothing.
func (e *Engine) Configure(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	rules := make([]Rule, len(c.Rules))
	wanted := difference.Fold{}
	for i, r := range c.Rules {
		rules[i] = r.WithDefaults()
		for _, name := range rules[i].literals() {
			wanted.Want(name, e.differences)
		}
	}
	e.differences = wanted
	c.Rules = rules
	c.Budget = cmp.Or(c.Budget, BudgetDefault)
	e.keepTails(rules)
	if !slices.Equal(e.config.Classes, c.Classes) {
		e.list = nil // another pipeline altogether
	}
	e.config = c
	for _, a := range e.list {
		e.attach(a)
	}
	e.index()
	for i := range rules {
		for _, community := range rules[i].literals() {
			e.alertsOf(community)
		}
	}
	e.due = 0
	return nil
}

// index clears the table of rules by community; the next estimates fill it again.
func (e *Engine) index() {
	e.of = map[string][]*alert{}
	e.there = map[string][]*alert{}
	e.Dropped = 0
	e.series, e.budgeted = make([]int, len(e.config.Rules)), 0
	for _, a := range e.list {
		if a.rule != nil {
			e.there[a.Community] = append(e.there[a.Community], a)
			e.series[a.at]++
		}
	}
	for _, r := range e.config.Rules {
		if r.When.Budgeted {
			e.budgeted++
		}
	}
}

// keepTails keeps the learned tails of the rules that stay.
func (e *Engine) keepTails(rules []Rule) {
	tails := make([]*tail, len(rules))
	for i := range rules {
		tails[i] = &tail{}
		same := func(r Rule) bool { return r.Name == rules[i].Name && r.learnsAs(&rules[i]) }
		if at := slices.IndexFunc(e.config.Rules, same); at >= 0 {
			tails[i] = e.tails[at]
		}
	}
	e.tails = tails
}

// learnsAs reports whether two rules look at the same statistic.
func (r *Rule) learnsAs(other *Rule) bool {
	return r.When.Quantity == other.When.Quantity && r.window() == other.window() &&
		r.Drift == other.Drift
}

// often returns how many false alarms a window the budget leaves for one series of a rule.
func (e *Engine) often(at int) float64 {
	r := &e.config.Rules[at]
	if !r.When.Budgeted {
		return 0
	}
	windows := float64(max(e.series[at], 1)) / r.window().Hours()
	return e.config.Budget.perHour() / float64(e.budgeted) / windows
}

// learned returns the tail of the rule of an alert, and its part of the budget; see often.
func (e *Engine) learned(a *alert) (*tail, float64) {
	if a.rule == nil {
		return nil, 0
	}
	return e.tails[a.at], e.often(a.at)
}

// attach gives an alert its rule among those of the new configuration.
func (e *Engine) attach(a *alert) {
	was := a.rule
	a.rule = nil
	at := slices.IndexFunc(e.config.Rules, func(r Rule) bool { return r.Name == a.Rule })
	if at < 0 {
		a.Gone = "the rule was removed"
		return
	}
	r := &e.config.Rules[at]
	if !r.about(a.Community) || !r.Classes.Match(e.config.Classes[a.Class]) {
		a.Gone = "the rule no longer covers it"
		return
	}
	a.rule, a.at, a.Gone = r, at, ""
	if was == nil || !bytes.Equal(encode(was), encode(r)) { // they evaluate otherwise
		a.Detector.restart()
		a.Due = 0
	}
}

// Evaluate takes the estimates of an emission, by community and then in the order
// of the configuration, and returns the transitions, sorted by rule, community and
// class. It must be called at every emission, with or without estimates.
func (e *Engine) Evaluate(m Moment, estimates []quant.Estimate) []Transition {
	if len(e.config.Rules) == 0 && len(e.list) == 0 {
		return nil
	}
	if m.Time < e.now {
		e.setClock(m.Time)
	}
	e.now = m.Time
	for _, text := range m.Notes {
		e.applyNote(text, m.Time)
	}
	if list := e.differences.Take(estimates); len(list) > 0 {
		estimates = slices.Concat(estimates, list)
	}
	var out []Transition
	for len(estimates) > 0 {
		n := 1
		for n < len(estimates) && estimates[n].Community == estimates[0].Community {
			n++
		}
		for _, a := range e.alertsOf(estimates[0].Community) {
			if record := a.pick(estimates[:n]); record != nil {
				a.Method = record.Method
				a.Detector.observe(a.rule, record, a.Class, m.Time)
				out = e.evaluate(out, a, true, m)
			}
		}
		estimates = estimates[n:]
	}
	return e.finish(e.evaluateDue(out, m))
}

// setClock follows log time to the earlier time now, after a clock event: later times in the state
// become now, and every alert is evaluated.
func (e *Engine) setClock(now int64) {
	for _, a := range e.list {
		a.Since, a.Base.Cell, a.Due = min(a.Since, now), min(a.Base.Cell, now), 0
		a.Detector.setClock(a.rule, now)
	}
	e.due = 0
}

// pick returns the estimate that the alert is about; a community that is
// suppressed has one without a method.
func (a *alert) pick(estimates []quant.Estimate) *quant.Estimate {
	for i := range estimates {
		if e := &estimates[i]; a.rule.Method == "" || e.Method == a.rule.Method || e.Suppressed {
			return e
		}
	}
	return nil
}

// alertsOf returns the alerts of a community, which it makes the first time.
func (e *Engine) alertsOf(community string) []*alert {
	if list, ok := e.of[community]; ok {
		return list
	}
	community = strings.Clone(community)
	there := e.there[community]
	delete(e.there, community)
	var list []*alert
	for at := range e.config.Rules {
		r := &e.config.Rules[at]
		if !r.about(community) {
			continue
		}
		for class, name := range e.config.Classes {
			i := slices.IndexFunc(there,
				func(a *alert) bool { return a.at == at && a.Class == class })
			switch {
			case !r.Classes.Match(name):
			case i >= 0:
				list = append(list, there[i])
			case len(e.list) >= alertsMax:
				e.Dropped++
			default:
				a := &alert{
					Community: community,
					Class:     class,
					Rule:      r.Name,
					State:     Inactive,
					rule:      r,
					at:        at,
				}
				list, e.list = append(list, a), append(e.list, a)
				e.series[at]++
				e.due = 0
			}
		}
	}
	e.of[community] = list
	return list
}

// evaluate moves one alert and appends the transition, if there is one.
func (e *Engine) evaluate(out []Transition, a *alert, fresh bool, m Moment) []Transition {
	t, often := e.learned(a)
	if entered := e.step(a, t, often, fresh, m.Time); entered != "" {
		if entered == Firing {
			a.Base = a.begins(m.Time)
		}
		one := a.transition(&e.config, t, often, entered, m)
		out, a.Last = append(out, one), &one
		if entered == Resolved {
			a.State, a.Since = Inactive, m.Time
			e.keepEnd(&one, m.Time)
		}
	}
	e.due = min(e.due, a.Due, a.forgottenAt())
	return out
}

// step moves one alert and returns the state that it enters, or "". A silence ends a firing
// alert and prevents others.
func (e *Engine) step(a *alert, t *tail, often float64, fresh bool, now int64) State {
	silence := e.quieted(a, false, now)
	if a.quiet = silence; silence != nil && a.State == Firing {
		return Resolved
	}
	since := a.Since
	entered := a.step(t, often, fresh, now)
	if silence != nil && entered == Firing {
		a.State, a.Since = Pending, since
		a.Due = min(a.Due, silence.until())
		return ""
	}
	return entered
}

// evaluateDue moves the alerts that are due by time alone, and those without a rule. It deletes
// these, and those of deleted communities, so that there is space for others.
func (e *Engine) evaluateDue(out []Transition, m Moment) []Transition {
	if m.Time < e.due {
		return out
	}
	e.due = dueNever
	for _, a := range e.list {
		if a.rule == nil || m.Time >= a.Due ||
			a.State == Firing && len(m.Notes) > 0 && e.quieted(a, false, m.Time) != nil {
			out = e.evaluate(out, a, false, m)
		}
		e.due = min(e.due, a.Due, a.forgottenAt())
	}
	n := len(e.list)
	if e.list = slices.DeleteFunc(e.list,
		func(a *alert) bool { return m.Time >= a.forgottenAt() }); len(e.list) < n {
		e.index()
	}
	return out
}

// finish puts the transitions of an emission into their order.
func (e *Engine) finish(out []Transition) []Transition {
	order := map[string]int{}
	for i, r := range e.config.Rules {
		order[r.Name] = i
	}
	slices.SortStableFunc(out, func(a, b Transition) int {
		return cmp.Or(cmp.Compare(order[a.Rule], order[b.Rule]), strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Community, b.Community), cmp.Compare(
				slices.Index(e.config.Classes, a.Class), slices.Index(e.config.Classes, b.Class)))
	})
	return out
}

// Active returns the alerts that are pending or firing, firing first, then by rule,
// community and class. It takes microseconds for each, so not every emission needs it.
func (e *Engine) Active() []Alert {
	var list []*alert
	for _, a := range e.list {
		if a.State != Inactive && a.rule != nil {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b *alert) int {
		return cmp.Or(strings.Compare(string(a.State), string(b.State)),
			strings.Compare(a.Rule, b.Rule), strings.Compare(a.Community, b.Community),
			strings.Compare(e.config.Classes[a.Class], e.config.Classes[b.Class]))
	})
	out := make([]Alert, len(list))
	for i, a := range list {
		t, often := e.learned(a)
		now := a.transition(&e.config, t, often, Pending, Moment{Time: a.Detector.At})
		out[i].Transition = now
		if a.State == Firing && a.Last != nil {
			out[i].Transition = *a.Last
		}
		out[i].State, out[i].Now = a.State, now.Text
		out[i].Acknowledged = e.quieted(a, true, a.Detector.At)
	}
	return out
}
