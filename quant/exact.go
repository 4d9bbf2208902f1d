package quant

// project writes H phi to w.y for the profile of a vertex: its own prediction on
// K cells, or the outer product with the neighbours' mean on K^2.
func (w *Solver) project(m *confusion, own, neighbors []float64) {
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
func (w *Solver) labelNoiseExact(ans *answer, in *input, m *confusion) {
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
