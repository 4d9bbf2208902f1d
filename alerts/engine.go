package alerts

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"gqlstream/difference"
	"gqlstream/quant"
)

// Engine is the state of all alerts. One goroutine owns it.
type Engine struct {
	config  Config // rules with their defaults
	list    []*alert
	of      map[string][]*alert // by community, once matched; empty: no rule is about it
	there   map[string][]*alert // by community, of list, where not matched yet
	due     int64               // the earliest of all
	Dropped uint64              // alerts that there was no room for

	differences difference.Fold // that rules are about
}

// Moment is an emission of the log.
type Moment struct {
	Position uint64
	Time     int64 // log time, nanoseconds since 1970; 0: the log has none
}

// New returns an engine in which nothing fires.
func New(c Config) (*Engine, error) {
	e := &Engine{}
	return e, e.Configure(c)
}

// Configure replaces the rules, from the next emission on. An alert of a rule that has
// not changed stays as it is. Where a rule of the same name is another now, firing stays firing until the new
// rule says otherwise, and detectors that compare with the past begin again. What no rule is about
// any more is resolved at the next emission. A configuration that is not valid changes nothing.
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
			e.known(community)
		}
	}
	e.due = 0
	return nil
}

// index forgets which rules are about which community, to be matched anew.
func (e *Engine) index() {
	e.of, e.there, e.Dropped = map[string][]*alert{}, map[string][]*alert{}, 0
	for _, a := range e.list {
		if a.rule != nil {
			e.there[a.Community] = append(e.there[a.Community], a)
		}
	}
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
		a.Gone = "the rule is not about it any more"
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
	if list := e.differences.Take(estimates); len(list) > 0 {
		estimates = slices.Concat(estimates, list)
	}
	var out []Transition
	for len(estimates) > 0 {
		n := 1
		for n < len(estimates) && estimates[n].Community == estimates[0].Community {
			n++
		}
		for _, a := range e.known(estimates[0].Community) {
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

// known returns the alerts of a community, which it makes the first time.
func (e *Engine) known(community string) []*alert {
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
			i := slices.IndexFunc(
				there,
				func(a *alert) bool { return a.at == at && a.Class == class },
			)
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
				e.due = 0
			}
		}
	}
	e.of[community] = list
	return list
}

// evaluate moves one alert and appends the transition, if there is one.
func (e *Engine) evaluate(out []Transition, a *alert, fresh bool, m Moment) []Transition {
	if entered := a.step(fresh, m.Time); entered != "" {
		if entered == Firing {
			a.FiredAt = m.Position
		}
		out = append(out, a.transition(&e.config, entered, m.Position, m.Time))
		if entered == Resolved {
			a.State, a.Since, a.FiredAt = Inactive, m.Time, 0
		}
	}
	e.due = min(e.due, a.Due, a.forgottenAt())
	return out
}

// evaluateDue moves the alerts that are due by time alone, and those whose rule has
// gone. It forgets these, and those of communities that are gone; then others may find room.
func (e *Engine) evaluateDue(out []Transition, m Moment) []Transition {
	if m.Time < e.due {
		return out
	}
	e.due = dueNever
	for _, a := range e.list {
		if a.rule == nil || m.Time >= a.Due {
			out = e.evaluate(out, a, false, m)
		}
		e.due = min(e.due, a.Due, a.forgottenAt())
	}
	n := len(e.list)
	if e.list = slices.DeleteFunc(e.list, func(a *alert) bool { return m.Time >= a.forgottenAt() }); len(
		e.list,
	) < n {
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
		return cmp.Or(
			cmp.Compare(order[a.Rule], order[b.Rule]),
			strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Community, b.Community),
			cmp.Compare(
				slices.Index(e.config.Classes, a.Class),
				slices.Index(e.config.Classes, b.Class),
			),
		)
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
		return cmp.Or(
			strings.Compare(string(a.State), string(b.State)),
			strings.Compare(a.Rule, b.Rule),
			strings.Compare(
				a.Community,
				b.Community,
			),
			strings.Compare(e.config.Classes[a.Class], e.config.Classes[b.Class]),
		)
	})
	out := make([]Alert, len(list))
	for i, a := range list {
		out[i].Transition = a.transition(&e.config, a.State, a.FiredAt, a.Since)
		out[i].Now = a.reason(a.Detector.Standing != standingGood, a.Detector.At)
	}
	return out
}

// Counts are the numbers of alerts of one rule in each state.
type Counts struct {
	Rule       string    `json:"rule"`
	Inactive   int       `json:"inactive"`
	Pending    int       `json:"pending"`
	Firing     int       `json:"firing"`
	Suppressed int       `json:"suppressed"` // of all, those whose newest estimate decides nothing
	NoData     int       `json:"no_data"`
	Silent     []Silence `json:"silent"` // why these two decide nothing, most alerts first
	Level      *Level    `json:"-"`      // the share that it watches; nil: it watches none
}

// Silence is one reason why alerts of a rule decide nothing.
type Silence struct {
	Why         string   `json:"why"` // a flag of Rule.Suppress, or WhyNoData
	Alerts      int      `json:"alerts"`
	Communities int      `json:"communities"`
	Examples    []string `json:"examples"` // the first communities

	last string // community that was counted
}

// WhyNoData is the reason of a silence in which the newest estimate holds no data.
const WhyNoData = "no-data"

const silenceExamplesMax = 5

// Counts returns the counts of every rule, in the order of the rules.
func (e *Engine) Counts() []Counts {
	out := make([]Counts, len(e.config.Rules))
	for i, r := range e.config.Rules {
		out[i].Rule, out[i].Silent, out[i].Level = r.Name, []Silence{}, r.level()
	}
	for _, a := range e.list {
		if a.rule == nil {
			continue
		}
		c := &out[a.at]
		switch a.State {
		case Pending:
			c.Pending++
		case Firing:
			c.Firing++
		default:
			c.Inactive++
		}
		switch why := a.Detector.Flag; a.Detector.Standing {
		case standingSuppressed:
			c.Suppressed++
			c.silence(why, a.Community)
		case standingNone, "":
			c.NoData++
			c.silence(WhyNoData, a.Community)
		}
	}
	for i := range out {
		slices.SortStableFunc(
			out[i].Silent,
			func(a, b Silence) int { return cmp.Compare(b.Alerts, a.Alerts) },
		)
	}
	return out
}

// silence counts an alert that decides nothing. Alerts of one rule come with those of one
// community together, so a community that differs from the last one is another.
func (c *Counts) silence(why, community string) {
	at := slices.IndexFunc(c.Silent, func(s Silence) bool { return s.Why == why })
	if at < 0 {
		at = len(c.Silent)
		c.Silent = append(c.Silent, Silence{Why: why})
	}
	s := &c.Silent[at]
	if s.Alerts++; s.Communities > 0 && s.last == community {
		return
	}
	s.last = community
	if s.Communities++; len(s.Examples) < silenceExamplesMax {
		s.Examples = append(s.Examples, community)
	}
}
