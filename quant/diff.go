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
	if w.sketching {
		w.unit = zeroed(w.unit, s.K*s.K)
	} else {
		w.residuals(ans, s, weights, total)
		ans.exact = s.Moments != nil || s.Rows != nil
	}
	w.memberResiduals(ans, s)
	axpy(ans.free, 1, s.Soft.P)
	ProjectSimplex(ans.q, ans.free)
}

// residuals adds the variance of d, and sets w.unit to the covariance of one residual, from the second moments of
// the predictions. The residual of a label of class i less d is c - p with c = e_i - d.
func (w *scratch) residuals(ans *answer, s *Statistics, weights weighting, total float64) {
	k := s.K
	w.y, w.row, w.second = resize(w.y, k), resize(w.row, k), resize(w.second, k*k)
	w.local, w.gram = zeroed(w.local, k*k), zeroed(w.gram, k*k)
	w.squared, w.plain = zeroed(w.squared, k*k*k), zeroed(w.plain, k*k*k)
	w.secondMoments(s, weights)
	for i := range k {
		scaleTo(w.y, -1, ans.free)
		w.y[i]++
		label := ans.label[i*k : (i+1)*k]
		copy(w.second, block(w.squared, i, k))
		w.addResiduals(w.local, 1/(total*total), label)
		copy(w.second, block(w.plain, i, k))
		w.addResiduals(w.gram, 1/total, nil)
	}
	mirror(ans.v, w.local, k)
	w.unit = resize(w.unit, k*k)
	mirror(w.unit, w.gram, k)
}

// secondMoments adds sum w^2 p p' over the labels of each class to w.squared, and sum w p p' to w.plain. Where
// nobody says them, p p' is bounded by diag p: never too small.
func (w *scratch) secondMoments(s *Statistics, weights weighting) {
	k, m := s.K, &w.soft
	switch {
	case s.Moments != nil:
		for i := range k {
			s.Moments.ofClass(block(w.squared, i, k), i, k, weights.squared())
			s.Moments.ofClass(block(w.plain, i, k), i, k, weights.plain())
		}
	case s.Rows != nil:
		s.Rows(func(row Row) {
			weight := weights.of(&row)
			addOuter(block(w.squared, row.Class, k), weight*weight, row.Own)
			addOuter(block(w.plain, row.Class, k), weight, row.Own)
		})
		for i := range k {
			mirror(block(w.squared, i, k), block(w.squared, i, k), k)
			mirror(block(w.plain, i, k), block(w.plain, i, k), k)
		}
	default:
		for a, i := range m.class {
			for z, x := range m.second(a) {
				block(w.squared, i, k)[z*k+z] = x
				block(w.plain, i, k)[z*k+z] = m.mass[a] * m.column(a)[z]
			}
		}
	}
}

// block returns the i-th of several k x k matrices.
func block(of []float64, i, k int) []float64 { return of[i*k*k : (i+1)*k*k] }

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
