package quant

import "fmt"

// ridgeShare scales the Tikhonov pull of the least-squares solver: it decides
// between solutions that fit equally well and moves no other by more than
// ridgeShare / sigma_min^2.
const ridgeShare = 1e-9

// LeastSquares writes to dst the q that minimises |Cq - p|^2 + e |q - shares|^2
// over the simplex, and returns the residual of its optimality conditions, which
// is at most 1e-12 for a confusion matrix. c is Z x K, entry (z, i) at z*K+i, with
// K = len(dst) and Z = len(p); e is 1e-9 times the mean diagonal of C'C. A class
// whose column is zero gets no share; if all are zero the answer is shares.
// It panics on lengths that do not match. Primal active set with Cholesky,
// O(Z K^2 + K^3) a round; closed form for K = 2.
func (w *Solver) LeastSquares(dst, c, p, shares []float64) (residual float64) {
	m := &w.scratch
	if !m.load(dst, c, p, shares) {
		copy(dst, shares)
		return 0
	}
	w.leastSquares(m, p, shares)
	scatter(dst, m.class, w.qp.q)
	return w.qp.residual()
}

// leastSquares solves for the classes of m and leaves the shares in w.qp.q.
// shares has an entry for every class, supported or not.
func (w *Solver) leastSquares(m *confusion, p, shares []float64) {
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
}

// gram writes C' diag(weights) C to g, k x k; nil weights are ones.
func gram(g []float64, m *confusion, weights []float64) {
	for a := range m.k {
		left := m.column(a)
		if weights != nil {
			scaled := m.scaled[:len(left)]
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

// scatter writes the values of the supported classes to their places in dst and
// zero elsewhere.
func scatter(dst []float64, class []int, values []float64) {
	clear(dst)
	for a, i := range class {
		dst[i] = values[a]
	}
}

// load takes a matrix handed in by a caller: it keeps the columns that are not
// zero and reports whether there is one.
func (m *confusion) load(dst, c, p, shares []float64) bool {
	k, z := len(dst), len(p)
	if k == 0 || z == 0 || len(c) != z*k || len(shares) != k {
		panic(fmt.Sprintf("quant: %d entries of C for %d cells and %d classes, %d shares",
			len(c), z, k, len(shares)))
	}
	m.reserve(z, k)
	for i := range k {
		column := m.c[m.k*z : (m.k+1)*z]
		var weight float64
		for j := range z {
			column[j] = c[j*k+i]
			weight += column[j]
		}
		if weight > 0 {
			m.class = append(m.class, i)
			m.k++
		}
	}
	return m.k > 0
}
