package alerts

import (
	"math"
	"slices"

	"gqlstream/quant"
)

// standing rates how far the newest estimate can be believed.
type standing string

const (
	standingGood       standing = "good"
	standingNone       standing = "none"       // no data
	standingSuppressed standing = "suppressed" // a flag of Rule.Suppress
)

// standInFlags mark estimates that say nothing of the community.
var standInFlags = []string{quant.FlagNoMembers, quant.FlagNoCoverage, quant.FlagNoLabels}

// verdict is the result of an evaluation.
type verdict uint8

const (
	verdictUnknown verdict = iota // suppressed, or not enough is known yet
	verdictNo
	verdictYes
	verdictMissing // no data
)

// detector holds all that one alert keeps of the estimates. All of it is saved.
type detector struct {
	Standing standing `json:"standing"`
	Flag     string   `json:"flag,omitempty"`    // of Rule.Suppress that the newest estimate has
	Version  string   `json:"version,omitempty"` // of the model
	Point    float64  `json:"point"`             // of the newest estimate, like the next four
	Low      float64  `json:"low"`
	High     float64  `json:"high"`
	SE       float64  `json:"se"`
	At       int64    `json:"at"` // log time

	Past []sample `json:"past,omitempty"` // Change

	Moved    float64 `json:"moved,omitempty"` // CUSUM: since the last evaluation, with its variance
	Variance float64 `json:"variance,omitempty"`
	SEThen   float64 `json:"se_then,omitempty"` // SE at the last evaluation
	Linked   bool    `json:"linked,omitempty"`  // the newest point is one that a change can begin at
	Up       float64 `json:"up,omitempty"`      // the two sums
	Down     float64 `json:"down,omitempty"`
}

// sample is the point that held when a cell of the grid ended.
type sample struct {
	Cell  int64   `json:"cell"`
	Point float64 `json:"point"`
}

// zMax bounds one step of the sums, whatever a standard error of zero makes of it.
const zMax = 1e6

// cusumFloor is the part of a standard error that an evaluation takes for noise besides
// se_change. On simulated networks in which nothing happens se_change is right over all,
// but once in some hundred emissions a label, or the weights of two methods, move an
// estimate by a tenth of its standard error.
const cusumFloor = 0.05

// observe takes the newest estimate of the class.
func (d *detector) observe(r *Rule, e *quant.Estimate, class int, now int64) {
	if d.Version != e.ModelVersion && !e.Suppressed {
		*d = detector{Version: e.ModelVersion} // what came before is of another model
	}
	before, n := d.Point, len(d.Past)
	if d.Standing == standingNone && n > 0 { // the point may be hidden
		before = d.Past[n-1].Point
	}
	d.At = now
	if d.Standing, d.Flag = standingOf(r, e, class); d.Standing == standingNone {
		d.Linked = false
		if e.Suppressed { // no alert may tell what the estimates do not
			d.Point, d.Low, d.High, d.SE = 0, 0, 0, 0
		}
		return
	}
	d.Point, d.Low, d.High, d.SE = e.Prevalence[class], e.Low[class], e.High[class], e.SE[class]
	if d.Standing == standingSuppressed {
		d.Linked = d.Flag == quant.FlagNewPosterior // and of nothing else: what moves from there on is the community
		if slices.Contains(r.Suppress, quant.FlagNewPosterior) &&
			slices.Contains(e.Flags, quant.FlagNewPosterior) {
			for i := range d.Past { // what new coefficients moved is no change of the community
				d.Past[i].Point += d.Point - before
			}
		}
		return
	}
	switch r.When.Quantity {
	case Change:
		d.remember(r, now)
	case CUSUM:
		if d.Linked && len(e.SEChange) > class {
			d.Moved += d.Point - before
			d.Variance += e.SEChange[class] * e.SEChange[class]
		}
		d.Linked = true
	}
}

// standingOf reports how much an estimate can be believed, and the first flag that suppresses it.
func standingOf(r *Rule, e *quant.Estimate, class int) (out standing, suppressedBy string) {
	if e.Suppressed || len(e.Prevalence) <= class || len(e.Low) <= class || len(e.High) <= class ||
		len(e.SE) <= class {
		return standingNone, ""
	}
	if x := e.Prevalence[class] + e.Low[class] + e.High[class] + e.SE[class]; math.IsNaN(x) ||
		math.IsInf(x, 0) {
		return standingNone, ""
	}
	out = standingGood
	for _, flag := range e.Flags {
		name := quant.FlagName(flag)
		if slices.Contains(standInFlags, name) {
			return standingNone, ""
		}
		if out == standingGood && slices.Contains(r.Suppress, name) {
			out, suppressedBy = standingSuppressed, name
		}
	}
	return out, suppressedBy
}

// remember keeps the last point of each cell, and no more than reach back.
func (d *detector) remember(r *Rule, now int64) {
	cell := now / width(r)
	if n := len(d.Past); n > 0 && d.Past[n-1].Cell == cell {
		d.Past[n-1].Point = d.Point
		return
	}
	d.Past = append(d.Past, sample{cell, d.Point})
	d.forget(r, now)
}

// forget drops what no later evaluation can read: all before the newest sample
// that ended by the time looked back to.
func (d *detector) forget(r *Rule, now int64) {
	until := (now - int64(r.Over)) / width(r)
	for len(d.Past) > 1 && d.Past[1].Cell < until {
		d.Past = slices.Delete(d.Past, 0, 1)
	}
}

// width returns the width of a cell of the grid of a change. Log time is never negative.
func width(r *Rule) int64 { return int64(r.Over) / changeCells }

// change returns the change of the point since Over ago, if it is known.
func (d *detector) change(r *Rule, now int64) (float64, bool) {
	d.forget(r, now)
	until := (now - int64(r.Over)) / width(r)
	if len(d.Past) == 0 || d.Past[0].Cell >= until {
		return 0, false
	}
	return d.Point - d.Past[0].Point, true
}

// changesAt returns the time from which on a change is compared with another past.
func (d *detector) changesAt(r *Rule, now int64) int64 {
	for _, s := range d.Past[:min(2, len(d.Past))] {
		if at := (s.Cell+1)*width(r) + int64(r.Over); at > now {
			return at
		}
	}
	return dueNever
}

// value returns the quantity that the rule compares.
func (d *detector) value(r *Rule, now int64) (float64, bool) {
	switch r.When.Quantity {
	case Low:
		return d.Low, true
	case High:
		return d.High, true
	case Change:
		return d.change(r, now)
	case CUSUM:
		return max(d.Up, d.Down), true
	}
	return d.Point, true
}

// evaluate finds whether the condition holds, for a firing alert that of recovery.
// fresh says that there is a new estimate, or that a cell of Every began.
func (d *detector) evaluate(r *Rule, firing, fresh bool, now int64) verdict {
	silent := r.NoDataAfter > 0 && now-d.At >= int64(r.NoDataAfter)
	switch {
	case d.Standing == standingNone || d.Standing == "" || silent:
		return verdictMissing
	case d.Standing == standingSuppressed:
		return verdictUnknown
	}
	if r.When.Quantity == CUSUM {
		if fresh {
			d.accumulate(r)
		}
		if sum := max(d.Up, d.Down); sum > r.Threshold || firing && sum > r.recovery() {
			return verdictYes
		}
		return verdictNo
	}
	x, known := d.value(r, now)
	if !known {
		return verdictUnknown
	}
	limit := r.When.Value
	if firing {
		limit = r.recovery()
	}
	if r.When.beyond(x, limit) {
		return verdictYes
	}
	return verdictNo
}

// accumulate adds what has moved since the last evaluation to the sums, in units of its
// standard error.
func (d *detector) accumulate(r *Rule) {
	z := 0.0
	if d.Moved != 0 {
		z = max(-zMax, min(zMax, d.Moved/max(d.movedError(), 1/zMax)))
	}
	d.Moved, d.Variance, d.SEThen = 0, 0, d.SE
	most := 2 * r.Threshold
	d.Up = min(most, max(0, d.Up+z-r.Drift))
	d.Down = min(most, max(0, d.Down-z-r.Drift))
}

// movedError is the standard error of what has moved since the last evaluation. The variances of
// many small changes add up to more than that of their sum where errors come and go: it is no
// larger than that of two estimates that share nothing. And it is no smaller than a part of SE, by
// which labels and the choice of weights move an estimate while nothing happens.
func (d *detector) movedError() float64 {
	v := d.Variance
	if d.SEThen > 0 {
		v = min(v, d.SEThen*d.SEThen+d.SE*d.SE)
	}
	return math.Sqrt(v + cusumFloor*cusumFloor*d.SE*d.SE)
}

// restart forgets what only makes sense under the rule that gathered it.
func (d *detector) restart() {
	d.Past, d.Moved, d.Variance, d.SEThen, d.Linked, d.Up, d.Down = nil, 0, 0, 0, false, 0, 0
}
