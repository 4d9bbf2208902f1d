package tally

import (
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// momentsMax bounds the second moments by pairs of cells that exact variances take,
// K Z^2 numbers a community: five classes through pairs of own and neighbours. Above
// it the diagonal stand-in is used.
const momentsMax = 4096

// Spread is how the kernel mass of a community was spread over the calibration
// labels when it was last solved for.
type Spread struct {
	Position  event.Position
	Time      event.Time
	Churn     float64   // multiplicity of the sources that joined or left since
	N, A1, A2 []float64 // by function, as they were
	B1, B2    []float64 // K x Z x Z over the soft side: sums of a phi phi' and a^2 phi phi'; or none
}

// Spread returns that of a community, nil before its first Refresh. It is read-only.
func (t *Tallies) Spread(id CommunityID) *Spread { return t.each[id].spread }

// SetSpread overwrites it, as at a restart; the tallies keep it. It reports whether s
// is one of these tallies.
func (t *Tallies) SetSpread(id CommunityID, s *Spread) bool {
	l := t.Functions()
	if s != nil && (len(s.N) != l || len(s.A1) != l || len(s.A2) != l ||
		len(s.B1) != len(t.outer) || len(s.B2) != len(t.outer)) {
		return false
	}
	t.each[id].spread = s
	return true
}

// Refresh counts the second moments of one community from the masses of a kernel that
// was solved for the present graph. It may run for several communities side by side.
func (t *Tallies) Refresh(id CommunityID, view graphstore.View, sums *neighborhood.Sums, mass Mass, at event.Position, now event.Time) {
	l := t.Functions()
	block := make([]float64, 3*l)
	s := &Spread{Position: at, Time: now, N: block[:l:l], A1: block[l : 2*l : 2*l], A2: block[2*l:]}
	z := t.sides[0].z
	if t.outer != nil {
		size := t.classes * z * z
		s.B1, s.B2 = make([]float64, size), make([]float64, size)
	}
	var cells []float64
	for _, v := range t.rows.order {
		state := stateOf(view, sums, v)
		cells = t.cells(cells, state.profile)
		class, a := int(state.label.Class), mass(v)
		for _, side := range t.sides {
			at := side.at + class*side.z
			for i, phi := range cells[side.cell : side.cell+side.z] {
				s.N[at+i] += phi
				s.A1[at+i] += float64(a * phi)
				s.A2[at+i] += float64(a * a * phi)
			}
		}
		if s.B1 != nil {
			phi := cells[t.sides[0].cell:][:z]
			addOuter(s.B1[class*z*z:], a, phi)
			addOuter(s.B2[class*z*z:], a*a, phi)
		}
	}
	t.each[id].spread = s
}

// addOuter adds weight x x' to the first len(x)^2 numbers of dst.
func addOuter(dst []float64, weight float64, x []float64) {
	for i, a := range x {
		row := dst[i*len(x):][:len(x)]
		for j, b := range x {
			row[j] += float64(weight * a * b)
		}
	}
}

// secondMoments returns A2 by function for the first moments a1. What it keeps of the
// last Refresh is the relative spread of the mass in a cell,
//
//	A2 N / A1^2 = A2' N' / A1'^2,
//
// which is one where all labels weigh the same, so that no effective number of labels
// exceeds the number of labels; level and support are those of now. What has never been
// refreshed is taken as if one label had all the mass of its class, the most that A2 can be.
func (t *Tallies) secondMoments(s *Spread, a1 []float64) []float64 {
	a2 := make([]float64, len(a1))
	for _, side := range t.sides {
		for i := range t.classes {
			from, to := side.at+i*side.z, side.at+(i+1)*side.z
			all := 0.0
			for _, x := range a1[from:to] {
				all += x
			}
			for at := from; at < to; at++ {
				n := t.n[side.kind][at-side.at].Float()
				a2[at] = s.second(at, from, to, a1[at], n, all)
			}
		}
	}
	return a2
}

// second returns A2 of one cell, of the class whose functions are from to to and whose
// masses sum to all.
func (s *Spread) second(at, from, to int, a1, n, all float64) float64 {
	most := a1 * all
	if s == nil || !(n > 0) || !(a1 > 0) {
		return most
	}
	relative := relativeSpread(s.N[at:at+1], s.A1[at:at+1], s.A2[at:at+1])
	if !(relative > 0) { // nothing was there: as in the rest of the class
		relative = relativeSpread(s.N[from:to], s.A1[from:to], s.A2[from:to])
	}
	if !(relative > 0) {
		return most
	}
	least := a1 * a1 / n
	return max(least, min(most, least*relative))
}

// relativeSpread returns A2 N / A1^2 of some cells together, 0 where there is no mass.
func relativeSpread(n, a1, a2 []float64) float64 {
	var sumN, sum1, sum2 float64
	for i := range n {
		sumN, sum1, sum2 = sumN+n[i], sum1+a1[i], sum2+a2[i]
	}
	if !(sum1 > 0) || math.IsInf(sumN/sum1, 1) {
		return 0
	}
	return sum2 / sum1 * (sumN / sum1)
}

// moments returns the second moments that exact variances need. Those by pairs of cells
// of the last Refresh are brought to the level of A1 and A2 as their cells were: rows
// and columns by the same factor, which keeps them covariances.
func (t *Tallies) moments(id CommunityID, view graphstore.View, sums *neighborhood.Sums, a1, a2 []float64) *quant.Moments {
	c, z := t.each[id], t.sides[0].z
	size := t.classes * z * z
	block := make([]float64, 3*size+z*z+2*z)
	m := &quant.Moments{
		Z: z, N: block[:size], A1: block[size : 2*size], A2: block[2*size : 3*size],
		Members: block[3*size : 3*size+z*z],
	}
	f1, f2 := block[3*size+z*z:][:z], block[3*size+z*z+z:]
	for i := range t.classes {
		for j := range z {
			at := i*z + j
			f1[j], f2[j] = rootRatio(a1[at], c.spread.A1[at]), rootRatio(a2[at], c.spread.A2[at])
		}
		for a := range z {
			for b := range z {
				at := (i*z+a)*z + b
				m.N[at] = t.outer[(i*z+max(a, b))*z+min(a, b)].Float()
				m.A1[at] = f1[a] * f1[b] * c.spread.B1[at]
				m.A2[at] = f2[a] * f2[b] * c.spread.B2[at]
			}
		}
	}
	t.memberMoments(m.Members, id, view, sums)
	return m
}

func rootRatio(now, then float64) float64 {
	if !(then > 0) {
		return 0
	}
	return math.Sqrt(now / then)
}

// memberMoments writes the mean of phi phi' over the profiled members to dst.
func (t *Tallies) memberMoments(dst []float64, id CommunityID, view graphstore.View, sums *neighborhood.Sums) {
	profiled := float64(t.each[id].profiled)
	if profiled == 0 {
		return
	}
	side := t.sides[0]
	phi := make([]float64, side.z)
	t.ForMembers(id, view, func(v Vertex, multiplicity uint32) {
		s := stateOf(view, sums, v)
		if !s.labelled() && s.profile.own != nil {
			addOuter(dst, float64(multiplicity), s.profile.phi(phi, side.kind))
		}
	})
	for i := range dst {
		dst[i] /= profiled
	}
}
