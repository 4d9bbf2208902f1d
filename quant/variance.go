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
func (w *scratch) variances(ans *answer, in *input, m *confusion) {
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
func (w *scratch) sensitivity(m *confusion, weights []float64) {
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
func (w *scratch) invertOnSimplex(k int) {
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

// memberNoise puts H S_p H' into w.local, but for its part H diag(Cq) H'/n_U, which w.total keeps
// for the sandwich at the end, in the form that keeps to the share of these very members.
func (w *scratch) memberNoise(ans *answer, in *input, m *confusion) {
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
func (w *scratch) sandwich(dst []float64, m *confusion, t []float64) {
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

// labelNoise adds sum_i q_i^2 H S_ci H' to w.local and w.total from the second moments, with
//
//	S_ci = f_i (diag s_i - s_i c_i' - c_i s_i' + (sum s_i) c_i c_i') / W_i^2,
//
// exact for hard cells and never too small for soft ones.
func (w *scratch) labelNoise(ans *answer, m *confusion) {
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

// project writes H phi to w.y for the profile of a vertex: its own prediction on
// K cells, or the outer product with the neighbours' mean on K^2.
func (w *scratch) project(m *confusion, own, neighbors []float64) {
	phi := own
	if m.z != len(own) {
		w.phi = resize(w.phi, m.z)
		phi = w.phi
		for j, x := range own {
			scaleTo(phi[j*len(neighbors):], x, neighbors)
		}
	}
	products(w.y, w.h, phi)
}

// addOuter adds weight y y' to the lower triangle of dst.
func addOuter(dst []float64, weight float64, y []float64) {
	k := len(y)
	for a, x := range y {
		axpy(dst[a*k:a*k+a+1], weight*x, y[:a+1])
	}
}

// labelNoiseExact adds sum_i q_i^2 H S_ci H' to w.local with the covariances of
// the profiles themselves, S_ci = f_i sum (w/W_i)^2 (phi - c_i)(phi - c_i)'. Each
// vertex is projected by H first, so a pass costs O(labels Z K).
func (w *scratch) labelNoiseExact(ans *answer, in *input, m *confusion) {
	k := m.k
	w.y = resize(w.y, k)
	w.place = w.place[:0]
	for range ans.k {
		w.place = append(w.place, -1)
	}
	for a, i := range m.class {
		w.place[i] = a
	}
	in.rows(func(row Row) {
		i := w.place[row.Class]
		if i < 0 {
			return
		}
		w.project(m, row.Own, row.Neighbors)
		for a := range w.y {
			w.y[a] -= w.hc[a*k+i]
		}
		weight := in.weights.of(&row) / m.mass[i]
		square := weight * weight * smallSample(m.nEff[i])
		addOuter(w.local, square*w.qp.q[i]*w.qp.q[i], w.y)
		class := ans.class[row.Class*ans.k:]
		for a, j := range m.class {
			class[j] += square * w.y[a] * w.y[a]
		}
	})
}

const (
	// unseenFactor bounds the share of a cell among the members, in multiples of its largest
	// share in a class; the rest counts as unseen. In a mixture of the classes it is no
	// larger than in one of them, but for noise.
	unseenFactor = 100
	// unseenSpread is the variance of shares of which nothing is known around those of the labels,
	// as a share of pi (1 - pi): that of a Dirichlet distribution with one observation.
	unseenSpread = 1. / 2
	// unseenHigh is the share of unseen profiles that is flagged: as of members without
	// a prediction.
	unseenHigh = 1 - coverageLow
)

// unseen returns the share of the members' profiles that is in cells in which
// calibration labels of no class are, or hardly are.
func (m *confusion) unseen(p []float64) (share float64) {
	for z, x := range p {
		most := 0.0
		for a := range m.k {
			most = max(most, m.c[a*m.z+z])
		}
		share += max(0, x-unseenFactor*most)
	}
	return share
}

// addUnseen adds what the profiles that the labels do not show leave open to the covariance of ans:
// they say nothing of the classes, so what the answer takes for the shares there is that of the
// other members, and could be any other. Without this a likelihood to which every member is equally
// unlikely in all classes would be sure of whatever it began with.
func (w *scratch) addUnseen(ans *answer, m *confusion, p []float64) {
	ans.unseen = m.unseen(p)
	if ans.unseen == 0 {
		return
	}
	var total float64
	for _, i := range m.class {
		total += w.shares[i]
	}
	scale := unseenSpread * ans.unseen * ans.unseen
	for _, i := range m.class {
		for _, j := range m.class {
			ans.v[i*ans.k+j] += scale * w.shares[i] / total * (delta(i, j) - w.shares[j]/total)
		}
	}
}
