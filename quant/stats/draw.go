package stats

import (
	"slices"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
)

// Untypical reports whether the calibration labels are so far from typical of the graph that
// methods which rest on the shares of their classes correct them.
func (p *Posterior) Untypical() bool {
	return p != nil && p.LabelWeights != nil && p.Atypical > AtypicalAbove
}

// WeighShares returns shares of calibration labels, K, as they would be if these were typical of
// the graph: times the weights of the labels of each class, and scaled to sum to one. Below
// AtypicalAbove they stay, since the labels' own shares are surer than the correction.
func (p *Posterior) WeighShares(shares []float64) []float64 {
	weighed := slices.Clone(shares)
	if p.Untypical() {
		floats.Mul(weighed, p.LabelWeights)
	}
	solve.ScaleTo(weighed, 1/solve.Sum(weighed), weighed)
	return weighed
}

// DrawnNoise returns the variance in the share of a class among the labels because these were not
// drawn at random: the error of the correction and, where WeighShares does not correct, the square
// of the correction too.
func (p *Posterior) DrawnNoise(class int) float64 {
	if len(p.PriorNoise) == 0 {
		return 0
	}
	k, noise := len(p.Prior), 0.0
	if noise = p.PriorNoise[class*k+class]; p.Atypical <= AtypicalAbove {
		noise += solve.Square(p.Prior[class] * (1 - 1/p.LabelWeights[class]))
	}
	return noise
}
