package quant

// ridgeShare scales the Tikhonov pull of the least-squares solver: it decides between solutions
// that fit equally well and moves no other by more than ridgeShare / sigma_min^2.
const ridgeShare = 1e-9

// leastSquares returns the shares of the classes of m, valid until the next call.
// shares has an entry for every class, supported or not.
func (w *scratch) leastSquares(m *confusion, p, shares []float64) []float64 {
	w.qp.reserve(m.k)
	gram(w.qp.g, m, nil)
	pull := ridgeShare * trace(w.qp.g, m.k) / float64(m.k)
	var total float64
	for _, i := range m.class {
		total += shares[i]
	}
	for a, i := range m.class {
		w.qp.g[a*m.k+a] += pull
		share := 1 / float64(m.k)
		if total > 0 {
			share = shares[i] / total
		}
		w.qp.b[a] = dot(m.column(a), p) + pull*share
		w.qp.q[a] = 1 / float64(m.k)
	}
	w.qp.solve()
	return w.qp.q
}

// gram writes C' diag(weights) C to g, k x k; nil weights are ones.
func gram(g []float64, m *confusion, weights []float64) {
	for a := range m.k {
		left := m.column(a)
		if weights != nil {
			scaled := make([]float64, m.z)
			for z, v := range left {
				scaled[z] = v * weights[z]
			}
			left = scaled
		}
		products(g[a*m.k:a*m.k+a+1], m.c, left)
		for b := range a {
			g[b*m.k+a] = g[a*m.k+b]
		}
	}
}

// trace returns the sum of the diagonal of the n x n matrix a.
func trace(a []float64, n int) float64 {
	var t float64
	for i := range n {
		t += a[i*n+i]
	}
	return t
}

// diagonal returns the diagonal of an n x n matrix.
func diagonal(a []float64, n int) []float64 {
	dst := make([]float64, n)
	for i := range dst {
		dst[i] = max(a[i*n+i], 0) // rounding can leave less where all labels are alike
	}
	return dst
}
