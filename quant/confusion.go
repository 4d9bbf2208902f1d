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

	scaled []float64 // z: workspace of gram and sandwich
}

// reserve makes room for z cells and k classes and forgets what was there.
func (m *confusion) reserve(z, k int) {
	m.z, m.k = z, 0
	m.c, m.s2 = resize(m.c, z*k), resize(m.s2, z*k)
	m.mass, m.nEff = resize(m.mass, k), resize(m.nEff, k)
	m.scaled = resize(m.scaled, z)
	if cap(m.class) < k {
		m.class = make([]int, 0, k)
	}
	m.class = m.class[:0]
}

// column returns the profile of the a-th supported class.
func (m *confusion) column(a int) []float64 { return m.c[a*m.z : (a+1)*m.z] }

// second returns the second moments of the a-th supported class.
func (m *confusion) second(a int) []float64 { return m.s2[a*m.z : (a+1)*m.z] }

// mix writes Cq to dst.
func (m *confusion) mix(dst, q []float64) { combine(dst, q[:m.k], m.c) }

// columns are the tallies of one kind of profile with the cells of a class together,
// as every lambda of a likelihood reads them.
type columns struct {
	of        *Cells // what they are of, nil for nothing
	n, a1, a2 []float64
	own       []float64 // memory of the next two
	g2, g2a   []float64 // n and a1, where the labels have no weights of their own
}

// load turns the tallies over, once for all lambdas.
func (c *columns) load(t *Cells, k int) {
	if c.of == t {
		return
	}
	c.of = t
	c.n, c.a1, c.a2 = resize(c.n, t.Z*k), resize(c.a1, t.Z*k), resize(c.a2, t.Z*k)
	transpose(c.n, t.N, k)
	transpose(c.a1, t.A1, k)
	transpose(c.a2, t.A2, k)
	c.g2, c.g2a = c.n, c.a1
	if t.G2 != nil {
		c.own = resize(c.own, 2*t.Z*k)
		c.g2, c.g2a = c.own[:t.Z*k], c.own[t.Z*k:]
		transpose(c.g2, t.G2, k)
		transpose(c.g2a, t.G2A, k)
	}
}

// transpose writes the columns of src, which has rows of length k, one after the other.
func transpose(dst, src []float64, k int) {
	z := len(src) / k
	for at, x := range src {
		dst[at%k*z+at/k] = x
	}
}

// weighSmooth fills m as weigh does and smooths the columns of C, in one pass.
func (m *confusion) weighSmooth(t *columns, k int, w weighting) bool {
	size := t.of.Z
	m.reserve(size, k)
	r, s := w.r, w.s
	rr, rs, ss := r*r, 2*r*s, s*s
	for i := range k {
		column, second := m.c[m.k*size:(m.k+1)*size], m.s2[m.k*size:(m.k+1)*size]
		n, a1, a2 := t.n[i*size:][:size], t.a1[i*size:][:size], t.a2[i*size:][:size]
		g2, g2a := t.g2[i*size:][:size], t.g2a[i*size:][:size]
		column, second = column[:size], second[:size]
		var mass, square float64
		for z := range n {
			x, a := n[z], a1[z]
			s1 := r*a + s*x
			s2 := rr*a2[z] + rs*g2a[z] + ss*g2[z]
			column[z], second[z] = s1, s2
			mass += s1
			square += s2
		}
		if !(mass > 0) || !(square > 0) {
			continue
		}
		total := 1 + smoothing*float64(size) // what the smoothed column sums to
		scale, least := 1/(mass*total), smoothing/total
		for z, x := range column {
			column[z] = x*scale + least
		}
		m.mass[m.k], m.nEff[m.k] = mass, mass*mass/square
		m.class = append(m.class, i)
		m.k++
	}
	return m.k > 0
}

// weigh fills m from the tallies under the weights w = r a + s:
//
//	S1 = r A1 + s N,   S2 = r^2 A2 + 2 r s A1 + s^2 N,   C = S1 / W,
//
// with G2A and G2 for the last two where the labels have weights of their own.
// Classes without weight are left out. It reports whether one is left.
func (m *confusion) weigh(t *Cells, k int, w weighting) bool {
	m.reserve(t.Z, k)
	r, s := w.r, w.s
	rr, rs, ss := r*r, 2*r*s, s*s
	g2, g2a := t.N, t.A1
	if t.G2 != nil {
		g2, g2a = t.G2, t.G2A
	}
	for i := range k {
		column := m.c[m.k*m.z : (m.k+1)*m.z]
		second := m.s2[m.k*m.z : (m.k+1)*m.z]
		var mass, square float64
		for z := range m.z {
			n, a1, a2 := t.N[z*k+i], t.A1[z*k+i], t.A2[z*k+i]
			s1 := r*a1 + s*n
			s2 := rr*a2 + rs*g2a[z*k+i] + ss*g2[z*k+i]
			column[z], second[z] = s1, s2
			mass += s1
			square += s2
		}
		if !(mass > 0) || !(square > 0) {
			continue
		}
		scaleTo(column, 1/mass, column)
		m.mass[m.k], m.nEff[m.k] = mass, mass*mass/square
		m.class = append(m.class, i)
		m.k++
	}
	return m.k > 0
}
