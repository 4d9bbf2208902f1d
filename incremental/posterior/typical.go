package posterior

import (
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/quant"
)

// Drawn says how the calibration labels were drawn, if a user knows it.
type Drawn string

// The ways that can be declared.
const (
	drawnUnknown  Drawn = ""          // the labels themselves tell, see judge
	drawnAtRandom Drawn = "at-random" // their shares are those of the graph
	drawnByClass  Drawn = "by-class"  // they say nothing of the shares of the graph
)

// DrawnWays lists the ways that can be declared.
var DrawnWays = []Drawn{drawnAtRandom, drawnByClass}

// correctionLeast is the correction of a share, as a part of it, below which there is none: it
// costs a second pass over all vertices.
const correctionLeast = 1e-3

// judge says whether the calibration labels are typical of the open vertices, whose mean posterior
// is given, and corrects the posteriors for what they are not. With T the largest difference of a
// class between that mean and the mean posterior of the labels, in standard errors of the latter,
// the shares of the graph are taken to be
//
//	q_G = pi0 + (1 - 1/T²) (q - pi0),   0 in place of the factor if T is below 1,
//
// with q the adjusted count of the posteriors. A posterior is multiplied by q_G/pi0, and a label of
// class y weighs as much. It reports whether that changes anything.
func (s *State) judge(view graphstore.View, sums *neighborhood.Sums, open []float64, weight Weight) bool {
	k, e := s.classes, s.epoch
	mean, squares := make([]float64, k), make([]float64, k)
	cells := &quant.Cells{Z: k, P: open, N: make([]float64, k*k)}
	n, n2, pi := 0.0, 0.0, make([]float64, k)
	if weight == nil {
		weight = func(Vertex) float64 { return 1 }
	}
	reader := s.Reader(view, sums)
	for _, v := range s.labels() {
		reader.labelPosterior(pi, v)
		w, class := weight(v), int(view.Label(v).Class)
		n, n2 = n+w, n2+float64(w*w)
		for i, p := range pi {
			mean[i] += float64(w * p)
			squares[i] += float64(w * float64(p*p))
			cells.N[i*k+class] += float64(w * p)
		}
	}
	e.Shares, e.Atypical = append([]float64(nil), e.Prior...), 0
	if !(n > 0) || !(total(open) > 0) {
		return false
	}
	for i, sum := range mean {
		m := sum / n
		variance := max(squares[i]/n-float64(m*m), 0) * n2 / (n * n)
		if off := math.Abs(open[i] - m); off > 0 {
			e.Atypical = max(e.Atypical, off/math.Sqrt(max(variance, 1e-12)))
		}
	}
	factor := max(0, 1-1/(e.Atypical*e.Atypical))
	switch s.drawn {
	case drawnAtRandom:
		factor = 0
	case drawnByClass:
		factor = 1
	}
	corrects := false
	for i, q := range quant.AdjustedCount(cells, e.Prior) {
		prior := e.Prior[i]
		e.Shares[i] = max(prior+float64(factor*(q-prior)), prior*probabilityMin)
		corrects = corrects || math.Abs(e.Shares[i]/prior-1) > correctionLeast
	}
	if !corrects {
		copy(e.Shares, e.Prior)
		return false
	}
	scale := 1 / total(e.Shares)
	for i := range e.Shares {
		e.Shares[i] *= scale
		e.B[i] += math.Log(e.Shares[i] / e.Prior[i])
	}
	return true
}

// meanOf returns the mean posterior of the open vertices, of which each cell has so many.
func (e *Epoch) meanOf(open []uint64) []float64 {
	mean, k := make([]float64, len(e.Prior)), len(e.Prior)
	for z, n := range open {
		for i, p := range e.Means[z*k : (z+1)*k] {
			mean[i] += float64(float64(n) * p)
		}
	}
	if sum := total(mean); sum > 0 {
		for i := range mean {
			mean[i] /= sum
		}
	}
	return mean
}

// LabelWeights returns by how much a label of each class weighs, K: q_G/pi0; see judge.
func (e *Epoch) LabelWeights() []float64 {
	weights := make([]float64, len(e.Prior))
	for i, q := range e.Shares {
		weights[i] = q / e.Prior[i]
	}
	return weights
}
