package quant

// Moments are the second moments of soft profiles over Z cells: all that the exact
// variances need of the calibration labels, at a cost that does not depend on how many
// there are. They say the same as Statistics.Rows.
type Moments struct {
	Z      int       // K, or K^2: then those over K cells are sums of them
	N      []float64 // K blocks of Z x Z: sum of phi phi' over calibration labels of class i
	A1, A2 []float64 // the same of a phi phi' and of a^2 phi phi'
}

// momentWeights are the factors of A2, A1 and N in a sum of second moments.
type momentWeights struct{ a2, a1, n float64 }

// squared are the weights of sum w^2 phi phi' for w = r a + s, and plain those of sum w phi phi'.
func (w weighting) squared() momentWeights {
	return momentWeights{w.r * w.r, 2 * w.r * w.s, w.s * w.s}
}
func (w weighting) plain() momentWeights { return momentWeights{0, w.r, w.s} }

// ofClass writes the weighted second moments of the labels of class i over z cells,
// z = m.Z or K, to dst.
func (m *Moments) ofClass(dst []float64, i, z int, c momentWeights) {
	at := i * m.Z * m.Z
	if z == m.Z {
		for b := range dst {
			dst[b] = c.a2*m.A2[at+b] + c.a1*m.A1[at+b] + c.n*m.N[at+b]
		}
		return
	}
	clear(dst)
	for row := range m.Z {
		to := dst[row/z*z:][:z]
		for column := range m.Z {
			to[column/z] += c.a2*m.A2[at] + c.a1*m.A1[at] + c.n*m.N[at]
			at++
		}
	}
}

// between adds weight h M h' to the lower triangle of dst for the k rows of h, of
// length z each, and the z x z matrix in w.second.
func (w *scratch) between(dst []float64, weight float64, h []float64, k, z int) {
	w.phi = resize(w.phi, z)
	for a := range k {
		products(w.phi, w.second, h[a*z:(a+1)*z])
		for b := range a + 1 {
			dst[a*k+b] += weight * dot(w.phi, h[b*z:(b+1)*z])
		}
	}
}

// labelNoiseMoments is labelNoiseExact from the second moments: phi - c_i projected by H
// is phi projected by the rows of H, each less its own share of c_i, because the cells
// of a profile sum to one.
func (w *scratch) labelNoiseMoments(ans *answer, in *input, m *confusion) {
	k := m.k
	w.second, w.centred = resize(w.second, m.z*m.z), resize(w.centred, k*m.z)
	w.gram = resize(w.gram, k*k)
	for a, i := range m.class {
		in.moments.ofClass(w.second, i, m.z, in.weights.squared())
		for b := range k {
			row, off := w.centred[b*m.z:(b+1)*m.z], w.hc[b*k+a]
			for z, x := range w.h[b*m.z : (b+1)*m.z] {
				row[z] = x - off
			}
		}
		clear(w.gram)
		w.between(w.gram, smallSample(m.nEff[a])/(m.mass[a]*m.mass[a]), w.centred, k, m.z)
		class := ans.class[i*ans.k:]
		for b, j := range m.class {
			axpy(w.local[b*k:b*k+b+1], w.qp.q[a]*w.qp.q[a], w.gram[b*k:b*k+b+1])
			class[j] += max(w.gram[b*k+b], 0)
		}
	}
}

// addResiduals adds scale sum w (c - p)(c - p)' to the lower triangle of dst, with c
// in w.y and sum w p p' in w.second, and its diagonal to diagonal if that is not nil.
func (w *scratch) addResiduals(dst []float64, scale float64, diagonal []float64) {
	k := len(w.y)
	mass := 0.0
	for a := range k {
		w.row[a] = sum(w.second[a*k : (a+1)*k])
		mass += w.row[a]
	}
	for a := range k {
		for b := range a + 1 {
			x := mass*w.y[a]*w.y[b] - w.y[a]*w.row[b] - w.row[a]*w.y[b] + w.second[a*k+b]
			dst[a*k+b] += scale * x
			if a == b && diagonal != nil {
				diagonal[a] += scale * max(x, 0)
			}
		}
	}
}
