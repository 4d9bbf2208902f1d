package incremental

import (
	"cmp"
	"math"
	"slices"

	"gqlstream/quant"
)

// roundMax is the coarsest unit of published shares.
const roundMax = 0.25

// RoundExplanation rounds the shares at both ends of an explanation and the contributions of its
// causes. Settle must follow: the contributions and Numerical then sum to Change again.
func RoundExplanation(x *quant.Explanation, unit float64) {
	if unit <= 0 {
		return
	}
	n := math.Round(1 / unit)
	for _, end := range []*quant.ExplanationEnd{&x.From, &x.To} {
		round(&end.Estimate, unit)
	}
	effects := [][]float64{}
	for _, c := range x.Causes {
		effects = append(effects, c.Contribution)
		for _, e := range c.Largest {
			effects = append(effects, e.Effect)
		}
	}
	for _, list := range effects {
		for k, effect := range list {
			list[k] = math.Round(float64(effect*n)) / n
		}
	}
	for _, list := range [][]float64{x.SEChange, x.SERevised} {
		for k, se := range list {
			list[k] = math.Ceil(float64(se*n)) / n
		}
	}
}

// round makes the shares of a record multiples of a unit. 1 is a multiple of the unit, so shares
// still sum to one. Bounds move outwards, so that an interval contains the former one. The parts of
// a change are rounded too, and errors are rounded up: the variance of a count is a function of its
// share. A unit of 0 leaves the record as it is. Nothing inside a core is rounded.
func round(e *quant.Estimate, unit float64) {
	if unit <= 0 {
		return
	}
	n := math.Round(1 / unit) // units of a whole
	e.Prevalence = roundWhole(e.Prevalence, n)
	for _, bound := range []struct {
		list []float64
		to   func(float64) float64
	}{
		{e.Low, math.Floor},
		{e.High, math.Ceil},
		{e.Moved, math.Round},
		{e.Revised, math.Round},
		{e.Counted, math.Round},
		{e.SE, math.Ceil},
		{e.SEChange, math.Ceil},
		{e.SERevised, math.Ceil},
		{e.SECounted, math.Ceil},
		{e.SELag, math.Ceil},
	} {
		for k, x := range bound.list {
			bound.list[k] = bound.to(float64(x*n)) / n
		}
	}
}

// roundWhole rounds shares that sum to one by largest remainders. Of equal ones the first goes up.
func roundWhole(shares []float64, n float64) []float64 {
	out, order, rest := make([]float64, len(shares)), make([]int, len(shares)), n
	for k, x := range shares {
		order[k], out[k] = k, math.Floor(float64(x*n))
		rest -= out[k]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(float64(shares[b]*n)-out[b], float64(shares[a]*n)-out[a])
	})
	for i := range min(int(rest), len(order)) {
		out[order[i]]++
	}
	for k := range out {
		out[k] /= n
	}
	return out
}
