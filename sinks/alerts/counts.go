package alerts

import (
	"cmp"
	"slices"
)

// Counts are the numbers of alerts of one rule in each state.
type Counts struct {
	Rule       string    `json:"rule"`
	Inactive   int       `json:"inactive"`
	Pending    int       `json:"pending"`
	Firing     int       `json:"firing"`
	Suppressed int       `json:"suppressed"` // part of all: the newest estimate decides nothing
	NoData     int       `json:"no_data"`
	Silent     []Silence `json:"silent"` // why these two decide nothing, most alerts first

	Level *Level `json:"-"` // the share that it watches; nil: it watches none

	// Of a change or a CUSUM: false alarms to expect a month, and the threshold, in usual
	// movements; of a change with a number that number.
	Expected  float64 `json:"expected_per_month"`
	Threshold float64 `json:"threshold"`
}

// Silence is one reason why alerts of a rule decide nothing.
type Silence struct {
	Why         string   `json:"why"` // a flag of Rule.Suppress, or WhyNoData
	Alerts      int      `json:"alerts"`
	Communities int      `json:"communities"`
	Examples    []string `json:"examples"` // the first communities

	last string // community that was counted
}

// WhyNoData is the reason of an alert that stays silent because its newest estimate has no data.
const WhyNoData = "no-data"

const silenceExamplesMax = 5

// Counts returns the counts of every rule, in the order of the rules.
func (e *Engine) Counts() []Counts {
	out := make([]Counts, len(e.config.Rules))
	for i, r := range e.config.Rules {
		out[i].Rule, out[i].Silent, out[i].Level = r.Name, []Silence{}, r.level()
		out[i].Expected, out[i].Threshold = e.falseAlarms(i)
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
		slices.SortStableFunc(out[i].Silent,
			func(a, b Silence) int { return cmp.Compare(b.Alerts, a.Alerts) })
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
