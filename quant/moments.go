package quant

import "gonum.org/v1/gonum/floats"

// Moments are the second moments of soft profiles over Z cells: all that the exact
// variances need of the calibration labels, at a cost that does not depend on how many
// there are. They say the same as Statistics.Rows.
type Moments struct {
	Z      int       // K, or K^2: then those over K cells are sums of them
	N      []float64 // K blocks of Z x Z: sum of phi phi' over calibration labels of class i
	A1, A2 []float64 // the same of a phi phi' and of a^2 phi phi'
}

// ofClass writes the sum of w^2 phi phi' over the labels of class i, or that of w phi phi', to dst for z cells,
// z = m.Z or K.
func (m *Moments) ofClass(dst []float64, i, z int, w weighting, squared bool) {
	a2, a1, n := 0.0, w.r, w.s
	if squared {
		a2, a1, n = w.r*w.r, 2*w.r*w.s, w.s*w.s
	}
	clear(dst)
	at, cells := i*m.Z*m.Z, m.Z/z
	for row := range m.Z {
		to := dst[row/cells*z:][:z]
		for column := range m.Z {
			to[column/cells] += a2*m.A2[at] + a1*m.A1[at] + n*m.N[at]
			at++
		}
	}
}

// labelSpreads returns, for each supported class i, the lower triangle of the sum over its labels of
//
//	w^2 (H phi - centre_i)(H phi - centre_i)',   or of w in place of w^2,
//
// for the k rows of H and the k rows of centres. Where neither rows nor moments say phi phi', it is bounded by diag phi:
// exact for hard cells and never too small for soft ones.
func (in *input) labelSpreads(m *confusion, h, centres []float64, squared bool) [][]float64 {
	k := len(h) / m.z
	spreads, place := make([][]float64, m.k), map[int]int{}
	for a, i := range m.class {
		spreads[a], place[i] = make([]float64, k*k), a
	}
	if in.rows != nil && in.moments == nil {
		y, phi := make([]float64, k), make([]float64, m.z)
		in.rows(func(row Row) {
			a, supported := place[row.Class]
			if !supported {
				return
			}
			products(y, h, row.profile(phi))
			axpy(y, -1, centres[a*k:(a+1)*k])
			weight := in.weights.of(&row)
			if squared {
				weight *= weight
			}
			addOuter(spreads[a], weight, y)
		})
		return spreads
	}
	centred, second := make([]float64, len(h)), make([]float64, m.z)
	if in.moments != nil {
		second = make([]float64, m.z*m.z)
	}
	for a, i := range m.class {
		switch { // the cells of a profile sum to one, so that each takes off the centre
		case in.moments != nil:
			in.moments.ofClass(second, i, m.z, in.weights, squared)
		case squared:
			copy(second, m.second(a))
		default:
			scaleTo(second, m.mass[a], m.column(a))
		}
		for b := range k {
			for z := range m.z {
				centred[b*m.z+z] = h[b*m.z+z] - centres[a*k+b]
			}
		}
		addForm(spreads[a], 1, centred, second, k)
	}
	return spreads
}

// profile returns the profile of the label over as many cells as phi has: its own prediction on K cells, or, written to
// phi, the outer product with the neighbours' mean on K^2.
func (r *Row) profile(phi []float64) []float64 {
	if len(phi) == len(r.Own) {
		return r.Own
	}
	for j, x := range r.Own {
		floats.ScaleTo(phi[j*len(r.Neighbors):][:len(r.Neighbors)], x, r.Neighbors)
	}
	return phi
}
