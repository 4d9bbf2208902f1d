package quant

// difference fills ans with the difference estimator p + d, where d is the
// weighted mean over the calibration labels of (label - prediction): consistent
// when the label given the vertex is stable, and in need of no inverse.
//
//	V = sum (w/sum w)^2 (r - d)(r - d)' + E_w[(r - d)(r - d)']/n_U,  r = label - prediction,
//
// the second term because each member's own residual is unknown.
func (w *scratch) difference(ans *answer, s *Statistics, weights weighting) {
	ans.reset(s.K)
	ans.lambda = weights.lambda
	m := &w.soft
	if !m.weigh(s.Soft, s.K, weights, 0) {
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
	switch {
	case w.sketching:
		w.unit = zeroed(w.unit, s.K*s.K)
	case s.Moments != nil:
		w.residualsMoments(ans, s, weights, total)
		ans.exact = true
	case s.Rows != nil:
		w.residualsExact(ans, s, weights, total)
		ans.exact = true
	default:
		w.residuals(ans, m, total)
	}
	w.memberResiduals(ans, s)
	axpy(ans.free, 1, s.Soft.P)
	ProjectSimplex(ans.q, ans.free)
}

// residualsExact adds the variance of d from the labels themselves, and sets w.unit
// to the covariance of one residual.
func (w *scratch) residualsExact(ans *answer, s *Statistics, weights weighting, total float64) {
	k := s.K
	w.y, w.local, w.gram = resize(w.y, k), zeroed(w.local, k*k), zeroed(w.gram, k*k)
	s.Rows(func(row Row) {
		for i, p := range row.Own {
			w.y[i] = -p - ans.free[i]
		}
		w.y[row.Class]++
		share := weights.of(&row) / total
		addOuter(w.local, share*share, w.y)
		addOuter(w.gram, share, w.y)
		label := ans.label[row.Class*k : (row.Class+1)*k]
		for i, y := range w.y {
			label[i] += share * share * y * y
		}
	})
	mirror(ans.v, w.local, k)
	w.unit = resize(w.unit, k*k)
	mirror(w.unit, w.gram, k)
}

// residuals does the same from the moments by cell, with the squares of the
// predictions bounded by the predictions: never too small.
func (w *scratch) residuals(ans *answer, m *confusion, total float64) {
	k, d := ans.k, ans.free
	w.unit, w.row = zeroed(w.unit, k*k), resize(w.row, k)
	for a, i := range m.class {
		s := m.second(a)
		square := sum(s)
		w.residual(ans.v, d, i, square/(total*total), 1/(total*total), s)
		w.residual(w.unit, d, i, m.mass[a]/total, m.mass[a]/total, m.column(a))
		for z, x := range s {
			ans.label[i*k+z] = (square*d[z]*d[z] + 2*d[z]*x + x) / (total * total)
		}
		ans.label[i*k+i] += (square*(1-2*d[i]) - 2*s[i]) / (total * total)
	}
}

// residual adds sum w (r - d)(r - d)' over labels of class i to v, where the weights
// sum to mass and scale*s is the weighted sum of their predictions p:
//
//	w (r r' - r d' - d r' + d d'),  r = e_i - p,  r r' <= e_i e_i' - e_i p' - p e_i' + diag p.
func (w *scratch) residual(v, d []float64, i int, mass, scale float64, s []float64) {
	k := len(d)
	r := w.row
	scaleTo(r, -scale, s)
	r[i] += mass
	for a := range k {
		v[a*k+a] += scale * s[a]
		v[a*k+i] -= scale * s[a]
		v[i*k+a] -= scale * s[a]
		for b := range k {
			v[a*k+b] += mass*d[a]*d[b] - r[a]*d[b] - d[a]*r[b]
		}
	}
	v[i*k+i] += mass
}

// memberResiduals adds the residuals of the members, w.unit/n_U, and sets the variance
// of one member.
func (w *scratch) memberResiduals(ans *answer, s *Statistics) {
	k := s.K
	for a := range k {
		ans.member[a] = max(w.unit[a*k+a], 0)
	}
	axpy(ans.v, 1/s.sample(), w.unit)
}

// mirror copies the lower triangle of src to both triangles of dst.
func mirror(dst, src []float64, k int) {
	for a := range k {
		for b := range a + 1 {
			dst[a*k+b], dst[b*k+a] = src[a*k+b], src[a*k+b]
		}
	}
}
