package quant

// biasAllowance is tau, the standard deviation per direction granted to the bias
// of diff under prior shift when it is averaged with another answer.
const biasAllowance = 0.05

// difference fills ans with the difference estimator p + d, where d is the
// weighted mean over the calibration labels of (label - prediction): consistent
// when the label given the vertex is stable, and in need of no inverse.
//
//	V = sum (w/sum w)^2 (r - d)(r - d)' + Cov_U(p)/n_U,  r = label - prediction.
func (w *Solver) difference(ans *answer, s *Statistics, weights weighting) {
	ans.reset(s.K)
	ans.lambda = weights.lambda
	m := &w.soft
	if !m.weigh(s.Soft, s.K, weights) {
		copy(ans.q, w.shares)
		copy(ans.free, w.shares)
		return
	}
	total := sum(m.mass[:m.k])
	d := ans.free // d first, then p + d
	for a, i := range m.class {
		d[i] += m.mass[a] / total
		axpy(d, -m.mass[a]/total, m.column(a))
		ans.nEff[i] = m.nEff[a]
	}
	if s.Rows != nil {
		w.residualsExact(ans, s, weights, total)
		ans.exact = s.OwnCovariance != nil
	} else {
		w.residuals(ans, m, total)
	}
	w.ownCovariance(ans, s)
	axpy(ans.free, 1, s.Soft.P)
	ProjectSimplex(ans.q, ans.free)
}

// residualsExact adds the variance of d from the labels themselves.
func (w *Solver) residualsExact(ans *answer, s *Statistics, weights weighting, total float64) {
	k := s.K
	w.y, w.local = resize(w.y, k), zeroed(w.local, k*k)
	s.Rows(func(row Row) {
		for i, p := range row.Own {
			w.y[i] = -p - ans.free[i]
		}
		w.y[row.Class]++
		share := (weights.r*row.A + weights.s) / total
		addOuter(w.local, share*share, w.y)
		label := ans.label[row.Class*k : (row.Class+1)*k]
		for i, y := range w.y {
			label[i] += share * share * y * y
		}
	})
	mirror(ans.v, w.local, k)
}

// residuals adds the variance of d from the second moments, with the squares of
// the predictions bounded by the predictions: never too small.
func (w *Solver) residuals(ans *answer, m *confusion, total float64) {
	k := ans.k
	v, d := zeroed(w.local, k*k), ans.free
	w.local = v
	w.hs = zeroed(w.hs, k) // sum of w^2 r
	var weight float64
	for a, i := range m.class {
		s := m.second(a)
		square := sum(s)
		weight += square
		w.hs[i] += square
		axpy(w.hs, -1, s)
		v[i*k+i] += square
		for z, x := range s {
			v[z*k+z] += x
			v[z*k+i] -= x
			v[i*k+z] -= x
			ans.label[i*k+z] = (square*d[z]*d[z] + 2*d[z]*x + x) / (total * total)
		}
		ans.label[i*k+i] += (square*(1-2*d[i]) - 2*s[i]) / (total * total)
	}
	for a := range k {
		for b := range k {
			x := v[a*k+b] - w.hs[a]*d[b] - d[a]*w.hs[b] + weight*d[a]*d[b]
			ans.v[a*k+b] = x / (total * total)
		}
	}
}

// ownCovariance adds Cov_U(p)/n_U, and sets the variance of one member. Without
// the covariance itself it takes that of hard predictions, which is no smaller.
func (w *Solver) ownCovariance(ans *answer, s *Statistics) {
	k, p := s.K, s.Soft.P
	for a := range k {
		for b := range k {
			c := p[a] * (delta(a, b) - p[b])
			if s.OwnCovariance != nil {
				c = s.OwnCovariance[a*k+b]
			}
			ans.v[a*k+b] += c / s.sample()
			if a == b {
				ans.member[a] = max(c, 0)
			}
		}
	}
}

// mirror copies the lower triangle of src to both triangles of dst.
func mirror(dst, src []float64, k int) {
	for a := range k {
		for b := range a + 1 {
			dst[a*k+b], dst[b*k+a] = src[a*k+b], src[a*k+b]
		}
	}
}
