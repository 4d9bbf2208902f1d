package stats

import (
	"slices"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
)

// LabelsAtypical reports whether the calibration labels are so far from typical of the graph that
// methods which rest on the shares of their classes correct them.
func (p *Posterior) LabelsAtypical() bool {
	return p != nil && p.LabelWeights != nil && p.Atypical > AtypicalAbove
}

// ClassWeights returns by how much a label of each of K classes weighs: one, unless the labels are
// atypical.
func (p *Posterior) ClassWeights(k int) []float64 {
	if p.LabelsAtypical() {
		return p.LabelWeights
	}
	return slices.Repeat([]float64{1}, k)
}

// WeighShares returns shares of calibration labels, K, as they would be if these were typical of
// the graph: times the weights of the labels of each class, and scaled to sum to one. Below
// AtypicalAbove they stay, since the labels' own shares are surer than the correction.
func (p *Posterior) WeighShares(shares []float64) []float64 {
	weighed := slices.Clone(shares)
	if p.LabelsAtypical() {
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
