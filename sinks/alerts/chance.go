package alerts

import (
	"math"
	"slices"
)

// A rule with a threshold from the budget watches the plain count of the members'
// predictions, Estimate.Counted. Only members and their own predictions move it. Labels,
// coefficients and neighbours move an estimate but not this count.
//
// The score of a movement is minus the logarithm of a product of two probabilities. The first is
// the probability of this much evidence in a window. It is learned from all series of the rule:
// the share of windows with at least this sum of squared movements of members, per member. The
// second is the tail of a normal distribution for the movement in standard errors. A burst of
// unchanged opinions therefore fires no rule, and in a rare burst a smaller movement suffices.

// spanEvaluations lists over how many evaluations a CUSUM without a number looks back.
var spanEvaluations = []int{1, 2, 4, 8}

const (
	// evidenceBins is the number of amounts of evidence that are told apart, two for each
	// doubling; the last one is a square of one for every member.
	evidenceBins = 64
	// evidenceMemory is how many windows of all series are remembered.
	evidenceMemory = 1e7
	// evidenceLeast is how many standard errors a movement is at least that fires a rule, however
	// seldom so many members move at once.
	evidenceLeast = 2
	// evidencePrior is how often more than was seen an amount of evidence is taken to come.
	evidencePrior = 2
	// evidenceLevel is the score above which peaks are learned; see tail.
	evidenceLevel = 8
)

// spansShape and windowShape describe the scores of a CUSUM and of a change when only chance
// moves a count. The rates were measured on simulated networks. They are the lower bound
// of a threshold, because bursts of many people are too rare for the learned tail.
var (
	spansShape  = shape{level: evidenceLevel, rate: 1e-3, mean: 1, least: 1}
	windowShape = shape{level: evidenceLevel, rate: 2e-2, mean: 1, least: 1}
)

// evidence says how often series show how much evidence within a window.
type evidence struct {
	Windows float64   `json:"windows"`
	Bins    []float64 `json:"bins"` // windows by amount; those without any are in none
}

// binOf returns the bin of a window: the variance of its movement, times the members. It is
// -1 where nothing moved.
func binOf(variance, members float64) int {
	share := variance * max(members, 1)
	if !(share > 0) {
		return -1
	}
	return max(0, min(evidenceBins-1, evidenceBins-1+int(math.Floor(2*math.Log2(share)))))
}

// learn takes a window, or a part of one.
func (e *evidence) learn(bin int, part float64) {
	if e.Windows += part; e.Windows > evidenceMemory {
		e.Windows /= 2
		for i := range e.Bins {
			e.Bins[i] /= 2
		}
	}
	if bin >= 0 {
		if e.Bins == nil {
			e.Bins = make([]float64, evidenceBins)
		}
		e.Bins[bin] += part
	}
}

// above returns the share of windows with at least this much evidence. Windows overlap:
// so many of them show the same movement.
func (e *evidence) above(bin int, overlap float64) float64 {
	sum := 0.0
	for _, n := range e.Bins[min(bin, len(e.Bins)):] {
		sum += n
	}
	prior := evidencePrior * overlap
	return (prior + sum) / (prior + e.Windows)
}

// movement is one of the count within a time.
type movement struct {
	Score    float64 `json:"score,omitempty"`
	Moved    float64 `json:"moved,omitempty"`
	Variance float64 `json:"variance,omitempty"`
	Since    int64   `json:"since,omitempty"` // log time
	From     float64 `json:"from,omitempty"`  // the total of the estimate's movement then
}

// between returns the movement from one time to another, with its score.
func (e *evidence) between(then, now sample, members, overlap float64) movement {
	m := movement{
		Moved: now.Counted - then.Counted, Variance: now.Squares - then.Squares,
		Since: then.Cell, From: then.Total,
	}
	bin := binOf(m.Variance, members)
	if bin < 0 {
		return m
	}
	if z := math.Abs(m.Moved) / math.Sqrt(m.Variance); z >= evidenceLeast {
		m.Score = -math.Log(e.above(bin, overlap)) + improbable(z)
	}
	return m
}

// improbable returns minus the logarithm of the chance that a normal number is as far from its
// mean, in standard errors, in either direction.
func improbable(z float64) float64 {
	if z < 8 {
		return -math.Log(math.Erfc(z / math.Sqrt2))
	}
	return z*z/2 + math.Log(z) + math.Log(math.Sqrt(math.Pi/2))
}

// evidenceOf returns the evidence of a span.
func (t *tail) evidenceOf(span int) *evidence {
	for len(t.Evidence) <= span {
		t.Evidence = append(t.Evidence, &evidence{})
	}
	return t.Evidence[span]
}

// sum returns the totals as they stand at a time.
func (d *detector) sum(now int64) sample {
	return sample{
		Cell: now, Total: d.Total, Variance: d.Variance,
		Counted: d.Counted, Squares: d.Squares,
	}
}

// evaluateBudgeted finds whether the score of the movement passes the threshold.
func (d *detector) evaluateBudgeted(
	r *Rule, t *tail, often float64, firing, fresh bool, now int64,
) verdict {
	if r.When.Quantity == Change {
		if _, _, known := d.change(r, now); !known {
			return verdictUnknown
		}
	}
	threshold := t.threshold(r.shape(), often)
	if r.When.Quantity == Change {
		d.lookOver(r, t, threshold, firing, fresh, now)
	} else if fresh {
		d.lookBack(r, t, threshold, firing, now)
	}
	switch {
	case !firing:
		return verdictOf(d.Found.Score > threshold)
	case r.Recover != nil:
		return verdictOf(d.Found.Score > *r.Recover)
	}
	return verdictOf(d.Found.Score > threshold/2) // so that another movement soon after is news
}

// lookBack compares the movement of the last evaluations with chance.
func (d *detector) lookBack(r *Rule, t *tail, threshold float64, firing bool, now int64) {
	last := d.sum(now)
	d.Found = movement{}
	bins := make([]int, len(spanEvaluations))
	for i, back := range spanEvaluations {
		if bins[i] = -1; len(d.Recent) < back {
			continue
		}
		m := t.evidenceOf(i).between(d.Recent[len(d.Recent)-back], last, d.Members,
			float64(back))
		bins[i] = binOf(m.Variance, d.Members)
		if m.Score > d.Found.Score {
			d.Found = m
		}
	}
	d.Recent = append(d.Recent, last)
	if most := slices.Max(spanEvaluations); len(d.Recent) > most {
		d.Recent = slices.Delete(d.Recent, 0, 1)
	}
	if d.Seen++; d.Seen <= cusumWarm {
		d.Found = movement{}
	}
	if !firing && d.Found.Score <= threshold { // news is not usual
		for i, bin := range bins {
			t.evidenceOf(i).learn(bin, 1)
		}
	}
	t.countPart(1)
	d.watch(t, r.shape(), d.Found.Score, threshold)
}

// lookOver compares the movement of the time that a change is over with chance.
func (d *detector) lookOver(r *Rule, t *tail, threshold float64, firing, fresh bool, now int64) {
	then := d.Past[0]
	then.Cell = now - int64(r.Over)
	d.Found = t.evidenceOf(0).between(then, d.sum(now), d.Members, 1)
	part := float64(now-d.Looked) / float64(r.Over)
	if !fresh || part < 1./changeCells {
		return
	}
	if part = min(part, 1); d.Looked > 0 {
		t.countPart(part)
		d.watch(t, r.shape(), d.Found.Score, threshold)
	}
	if !firing && d.Found.Score <= threshold {
		t.evidenceOf(0).learn(binOf(d.Found.Variance, d.Members), part)
	}
	d.Looked = now
}
