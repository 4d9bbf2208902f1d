package adjusted

import (
	"math"
	"slices"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// lambdaGrid are the lambdas that ml averages over, as far as the labels last;
// the largest lambda they support joins them.
var lambdaGrid = [...]float64{0, .1, .25, .5, .75, .9}

// mixtureFloor is the smallest share of the labels that may remain effective at the largest lambda
// of ml.
const mixtureFloor = 0.1

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

// ML is the likelihood on pairs of cells, averaged over lambda.
type ML struct{}

// onPairs is the method that ML averages.
var onPairs = Solve{Kind: stats.Kind{Pair: true}, Weighted: true, Likelihood: true}

// Answer returns the answers of the grid, averaged,
//
//	q = sum r_l q_l,   V = sum r_l (V_l + (q_l - q)²).
func (ML) Answer(s *stats.Statistics, _ stats.Scaling) *stats.Answer {
	x := &solution{Answer: stats.NewAnswer(s.K)}
	grid, weights := likelihoods(s)
	for i, one := range grid {
		x.blend(weights[i], one)
	}
	for i, one := range grid {
		for class, q := range x.Share {
			x.V[class] += weights[i] * solve.Square(one.Share[class]-q)
		}
	}
	x.Diagnose = func() stats.Diagnosis { return onPairs.diagnose(s, x, stats.Density) }
	return x.Answer
}

// likelihoods returns the maximum-likelihood answer of every lambda, and weights proportional to
// their likelihoods.
func likelihoods(s *stats.Statistics) (grid []*solution, weights []float64) {
	at := s.Reach()
	var last []float64 // shares of the lambda before, which the next begins with
	for _, l := range lambdas(at.LambdaMax(mixtureFloor)) {
		one := onPairs.solve(s, at.Weigh(stats.Density, l, s.KernelSum), last)
		last, grid, weights = one.Share, append(grid, one), append(weights, one.logLikelihood)
	}
	best := slices.Max(weights)
	for i, x := range weights {
		weights[i] = math.Exp(x - best)
	}
	solve.ScaleTo(weights, 1/solve.Sum(weights), weights)
	return grid, weights
}

// blend adds x to a with the given weight. Variances of different answers from
// the same data are averaged, never summed.
func (ans *solution) blend(weight float64, x *solution) {
	solve.Axpy(ans.Share, weight, x.Share)
	solve.Axpy(ans.Free, weight, x.Free)
	solve.Axpy(ans.V, weight, x.V)
	solve.Axpy(ans.Spreads, weight, x.Spreads)
	solve.Axpy(ans.Parts, weight, x.Parts)
	solve.Axpy(ans.Member, weight, x.Member)
	solve.Axpy(ans.NEff, weight, x.NEff)
	ans.Lambda += weight * x.Lambda
	ans.unseen += weight * x.unseen
	ans.Exact = x.Exact
}
