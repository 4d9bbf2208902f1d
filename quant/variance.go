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
	for a, i := range m.class {
		ans.nEff[i] = m.nEff[a]
	}
	if w.sketching {
		return
	}
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
	w.hp, w.hpSquare = resize(w.hp, k), resize(w.hpSquare, k)
	w.row, w.rowSquare = resize(w.row, k), resize(w.rowSquare, k)
	moments(w.hp, w.hpSquare, w.h, in.p)
	moments(w.row, w.rowSquare, w.h, w.fit)
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
		ans.exact = true
	default:
		w.labelNoise(ans, m)
		ans.exact = in.hard
	}
	w.sandwich(w.local, m, w.total)
	for a, i := range m.class {
		for b, j := range m.class {
			ans.v[i*ans.k+j] = w.local[max(a, b)*k+min(a, b)]
		}
		scaleTo(ans.label[i*ans.k:(i+1)*ans.k], q[a]*q[a], ans.class[i*ans.k:(i+1)*ans.k])
	}
	w.addUnseen(ans, m, in.p)
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
	choleskyInverse(w.inverse, w.factor, k)
	for a := range k {
		w.ones[a] = 1
	}
	choleskySolve(w.factor, k, w.ones)
	total := sum(w.ones[:k])
	for a := range k {
		for b := range k {
			w.inverse[a*k+b] -= w.ones[a] * w.ones[b] / total
		}
	}
}

// memberNoise puts H S_p H' into w.local, but for its part H diag(Cq) H'/n_U, which
// w.total keeps for the sandwich at the end, in the form that keeps to the share of
// these very members.
func (w *Solver) memberNoise(ans *answer, in *input, m *confusion) {
	k := m.k
	w.total = resize(w.total, m.z)
	scaleTo(w.total, 1/in.sample, w.fit)
	for i, share := range w.qp.q[:k] {
		for a := range k {
			left := share * w.hc[a*k+i]
			w.rowSquare[a] -= left * w.hc[a*k+i]
			for b := range a + 1 {
				w.local[a*k+b] += -left / in.sample * w.hc[b*k+i]
			}
		}
	}
	for a, i := range m.class {
		ans.member[i] = max(w.rowSquare[a], 0)
	}
}

// sandwich adds H diag(t) H' to the lower triangle of dst.
func (w *Solver) sandwich(dst []float64, m *confusion, t []float64) {
	k := m.k
	w.row = resize(w.row, k)
	for a := range k {
		h, scaled := w.h[a*m.z:(a+1)*m.z], m.scaled[:len(t)]
		for z, x := range t {
			scaled[z] = x * h[z]
		}
		products(w.row[:a+1], w.h, scaled)
		axpy(dst[a*k:a*k+a+1], 1, w.row[:a+1])
	}
}

// smallSample is n_eff/(n_eff - 1), bounded where a class has hardly any label.
func smallSample(nEff float64) float64 { return nEff / max(nEff-1, excessFloor) }

// labelNoise adds sum_i q_i^2 H S_ci H' to w.local and w.total from the second
// moments, with
//
//	S_ci = f_i (diag s_i - s_i c_i' - c_i s_i' + (sum s_i) c_i c_i') / W_i^2,
//
// exact for hard cells and never too small for soft ones.
func (w *Solver) labelNoise(ans *answer, m *confusion) {
	k := m.k
	w.hs, w.row = resize(w.hs, k), resize(w.row, k)
	w.y = resize(w.y, k)
	for i := range k {
		s, mass := m.second(i), m.mass[i]
		factor := smallSample(m.nEff[i]) / (mass * mass)
		square := w.qp.q[i] * w.qp.q[i] * factor
		weight := mass * mass / m.nEff[i]
		axpy(w.total, square, s)
		moments(w.hs, w.row, w.h, s)
		class := ans.class[m.class[i]*ans.k:]
		for a, j := range m.class {
			ca := w.hc[a*k+i]
			class[j] = max(factor*(w.row[a]-2*w.hs[a]*ca+weight*ca*ca), 0)
			w.y[a] = square * (weight*ca - w.hs[a])
			w.hs[a] *= -square
			local := w.local[a*k : a*k+a+1]
			for b := range local {
				local[b] += w.y[a]*w.hc[b*k+i] + ca*w.hs[b]
			}
		}
	}
}
