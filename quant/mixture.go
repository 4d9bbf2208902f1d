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

// lambdas returns the grid up to limit, and limit itself.
func lambdas(limit float64) (dst []float64) {
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

// grid returns the maximum-likelihood answer of every lambda, and weights proportional to their
// likelihoods.
func (w *Solver) grid(s *Statistics, r recipe, at reach) (grid []*answer, weights []float64) {
	var last []float64 // shares of the lambda before, which the next begins with
	for _, l := range lambdas(at.lambdaMax(mixtureFloor)) {
		one := w.adjusted(s, r, at.weigh(Density, l, s.KernelSum), last)
		last, grid, weights = one.Share, append(grid, one), append(weights, one.logLikelihood)
	}
	best := slices.Max(weights)
	for i, x := range weights {
		weights[i] = math.Exp(x - best)
	}
	scaleTo(weights, 1/sum(weights), weights)
	return grid, weights
}

// mixture returns ml: the answers of the grid, averaged,
//
//	q = sum r_l q_l,   V = sum r_l (V_l + (q_l - q)²).
func (w *Solver) mixture(s *Statistics, r recipe, at reach) *answer {
	ans := newAnswer(s.K)
	grid, weights := w.grid(s, r, at)
	for i, one := range grid {
		ans.blend(weights[i], one)
	}
	for i, one := range grid {
		for class, q := range ans.Share {
			ans.v[class] += weights[i] * square(one.Share[class]-q)
		}
	}
	return ans
}
