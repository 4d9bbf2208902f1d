package solve

import "gonum.org/v1/gonum/floats"

// Columns are K distributions over Z cells: the profiles of the classes that have labels.
type Columns struct {
	Z, K int
	C    []float64 // K x Z: column a has its Z entries together
}

// Column returns the a-th distribution.
func (m *Columns) Column(a int) []float64 { return m.C[a*m.Z : (a+1)*m.Z] }

// Mix writes Cq to dst.
func (m *Columns) Mix(dst, q []float64) { Combine(dst, q[:m.K], m.C) }

// Likelihood moves q, which need not sum to one, to where sum p log Cq is largest.
func (m *Columns) Likelihood(q, p []float64) (logLikelihood, gap float64) {
	u, row, even := &Mixture{}, make([]float64, m.K), make([]float64, m.K)
	u.Clear(m.K)
	for z, x := range p {
		if x > 0 {
			for a := range row {
				row[a] = m.C[a*m.Z+z]
			}
			u.Add(x, row)
		}
	}
	for a := range even {
		even[a] = 1
	}
	ScaleTo(q, 1/Sum(q), q)
	gap = u.Maximise(q, even, 1, 0, gapTolerance, u)
	return u.LogLikelihood(), gap
}

// ridgeShare scales the Tikhonov pull of the least-squares solver: it decides between solutions
// that fit equally well and moves no other by more than ridgeShare / sigma_min^2.
const ridgeShare = 1e-9

// LeastSquares returns the program for the shares q that bring Cq nearest to p, with a small pull
// towards shares, K, which need not sum to one.
func (m *Columns) LeastSquares(p, shares []float64) *Quadratic {
	qp := newQuadratic(m.K)
	gram(qp.G, m, nil)
	pull := ridgeShare * Trace(qp.G, m.K) / float64(m.K)
	total := Sum(shares)
	for a := range m.K {
		qp.G[a*m.K+a] += pull
		share := 1 / float64(m.K)
		if total > 0 {
			share = shares[a] / total
		}
		qp.B[a] = floats.Dot(m.Column(a), p) + pull*share
		qp.Q[a] = 1 / float64(m.K)
	}
	qp.Solve()
	return qp
}

// gram writes C' diag(weights) C to g, k x k; nil weights are ones.
func gram(g []float64, m *Columns, weights []float64) {
	for a := range m.K {
		left := m.Column(a)
		if weights != nil {
			scaled := make([]float64, m.Z)
			for z, v := range left {
				scaled[z] = v * weights[z]
			}
			left = scaled
		}
		Products(g[a*m.K:a*m.K+a+1], m.C, left)
		for b := range a {
			g[b*m.K+a] = g[a*m.K+b]
		}
	}
}

// Trace returns the sum of the diagonal of the n x n matrix a.
func Trace(a []float64, n int) float64 {
	var t float64
	for i := range n {
		t += a[i*n+i]
	}
	return t
}

// Ridged returns C' diag(weights) C + e I, k x k, and e.
func (m *Columns) Ridged(weights []float64) (g []float64, ridge float64) {
	g = make([]float64, m.K*m.K)
	gram(g, m, weights)
	ridge = ridgeShare * Trace(g, m.K) / float64(m.K)
	for a := range m.K {
		g[a*m.K+a] += ridge
	}
	return g, ridge
}

// InvertOnSimplex returns the inverse of g, k x k, on vectors that sum to zero, and G^-1 1. It
// overwrites g.
func InvertOnSimplex(g []float64, k int) (inverse, ones []float64) {
	inverse, ones = make([]float64, k*k), make([]float64, k)
	Cholesky(g, k)
	CholeskyInverse(inverse, g, k)
	for a := range k {
		ones[a] = Sum(inverse[a*k : (a+1)*k])
	}
	addOuter(inverse, -1/Sum(ones), ones)
	Mirror(inverse, inverse, k)
	return inverse, ones
}
