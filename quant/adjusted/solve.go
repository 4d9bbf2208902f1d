package adjusted

import (
	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// Solve is the adjusted count on some cells: the shares that explain the members' mean profile by
// the confusion matrix, by least squares or by likelihood.
type Solve struct {
	stats.Kind
	Weighted   bool // the kernel's weights
	Likelihood bool
}

// Answer returns the adjusted count of one community.
func (r Solve) Answer(s *stats.Statistics, by stats.Scaling) *stats.Answer {
	weights := stats.ConstantWeights
	if r.Weighted {
		weights = by.Weights(s)
	}
	x := r.solve(s, weights, nil)
	x.Diagnose = func() stats.Diagnosis { return r.diagnose(s, x, by.Preset) }
	return x.Answer
}

// solution is an answer, with figures that only methods on cells have.
type solution struct {
	*stats.Answer
	logLikelihood float64 // of the members' profiles, where the method has one
	unseen        float64 // share of the members' profiles that no label shows
}

// solve returns the adjusted count under one weighting, and its variances. start, if not nil, is a
// guess of the shares of all classes that a likelihood starts from.
func (r Solve) solve(s *stats.Statistics, weights stats.Weighting, start []float64) *solution {
	x, p, smooth := &solution{Answer: stats.NewAnswer(s.K)}, s.Cells(r.Kind).P, 0.0
	x.Lambda = weights.Lambda
	if r.Likelihood {
		smooth = smoothing
	}
	c, shares := confusionOf(s, r.Kind, weights, smooth), s.LabelShares()
	if c.K == 0 {
		copy(x.Share, shares)
		copy(x.Free, shares)
		return x
	}
	var q []float64
	if r.Likelihood {
		q = c.start(shares, start)
		x.logLikelihood, _ = c.Columns.Likelihood(q, p)
		x.logLikelihood *= s.Profiled
	} else {
		q = c.LeastSquares(p, c.pick(shares)).Q
	}
	for b, i := range c.class {
		x.Share[i], x.NEff[i] = q[b], c.nEff[b]
	}
	r.variances(x, s, c, q)
	return x
}

const (
	// smoothing is added to every entry of C before a likelihood is taken, so that
	// a cell no label has seen costs a lot instead of everything.
	smoothing = 1e-9
)

// start returns the start of a likelihood: halfway between the shares of
// the labels and equal ones, or close to a guess.
func (m *confusion) start(shares, guess []float64) []float64 {
	q, equal := make([]float64, m.K), 1/float64(m.K)
	for a, i := range m.class {
		if guess == nil {
			q[a] = (shares[i] + equal) / 2
		} else {
			q[a] = max(guess[i], solve.StartFloor*equal)
		}
	}
	return q
}
