package auto

import (
	"math"
	"slices"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// Moved writes to moved the part of the change of the prevalence that happened to the community,
// from last to now, the memory of the answer that was made just before.
func (x *Quantifier) Moved(moved, change []float64, s *stats.Statistics, now, last *stats.Memory) {
	if now.Posterior != last.Posterior {
		for i, x := range last.Carried { // the cells of then are gone
			moved[i] = common(x, change[i])
		}
		return
	}
	copy(moved, x.Carry(s.Posterior, s.Members, last))
	if len(last.Residual) == len(moved) && slices.Equal(now.Counted, last.Counted) {
		for i, d := range now.Residual {
			moved[i] -= common(moved[i], last.ModelWeight*(1-last.Gamma)*(last.Residual[i]-d))
		}
	}
}

// Carry returns how far the shares of auto of a community with these members have moved since last,
// as its calibration sees it. The coefficients must be those of last. The correction for labels
// that are not typical may be another one, where it follows the graph.
func (x *Quantifier) Carry(p *stats.Posterior, members float64, last *stats.Memory) []float64 {
	if p == nil || len(last.Flow) != len(p.Prior) {
		return make([]float64, len(last.Counted))
	}
	moved := make([]float64, len(p.Prior))
	covered := 1.0
	if members > 0 {
		covered = min(1, solve.Sum(p.All)/members)
	}
	for i, q := range x.flowAt(p, last.Gamma, last.Flow) {
		moved[i] = covered * last.ModelWeight * (q - last.Flow[i])
		if len(last.Carried) > 0 {
			moved[i] += last.Carried[i]
		}
	}
	leaveLabels(p, moved, last)
	return moved
}

// leaveLabels adds to moved the effect of labels that became stale since last: their weight goes
// from the labels' own shares to the rest of the answer.
func leaveLabels(p *stats.Posterior, moved []float64, last *stats.Memory) {
	if !(last.ToLabels > 0 && p.Stale > last.Stale && len(last.Residual) == len(moved)) {
		return
	}
	left := last.ToLabels * (p.Stale - last.Stale) / (1 - last.Stale)
	for i, x := range p.WeighShares(last.Counted) {
		moved[i] += left * (last.Flow[i] + (1-last.Gamma)*last.Residual[i] - x)
	}
}

// CarryCorrection returns the same where the correction for labels that are not typical has
// followed the graph, from p to followed: it weighs members and the labels' own shares.
func (x *Quantifier) CarryCorrection(
	p, followed *stats.Posterior,
	members float64,
	last *stats.Memory,
) []float64 {
	moved := x.Carry(followed, members, last)
	if !(last.ToLabels > 0 && solve.Sum(last.Counted) > 0) {
		return moved
	}
	then, now := p.WeighShares(last.Counted), followed.WeighShares(last.Counted)
	for i := range moved {
		moved[i] += last.ToLabels * (now[i] - then[i])
	}
	return moved
}

// Learn returns last as if it had been made with the labels of now. Labels that came or went near
// members changed the cells of these members, and moved nobody. without, B, counts all members by
// their cells without this effect.
func (x *Quantifier) Learn(p *stats.Posterior, without []float64, last stats.Memory) stats.Memory {
	if last.Posterior != uint64(p.Version) || len(last.Flow) != len(p.Prior) {
		return last
	}
	now, other := last, *p
	other.All = without
	before := x.flowAt(&other, last.Gamma, last.Flow)
	now.Flow = x.flowAt(p, last.Gamma, last.Flow)
	for i, q := range before {
		now.Flow[i] += last.Flow[i] - q
	}
	return now
}

// flow returns q(gamma) of all members with a prediction, labelled or not, where r is the reading
// of those without a label.
func (x *Quantifier) flow(p *stats.Posterior, r *reading) []float64 {
	if solve.Sum(p.All) == r.n {
		return r.tempered
	}
	return x.flowAt(p, r.gamma, r.tempered)
}

// flowAt returns q of all members with a prediction for one gamma; start is a guess.
func (x *Quantifier) flowAt(p *stats.Posterior, gamma float64, start []float64) []float64 {
	k := len(p.Prior)
	all, v := *p, &x.all
	all.Counts = p.All
	v.load(&all)
	mean := make([]float64, k)
	if !(v.All > 0) {
		return append(mean[:0], start...)
	}
	solve.Combine(mean, v.M, v.X)
	solve.ScaleTo(mean, 1/v.All, mean)
	if gamma == 0 {
		return mean
	}
	return v.solve(append([]float64(nil), start...), mean, p.Prior, gamma)
}

// common returns the smaller of two changes if they have one sign, else 0.
func common(a, b float64) float64 {
	if a*b <= 0 {
		return 0
	}
	if math.Abs(a) < math.Abs(b) {
		return a
	}
	return b
}
