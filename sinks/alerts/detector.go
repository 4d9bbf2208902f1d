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
	Standing   standing `json:"standing"`
	Flag       string   `json:"flag,omitempty"` // of Rule.Suppress that the newest estimate has
	Point      float64  `json:"point"`          // of the newest estimate, like the next four
	Low        float64  `json:"low"`
	High       float64  `json:"high"`
	SE         float64  `json:"se"`
	Confidence float64  `json:"confidence,omitempty"`
	At         int64    `json:"at"` // log time

	Total    float64 `json:"total"`    // sum of all that moved
	Variance float64 `json:"variance"` // sum of the squares of their standard errors
	Counted  float64 `json:"counted"`  // of the count of predictions: sum of all that it moved
	Squares  float64 `json:"squares"`  // the same of the squares of its standard errors
	Members  float64 `json:"members"`

	Past []sample `json:"past,omitempty"` // Change

	Found  movement `json:"found,omitzero"`   // without a number: of the last evaluation
	Recent []sample `json:"recent,omitempty"` // CUSUM: at the last evaluations, oldest first
	Seen   int64    `json:"seen,omitempty"`   // evaluations

	Then sample `json:"then,omitzero"` // CUSUM: at the last evaluation
	Up   sum    `json:"up,omitzero"`
	Down sum    `json:"down,omitzero"`

	Spread spread  `json:"spread,omitzero"` // of the movement that the rule looks at
	Looked int64   `json:"looked,omitempty"`
	Peak   float64 `json:"peak,omitempty"` // height of the present peak, 0 where there is none
}

// sample holds the sums at a time: for a change, at the end of a cell of the grid; for a CUSUM,
// at an evaluation with the log time Cell.
type sample struct {
	Cell     int64   `json:"cell"`
	Total    float64 `json:"total"`
	Variance float64 `json:"variance"`
	Counted  float64 `json:"counted,omitempty"`
	Squares  float64 `json:"squares,omitempty"`
}

// sum is one side of a CUSUM.
type sum struct {
	S     float64 `json:"s"`
	Since int64   `json:"since"` // log time of the last evaluation with a sum of zero
	From  float64 `json:"from"`  // the total then
}

// add takes a step of the side, from the sums of the evaluation before.
func (s *sum) add(step, most float64, then sample) {
	if s.S == 0 {
		s.Since, s.From = then.Cell, then.Total
	}
	s.S = min(most, max(0, s.S+step))
}

const (
	// floorPart is the part of the standard error of a share below which a movement is never news.
	floorPart = 0.03
	// cusumWarm is the number of evaluations that a CUSUM learns from before it sums.
	cusumWarm = 30
	// cusumMemory and changeMemory are how many windows a spread remembers.
	cusumMemory  = 1000
	changeMemory = 30
)

// observe takes the newest estimate of the class. Only the moved part of a record counts as a
// change, not the part that labels, coefficients or a model version revised. Movements under a
// suppressing flag and the first one after a time without data do not count, because the share
// before them is unknown.
func (d *detector) observe(r *Rule, e *quant.Estimate, class int, now int64) {
	linked := d.Standing == standingGood || d.Standing == standingSuppressed
	d.At = now
	if d.Standing, d.Flag = standingOf(r, e, class); d.Standing == standingNone {
		if e.Suppressed { // an alert must not reveal a suppressed estimate
			d.Point = 0
			d.Low = 0
			d.High = 0
			d.SE = 0
		}
		return
	}
	d.Point = e.Prevalence[class]
	d.Low = e.Low[class]
	d.High = e.High[class]
	d.SE = e.SE[class]
	d.Confidence = e.Confidence
	d.Members = e.Members
	if d.Standing == standingSuppressed {
		return
	}
	if linked && len(e.Moved) > class && len(e.SEChange) > class {
		d.Total += e.Moved[class]
		d.Variance += e.SEChange[class] * e.SEChange[class]
	}
	counted, errors := e.Counted, e.SECounted
	if counted == nil { // a record of a version that did not count
		counted, errors = e.Moved, e.SEChange
	}
	if linked && len(counted) > class && len(errors) > class {
		d.Counted += counted[class]
		d.Squares += errors[class] * errors[class]
	}
	if r.When.Quantity == Change {
		d.remember(r, now)
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

// remember keeps the last sums of each cell, and no more than reach back.
func (d *detector) remember(r *Rule, now int64) {
	cell := now / width(r)
	one := d.sum(cell)
	if n := len(d.Past); n > 0 && d.Past[n-1].Cell == cell {
		d.Past[n-1] = one
		return
	}
	d.Past = append(d.Past, one)
	d.forget(r, now)
}

// forget drops the samples that no later evaluation reads: all before the newest sample
// that ended by the time looked back to.
func (d *detector) forget(r *Rule, now int64) {
	until := (now - int64(r.Over)) / width(r)
	for len(d.Past) > 1 && d.Past[1].Cell < until {
		d.Past = slices.Delete(d.Past, 0, 1)
	}
}

// width returns the width of a cell of the grid of a change. Log time is never negative.
func width(r *Rule) int64 { return int64(r.Over) / changeCells }

// change returns how far the share moved since Over ago, and the variance of that by the records,
// if they are known.
func (d *detector) change(r *Rule, now int64) (moved, variance float64, known bool) {
	d.forget(r, now)
	until := (now - int64(r.Over)) / width(r)
	if len(d.Past) == 0 || d.Past[0].Cell >= until {
		return 0, 0, false
	}
	return d.Total - d.Past[0].Total, d.Variance - d.Past[0].Variance, true
}

// changesAt returns when a change will be compared with another sample.
func (d *detector) changesAt(r *Rule, now int64) int64 {
	for _, s := range d.Past[:min(2, len(d.Past))] {
		if at := (s.Cell+1)*width(r) + int64(r.Over); at > now {
			return at
		}
	}
	return dueNever
}

// value returns the quantity that the rule compares with a number.
func (d *detector) value(r *Rule, now int64) (float64, bool) {
	switch r.When.Quantity {
	case Low:
		return d.Low, true
	case High:
		return d.High, true
	case Change:
		moved, _, known := d.change(r, now)
		return moved, known
	case CUSUM:
		return max(d.Up.S, d.Down.S), true
	}
	return d.Point, true
}

// scale returns the usual movement of the series, given the variance in the records.
func (d *detector) scale(variance float64) float64 {
	return math.Hypot(d.Spread.scale(variance), floorPart*d.SE)
}

// evaluate finds whether the condition holds, for a firing alert that of recovery. fresh says that
// there is a new estimate, or that a cell of Every began. often is how many false alarms a window
// the budget leaves for one series.
func (d *detector) evaluate(
	r *Rule, t *tail, often float64, firing, fresh bool, now int64,
) verdict {
	silent := r.NoDataAfter > 0 && now-d.At >= int64(r.NoDataAfter)
	switch {
	case d.Standing == standingNone || d.Standing == "" || silent:
		return verdictMissing
	case d.Standing == standingSuppressed:
		return verdictUnknown
	}
	switch quantity := r.When.Quantity; {
	case r.When.Budgeted:
		return d.evaluateBudgeted(r, t, often, firing, fresh, now)
	case quantity == CUSUM:
		return d.evaluateCUSUM(r, t, firing, fresh, now)
	case quantity == Change:
		return d.evaluateChange(r, t, firing, fresh, now)
	}
	x, _ := d.value(r, now)
	return d.compare(r, x, firing)
}

// compare compares a value with the number of the rule.
func (d *detector) compare(r *Rule, x float64, firing bool) verdict {
	limit := r.When.Value
	if firing {
		limit = r.recovery()
	}
	return verdictOf(r.When.beyond(x, limit))
}

func verdictOf(holds bool) verdict {
	if holds {
		return verdictYes
	}
	return verdictNo
}

func (d *detector) evaluateChange(r *Rule, t *tail, firing, fresh bool, now int64) verdict {
	moved, variance, known := d.change(r, now)
	if !known {
		return verdictUnknown
	}
	height := math.Abs(ratio(moved, d.scale(variance)))
	threshold := math.Abs(ratio(r.When.Value, d.scale(variance)))
	if part := float64(now-d.Looked) / float64(r.Over); fresh && part >= 1./changeCells {
		if part = min(part, 1); d.Looked > 0 {
			t.countPart(part)
			d.watch(t, r.shape(), height, threshold)
		}
		d.Spread.learn(moved, variance, part, changeMemory)
		d.Looked = now
	}
	return d.compare(r, moved, firing)
}

// watch follows the height of a statistic over a peak, and tells the tail of its end.
func (d *detector) watch(t *tail, s shape, height, threshold float64) {
	switch {
	case height > s.level:
		d.Peak = max(d.Peak, height)
	case d.Peak > 0 && height < s.level/2:
		if d.Peak <= threshold {
			t.peak(s, d.Peak)
		}
		d.Peak = 0
	}
}

// evaluateCUSUM adds the movement since the last evaluation to the sums, in usual movements.
func (d *detector) evaluateCUSUM(r *Rule, t *tail, firing, fresh bool, now int64) verdict {
	if fresh {
		moved := d.Total - d.Then.Total
		variance := d.Variance - d.Then.Variance
		then := d.Then
		d.Then = d.sum(now)
		if d.Spread.Windows >= cusumWarm {
			z := ratio(moved, d.scale(variance))
			d.Up.add(z-r.Drift, 2*r.Threshold, then)
			d.Down.add(-z-r.Drift, 2*r.Threshold, then)
			t.countPart(1)
			d.watch(t, r.shape(), max(d.Up.S, d.Down.S), r.Threshold)
		}
		d.Spread.learn(moved, variance, 1, cusumMemory)
	}
	highest := max(d.Up.S, d.Down.S)
	if highest >= r.Threshold || firing && highest > r.recovery() {
		return verdictYes
	}
	if firing {
		d.Up, d.Down = sum{}, sum{}
	}
	return verdictNo
}

// setClock follows log time to the earlier time now: later times in the state become now.
func (d *detector) setClock(r *Rule, now int64) {
	d.At, d.Looked = min(d.At, now), min(d.Looked, now)
	d.Up.Since, d.Down.Since = min(d.Up.Since, now), min(d.Down.Since, now)
	d.Then.Cell = min(d.Then.Cell, now)
	for i := range d.Recent {
		d.Recent[i].Cell = min(d.Recent[i].Cell, now)
	}
	if r == nil || r.When.Quantity != Change {
		return
	}
	past, cell := d.Past[:0], now/width(r)
	for i, s := range d.Past {
		if s.Cell < cell || i+1 == len(d.Past) { // of one cell the last one stands
			s.Cell = min(s.Cell, cell)
			past = append(past, s)
		}
	}
	d.Past = past
}

// restart resets the state that depends on the parameters of the rule.
func (d *detector) restart() {
	*d = detector{
		Standing: d.Standing, Flag: d.Flag, Point: d.Point, Low: d.Low, High: d.High, SE: d.SE,
		Confidence: d.Confidence, At: d.At,
	}
}
