package adjusted

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// blurredBelow is the smallest singular value of C on vectors that sum to zero below which two
// classes are flagged.
const blurredBelow = 0.1

// diagnose returns the doubts about an answer under weights of a preset.
func (r Solve) diagnose(s *stats.Statistics, x *solution, by stats.Preset) (d stats.Diagnosis) {
	weights := stats.ConstantWeights
	if r.Weighted {
		weights = s.Reach().Weigh(by, x.Lambda, s.KernelSum)
		d.Disputed = disputed(s)
	}
	d.Unseen = x.unseen > unseenHigh
	d.Confused = confused(s, r.Kind, weights)
	return d
}

// confused returns the two classes that a confusion matrix hardly tells apart; nil: there are none.
func confused(s *stats.Statistics, of stats.Kind, weights stats.Weighting) []int {
	m := confusionOf(s, of, weights, 0)
	if m.K < 2 {
		return nil
	}
	if sigma, i, j := m.weakest(); sigma < blurredBelow {
		return []int{i, j}
	}
	return nil
}

// weakest returns the smallest singular value of C on vectors that sum to zero and the two classes,
// i < j, that its direction trades against each other: the largest eigenvalue of the inverse of C'C
// there.
func (m *confusion) weakest() (sigma float64, i, j int) {
	k := m.K
	g, ridge := m.Ridged(nil)
	inverse, x := solve.InvertOnSimplex(g, k)
	values := solve.Eigenvalues(inverse, k)
	for a := range x {
		x[a] = inverse[a*k+k-1] // of the largest eigenvalue, which is the last
	}
	low, high := floats.MinIdx(x), floats.MaxIdx(x)
	return math.Sqrt(max(1/values[k-1]-ridge, 0)), m.class[min(low, high)], m.class[max(low, high)]
}

// disputed returns the classes where sis and diff differ beyond their errors under one weighting.
// sis assumes that the confusion given the class is stable, diff that the label given the vertex
// is: at least one assumption is wrong there.
func disputed(s *stats.Statistics) (classes []int) {
	at := s.Reach()
	if s.Soft == nil || !(at.Mean > 0) {
		return nil
	}
	lambda := min(stats.LambdaDefault, at.LambdaMax(mixtureFloor))
	weights := at.Weigh(stats.Density, lambda, s.KernelSum)
	diff, sis := difference(s, weights), Solve{Weighted: true}.solve(s, weights, nil)
	z := solve.Bonferroni(stats.ShiftConfidence, s.K)
	for i := range s.K {
		variance := diff.V[i] + sis.V[i]
		if sis.NEff[i] > 0 && math.Abs(diff.Free[i]-sis.Free[i]) > z*math.Sqrt(max(variance, 0)) {
			classes = append(classes, i)
		}
	}
	return classes
}
