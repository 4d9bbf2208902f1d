package adjusted

import (
	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// confusion is the weighted confusion of a classifier under one weighting: per
// supported class, the mean profile of its labels and the sums for the variances.
// Vectors of cells are class-major: column a has its z entries together.
type confusion struct {
	solve.Columns           // C, columns that sum to one, of the supported classes
	class         []int     // k: which classes they are, ascending
	s2            []float64 // k x z: sum of w^2 phi_z
	mass          []float64 // k: W_i, the sum of the weights
	nEff          []float64 // k: W_i^2 / sum of squared weights (Kish)

	// Single labels, for exact variances; rows is nil without them. See Statistics.
	weights stats.Weighting
	rows    func(func(stats.Row))
}

// second returns the second moments of the a-th supported class.
func (m *confusion) second(a int) []float64 { return m.s2[a*m.Z : (a+1)*m.Z] }

// weigh returns the confusion of the tallies under the weights w = r a + s:
//
//	S1 = r A1 + s N,   S2 = r^2 A2 + 2 r s A1 + s^2 N,   C = (S1 / W + e) / (1 + Z e),
//
// with G2A and G2 for the last two of S2 where the labels have weights of their own, and e the
// smoothing. Classes without weight are left out.
func weigh(t *stats.Cells, k int, w stats.Weighting, smoothing float64) *confusion {
	m := &confusion{s2: make([]float64, t.Z*k)}
	m.Columns = solve.Columns{Z: t.Z, C: make([]float64, t.Z*k)}
	r, s := w.R, w.S
	rr, rs, ss := r*r, 2*r*s, s*s
	g2, g2a := t.N, t.A1
	if t.G2 != nil {
		g2, g2a = t.G2, t.G2A
	}
	total := 1 + smoothing*float64(m.Z) // of a smoothed column
	for i := range k {
		column := m.C[m.K*m.Z : (m.K+1)*m.Z]
		second := m.s2[m.K*m.Z : (m.K+1)*m.Z]
		var mass, square float64
		for z := range column {
			at := z*k + i
			a1, n := t.A1[at], t.N[at]
			s1 := r*a1 + s*n
			s2 := rr*t.A2[at] + rs*g2a[at] + ss*g2[at]
			column[z], second[z] = s1, s2
			mass += s1
			square += s2
		}
		if !(mass > 0) || !(square > 0) {
			continue
		}
		scale, least := 1/(mass*total), smoothing/total
		for z, x := range column {
			column[z] = x*scale + least
		}
		m.class = append(m.class, i)
		m.mass = append(m.mass, mass)
		m.nEff = append(m.nEff, mass*mass/square)
		m.K++
	}
	return m
}

// confusionOf returns that of some cells under one weighting.
func confusionOf(
	s *stats.Statistics, of stats.Kind, w stats.Weighting, smoothing float64,
) *confusion {
	m := weigh(s.Cells(of), s.K, w, smoothing)
	if m.weights = w; !of.Hard {
		m.rows = s.Rows
	}
	return m
}

// pick returns the values of the supported classes, of one for every class.
func (m *confusion) pick(of []float64) []float64 {
	values := make([]float64, m.K)
	for a, i := range m.class {
		values[a] = of[i]
	}
	return values
}

// AdjustedCount returns the shares q, K, on the simplex that bring C q nearest to the mean profile
// P. The columns of C are the mean profiles of the labels of each class, from the sums N (Gart and
// Buck, 1966; Forman, 2008). shares are the shares of the labels; classes without labels get none.
func AdjustedCount(c *stats.Cells, shares []float64) []float64 {
	k := len(shares)
	cells := *c
	cells.A1, cells.A2 = make([]float64, len(c.N)), make([]float64, len(c.N))
	m, q := weigh(&cells, k, stats.ConstantWeights, 0), make([]float64, k)
	if m.K == 0 {
		return append(q[:0], shares...)
	}
	for b, x := range m.LeastSquares(c.P, m.pick(shares)).Q {
		q[m.class[b]] = x
	}
	return q
}
