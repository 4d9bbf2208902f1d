package quant

import (
	"math"
	"slices"
)

// lambdaGrid are the lambdas that ml averages over, as far as the labels last;
// the largest lambda they support joins them.
var lambdaGrid = [...]float64{0, .1, .25, .5, .75, .9}

const (
	// mixtureFloor is the smallest share of the labels that may remain effective at
	// the largest lambda of ml.
	mixtureFloor = 0.1
	// autoFloor is the same for LambdaAuto, where no average tempers the choice.
	autoFloor = 0.3
)

// lambdas writes the grid up to limit, and limit itself, to dst.
func lambdas(dst []float64, limit float64) []float64 {
	dst = dst[:0]
	for _, l := range lambdaGrid {
		if l < limit || l == 0 {
			dst = append(dst, l)
		}
	}
	if limit > 0 {
		dst = append(dst, limit)
	}
	return dst
}

// mixture fills ans with ml: the maximum-likelihood answer of every lambda,
// averaged with weights proportional to its likelihood,
//
//	q = sum r_l q_l,   V = sum r_l (V_l + (q_l - q)(q_l - q)').
func (w *scratch) mixture(ans *answer, s *Statistics, r recipe, at reach) {
	var memory [len(lambdaGrid) + 1]float64
	var shares [len(lambdaGrid) + 1]float64
	list := lambdas(memory[:0], at.lambdaMax(mixtureFloor))
	best := math.Inf(-1)
	var last []float64 // shares of the lambda before, which the next begins with
	for i, l := range list {
		one := &w.grid[i]
		w.adjusted(one, s, r, at.weigh(Density, l, s.KernelSum), last)
		best, last = max(best, one.logLikelihood), one.q
	}
	var total float64
	for i := range list {
		shares[i] = math.Exp(w.grid[i].logLikelihood - best)
		total += shares[i]
	}
	ans.reset(s.K)
	for i := range list {
		shares[i] /= total
		ans.blend(shares[i], &w.grid[i])
		ans.logLikelihood += shares[i] * w.grid[i].logLikelihood
	}
	for i := range list {
		away := slices.Clone(w.grid[i].q)
		axpy(away, -1, ans.q)
		addOuter(ans.v, shares[i], away)
	}
	mirror(ans.v, ans.v, s.K)
}
