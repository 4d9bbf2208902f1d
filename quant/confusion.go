package quant

// confusion is the weighted confusion of a classifier under one weighting: per
// supported class, the mean profile of its labels and what the variances need.
// Vectors of cells are class-major: column a has its z entries together.
type confusion struct {
	z, k  int       // cells, supported classes
	class []int     // k: which classes they are, ascending
	c     []float64 // k x z: C, columns that sum to one
	s2    []float64 // k x z: sum of w^2 phi_z
	mass  []float64 // k: W_i, the sum of the weights
	nEff  []float64 // k: W_i^2 / sum of squared weights (Kish)

	// What exact variances read of single labels, if there is anything; see Statistics.
	weights weighting
	rows    func(func(Row))
}

// column returns the profile of the a-th supported class.
func (m *confusion) column(a int) []float64 { return m.c[a*m.z : (a+1)*m.z] }

// second returns the second moments of the a-th supported class.
func (m *confusion) second(a int) []float64 { return m.s2[a*m.z : (a+1)*m.z] }

// mix writes Cq to dst.
func (m *confusion) mix(dst, q []float64) { combine(dst, q[:m.k], m.c) }

// weigh returns the confusion of the tallies under the weights w = r a + s:
//
//	S1 = r A1 + s N,   S2 = r^2 A2 + 2 r s A1 + s^2 N,   C = (S1 / W + e) / (1 + Z e),
//
// with G2A and G2 for the last two of S2 where the labels have weights of their own, and e the
// smoothing. Classes without weight are left out.
func (t *Cells) weigh(k int, w weighting, smoothing float64) *confusion {
	m := &confusion{z: t.Z, c: make([]float64, t.Z*k), s2: make([]float64, t.Z*k)}
	r, s := w.r, w.s
	rr, rs, ss := r*r, 2*r*s, s*s
	g2, g2a := t.N, t.A1
	if t.G2 != nil {
		g2, g2a = t.G2, t.G2A
	}
	total := 1 + smoothing*float64(m.z) // of a smoothed column
	for i := range k {
		column := m.c[m.k*m.z : (m.k+1)*m.z]
		second := m.s2[m.k*m.z : (m.k+1)*m.z]
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
		m.k++
	}
	return m
}
