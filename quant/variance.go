package quant

const (
	// fitFloor bounds the likelihood weights 1/(Cq) of the variances.
	fitFloor = 1e-6
	// excessFloor bounds n_eff - 1 in the small-sample factor n_eff/(n_eff - 1).
	excessFloor = 0.5
)

// variances fills the variances and the centre of ans, whose q are the solution
// in w.qp.q for the confusion m and the profile p of the members. Delta method:
// with D = I for least squares, 1/(Cq) for likelihood,
//
//	G = C'DC + e I,  A = G^-1 - G^-1 11' G^-1 / (1' G^-1 1),  H = A C'D,
//	V = H (S_p + sum_i q_i^2 S_ci) H'.
func (w *Solver) variances(ans *answer, in *input, m *confusion) {
	k := m.k
	q := w.qp.q[:k]
	w.fit = resize(w.fit, m.z)
	m.mix(w.fit, q)
	var weights []float64
	if in.likelihood {
		w.curve = resize(w.curve, m.z)
		for z, x := range w.fit {
			w.curve[z] = 1 / max(x, fitFloor)
		}
		weights = w.curve
	}
	w.sensitivity(m, weights)
	w.hp, w.row = resize(w.hp, k), resize(w.row, k)
	products(w.hp, w.h, in.p)
	products(w.row, w.h, w.fit)
	for a, i := range m.class {
		ans.free[i] = q[a] + w.hp[a] - w.row[a]
	}
	w.local = zeroed(w.local, k*k)
	w.memberNoise(ans, in, m)
	switch {
	case in.moments != nil:
		w.labelNoiseMoments(ans, in, m)
		ans.exact = true
	case in.rows != nil:
		w.labelNoiseExact(ans, in, m)
		ans.exact = in.members != nil || !in.likelihood
	default:
		w.labelNoise(ans, m)
		ans.exact = in.hard
	}
	for a, i := range m.class {
		for b, j := range m.class {
			ans.v[i*ans.k+j] = w.local[max(a, b)*k+min(a, b)]
		}
		ans.nEff[i] = m.nEff[a]
		scaleTo(ans.label[i*ans.k:(i+1)*ans.k], q[a]*q[a], ans.class[i*ans.k:(i+1)*ans.k])
	}
}

// sensitivity sets w.h to H, k x z, w.inverse to A and w.hc to HC, k x k.
func (w *Solver) sensitivity(m *confusion, weights []float64) {
	k := m.k
	w.gram, w.inverse = resize(w.gram, k*k), resize(w.inverse, k*k)
	w.h, w.hc = resize(w.h, k*m.z), resize(w.hc, k*k)
	gram(w.gram, m, weights)
	ridge := ridgeShare * trace(w.gram, k) / float64(k)
	for a := range k {
		w.gram[a*k+a] += ridge
	}
	w.invertOnSimplex(k)
	for a := range k {
		h := w.h[a*m.z : (a+1)*m.z]
		combine(h, w.inverse[a*k:(a+1)*k], m.c)
		for z, x := range weights {
			h[z] *= x
		}
	}
	// HC = A (G - e I) = I - u 1'/(1'u) - e A with u = G^-1 1.
	total := sum(w.ones[:k])
	for a := range k {
		for b := range k {
			w.hc[a*k+b] = -w.ones[a]/total - ridge*w.inverse[a*k+b]
		}
		w.hc[a*k+a]++
	}
}

// invertOnSimplex sets w.inverse to the inverse of w.gram on vectors that sum to
// zero, and w.ones to G^-1 1.
func (w *Solver) invertOnSimplex(k int) {
	w.factor, w.ones = resize(w.factor, k*k), resize(w.ones, k)
	copy(w.factor, w.gram)
	cholesky(w.factor, k)
	for a := range k {
		w.ones[a] = 1
		row := w.inverse[a*k : (a+1)*k]
		clear(row)
		row[a] = 1
		choleskySolve(w.factor, k, row)
	}
	choleskySolve(w.factor, k, w.ones)
	total := sum(w.ones[:k])
	for a := range k {
		for b := range k {
			w.inverse[a*k+b] -= w.ones[a] * w.ones[b] / total
		}
	}
}

// memberNoise adds H S_p H' to w.local, in the form that keeps to the share of
// these very members. For likelihood it also sets the excess of the members as a
// sample of others, Cov_U(phi)/n_U, over that.
func (w *Solver) memberNoise(ans *answer, in *input, m *confusion) {
	k := m.k
	if in.likelihood {
		w.sampleNoise(in, m)
		ans.excess = trace(w.unit, k) / in.sample
	}
	w.unit = zeroed(w.unit, k*k)
	w.sandwich(w.unit, m, w.fit)
	for i, share := range w.qp.q[:k] {
		for a := range k {
			for b := range a + 1 {
				w.unit[a*k+b] -= share * w.hc[a*k+i] * w.hc[b*k+i]
			}
		}
	}
	if in.likelihood {
		ans.excess -= trace(w.unit, k) / in.sample
	}
	for a, i := range m.class {
		ans.member[i] = max(w.unit[a*k+a], 0)
	}
	axpy(w.local, 1/in.sample, w.unit)
}

// sampleNoise sets w.unit to H Cov_U(phi) H', from the members if they can be
// visited, else as if their profiles were hard.
func (w *Solver) sampleNoise(in *input, m *confusion) {
	k := m.k
	w.unit = zeroed(w.unit, k*k)
	switch {
	case in.moments != nil:
		w.profileCovarianceMoments(in, m)
		return
	case in.members != nil:
		w.profileCovariance(in, m)
		return
	}
	w.sandwich(w.unit, m, in.p)
	for a := range k {
		axpy(w.unit[a*k:a*k+a+1], -w.hp[a], w.hp[:a+1])
	}
}

// sandwich adds H diag(t) H' to the lower triangle of dst.
func (w *Solver) sandwich(dst []float64, m *confusion, t []float64) {
	k := m.k
	w.row = resize(w.row, k)
	for a := range k {
		h := w.h[a*m.z : (a+1)*m.z]
		for z, x := range t {
			m.scaled[z] = x * h[z]
		}
		products(w.row[:a+1], w.h, m.scaled)
		axpy(dst[a*k:a*k+a+1], 1, w.row[:a+1])
	}
}

// smallSample is n_eff/(n_eff - 1), bounded where a class has hardly any label.
func smallSample(nEff float64) float64 { return nEff / max(nEff-1, excessFloor) }

// labelNoise adds sum_i q_i^2 H S_ci H' to w.local from the second moments, with
//
//	S_ci = f_i (diag s_i - s_i c_i' - c_i s_i' + (sum s_i) c_i c_i') / W_i^2,
//
// exact for hard cells and never too small for soft ones.
func (w *Solver) labelNoise(ans *answer, m *confusion) {
	k := m.k
	w.total, w.h2 = zeroed(w.total, m.z), resize(w.h2, k*m.z)
	w.hs, w.row = resize(w.hs, k), resize(w.row, k)
	for i, x := range w.h[:k*m.z] {
		w.h2[i] = x * x
	}
	for i := range k {
		s, mass := m.second(i), m.mass[i]
		factor := smallSample(m.nEff[i]) / (mass * mass)
		square := w.qp.q[i] * w.qp.q[i] * factor
		weight := mass * mass / m.nEff[i]
		axpy(w.total, square, s)
		products(w.hs, w.h, s)
		products(w.row, w.h2, s)
		class := ans.class[m.class[i]*ans.k:]
		for a, j := range m.class {
			ca := w.hc[a*k+i]
			class[j] = max(factor*(w.row[a]-2*w.hs[a]*ca+weight*ca*ca), 0)
			local := w.local[a*k : a*k+a+1]
			for b := range local {
				cb := w.hc[b*k+i]
				local[b] += square * (weight*ca*cb - w.hs[a]*cb - ca*w.hs[b])
			}
		}
	}
	w.sandwich(w.local, m, w.total)
}
