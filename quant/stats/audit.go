package stats

import (
	"math"

	"gqlstream/quant/solve"
)

const (
	// AuditsMin is the number of audit labels that an estimate from them alone needs.
	AuditsMin = 10
	// auditReachLow bounds how much of the members the audit labels must stand for.
	auditReachLow = 0.8
)

// Audit holds the sums over the audit labels among the members of a community. With p the
// prediction of such a member (zero where it has none), y its class as a vector, m its multiplicity
// and pi the probability of having been drawn, each of the two moments sums over them
//
//	Weights: w = m / pi            Noise: c = m² (1 - pi) / pi²
//
// and the products that are named.
type Audit struct {
	Labels   int // vertices
	Weights  AuditSums
	Noise    AuditSums
	NoiseYP  []float64 // K: sum of c y_i p_i
	NoisePP  []float64 // K: sum of c p_i²
	SquaredW float64   // sum of w²
}

// AuditSums are sums of a weight, of its product with y, and of that with p.
type AuditSums struct {
	Sum  float64
	Y, P []float64 // K
}

// Reach returns the share of the open members that the labels stand for, and the
// standard deviation of that by the draw alone.
func (a *Audit) Reach(open float64) (share, deviation float64) {
	if !(open > 0) {
		return 0, 0
	}
	return a.Weights.Sum / open, math.Sqrt(max(a.Noise.Sum, 0)) / open
}

// NewAudit returns the sums of no label.
func NewAudit(k int) *Audit {
	sums := func() AuditSums { return AuditSums{Y: make([]float64, k), P: make([]float64, k)} }
	return &Audit{
		Weights: sums(),
		Noise:   sums(),
		NoiseYP: make([]float64, k),
		NoisePP: make([]float64, k),
	}
}

// Expect counts a member with its expected number of draws, with the means of y and of y p by
// class.
func (a *Audit) Expect(y, p, yp []float64, multiplicity, pi, times float64) {
	w := multiplicity / pi
	c := w * w * (1 - pi) * times
	a.SquaredW += w * w * times
	a.Weights.add(w*times, y, p)
	a.Noise.add(c, y, p)
	solve.Axpy(a.NoiseYP, c, yp)
	for i, x := range p {
		a.NoisePP[i] += c * x * x
	}
}

func (s *AuditSums) add(weight float64, y, p []float64) {
	s.Sum += weight
	solve.Axpy(s.Y, weight, y)
	solve.Axpy(s.P, weight, p)
}

// Of returns statistics with the audit labels and the mean prediction of the members alone: the
// input of method Audits.
func (a *Audit) Of(members float64, mean []float64) *Statistics {
	k := len(mean)
	return &Statistics{
		K:        k,
		Members:  members,
		Profiled: members,
		ClassN:   make([]float64, k),
		Soft:     &Cells{Z: k, P: mean},
		Audit:    a,
	}
}

// Auditable reports whether an estimate may rest on the audit labels: there are enough of them,
// and they stand for all members that are not labelled otherwise, not for a part of them.
func (s *Statistics) Auditable() bool {
	if s.Audit == nil || s.Audit.Labels < AuditsMin {
		return false
	}
	share, deviation := s.Audit.Reach(s.Members - s.Labelled)
	return share+2*deviation >= auditReachLow && share-2*deviation <= 1/auditReachLow
}
