package quant

// difference returns the difference estimator p + d, where d is the
// weighted mean over the calibration labels of (label - prediction): consistent
// when the label given the vertex is stable, and in need of no inverse.
//
//	V = sum (w/sum w)^2 (r - d)(r - d)' + E_w[(r - d)(r - d)']/n_U,  r = label - prediction,
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
	if !w.sketching {
		m.residuals(ans, s, d, total)
		ans.exact = s.Rows != nil
	}
	copy(ans.free, s.Soft.P)
	axpy(ans.free, 1, d)
	ProjectSimplex(ans.Share, ans.free)
	return ans
}

// residuals sets the variances: that of d, and that of the members' own residuals. The residual of a label of class i
// less d is -p - (d - e_i).
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
	scale, each := make([]float64, m.k), make([]float64, m.k*k)
	unit := make([]float64, k*k) // covariance of one residual
	for a := range scale {
		scale[a] = 1 / total
	}
	m.labelSpreads(unit, each, minus, centres, scale, false)
	scaleTo(scale, 1/total, scale)
	clear(each)
	m.labelSpreads(ans.v, each, minus, centres, scale, true)
	for a, i := range m.class {
		for j, x := range each[a*k : (a+1)*k] {
			ans.parts[i*k+j] = max(x, 0) / (total * total)
		}
	}
	for i := range k {
		ans.Member[i] = max(unit[i*k+i], 0)
	}
	axpy(ans.v, 1/s.sample(), unit)
	mirror(ans.v, ans.v, k)
}

// mirror copies the lower triangle of src to both triangles of dst.
func mirror(dst, src []float64, k int) {
	for a := range k {
		for b := range a + 1 {
			dst[a*k+b], dst[b*k+a] = src[a*k+b], src[a*k+b]
		}
	}
}
