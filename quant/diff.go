package quant

// difference returns the difference estimator p + d, where d is the
// weighted mean over the calibration labels of (label - prediction): consistent
// when the label given the vertex is stable, and in need of no inverse.
//
//	V = sum (w/sum w)^2 (r - d)^2 + E_w[(r - d)^2]/n_U,  r = label - prediction,
//
// the second term because each member's own residual is unknown.
func (w *Solver) difference(s *Statistics, weights weighting) *answer {
	ans := newAnswer(s.K)
	ans.lambda = weights.lambda
	m := s.confusion(recipe{}, weights, 0)
	if m.k == 0 {
		copy(ans.Share, w.shares)
		copy(ans.free, w.shares)
		return ans
	}
	total := sum(m.mass)
	d := make([]float64, s.K)
	for a, i := range m.class {
		d[i] += m.mass[a] / total
		axpy(d, -m.mass[a]/total, m.column(a))
		ans.NEff[i] = m.nEff[a]
	}
	m.residuals(ans, s, d, total)
	ans.exact = s.Rows != nil
	copy(ans.free, s.Soft.P)
	axpy(ans.free, 1, d)
	ProjectSimplex(ans.Share, ans.free)
	return ans
}

// residuals sets the variances: that of d, and that of the members' own residuals. The residual of
// a label of class i less d is -p - (d - e_i).
func (m *confusion) residuals(ans *answer, s *Statistics, d []float64, total float64) {
	k := s.K
	minus, centres := make([]float64, k*k), make([]float64, m.k*k)
	for i := range k {
		minus[i*k+i] = -1
	}
	for a, i := range m.class {
		copy(centres[a*k:], d)
		centres[a*k+i]--
	}
	one, squared := m.labelSpreads(minus, centres, false), m.labelSpreads(minus, centres, true)
	for a, i := range m.class {
		for j := range k {
			ans.Member[j] += max(one[a*k+j], 0) / total
			ans.parts[i*k+j] = max(squared[a*k+j], 0) / (total * total)
			ans.v[j] += ans.parts[i*k+j]
		}
	}
	axpy(ans.v, 1/s.sample(), ans.Member)
}

// mirror copies the lower triangle of src to both triangles of dst.
func mirror(dst, src []float64, k int) {
	for a := range k {
		for b := range a + 1 {
			dst[a*k+b], dst[b*k+a] = src[a*k+b], src[a*k+b]
		}
	}
}
