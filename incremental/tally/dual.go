package tally

import (
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// The functions of a dual are f_zi(v) = phi_z(v) at calibration labels of class i and
// zero elsewhere, over two sides: the finest soft cells that are kept, and the finest
// hard ones, if any. All coarser cells and the sums by class are marginals of a side.
// Class i of a side of Z cells has the functions at + i Z to at + (i+1) Z.

// side is one of the two.
type side struct {
	kind family
	z    int // cells
	at   int // first function
	cell int // first of its cells in what cells returns
}

// sidesOf returns the soft side and, if hard cells are kept, the hard one.
func sidesOf(classes int, keep Families) (sides []side) {
	cells, functions := 0, 0
	for kind := range family(families) {
		if !keep.has(kind) {
			continue
		}
		z := kind.cells(classes)
		s := side{kind: kind, z: z, cell: cells}
		cells += z
		if last := len(sides) - 1; last >= 0 && sides[last].kind == s.coarse() {
			s.at = sides[last].at // the finer one takes its place
			sides[last] = s
		} else {
			s.at = functions
			sides = append(sides, s)
		}
		functions = s.at + classes*z
	}
	return sides
}

// coarse returns the cells of the own prediction alone.
func (s side) coarse() family {
	switch s.kind {
	case softPair:
		return soft
	case hardPair:
		return hard
	}
	return s.kind
}

// Functions returns L, how many functions a dual of these tallies has.
func (t *Tallies) Functions() int { return functionsOf(t.classes, t.sides) }

// Functions returns how many functions a dual of such tallies has.
func (f Families) Functions(classes int) int { return functionsOf(classes, sidesOf(classes, f)) }

func functionsOf(classes int, sides []side) int {
	last := sides[len(sides)-1]
	return last.at + classes*last.z
}

// AppendChanges appends what the Updates since the last call changed in the functions;
// held reads them as they are, nil where they are zero. Only the state at the end of a
// step counts: between the Updates of one step profiles can be no distributions.
func (t *Tallies) AppendChanges(dst []diffusion.ValueChange, view graphstore.View, sums *neighborhood.Sums,
	held func(Vertex) []float64,
) []diffusion.ValueChange {
	slices.Sort(t.restless)
	for _, v := range slices.Compact(t.restless) {
		dst = t.appendRow(dst, view, sums, v, held(v))
	}
	t.restless = t.restless[:0]
	return dst
}

// Restless returns how many rows the next AppendChanges looks at.
func (t *Tallies) Restless() int { return len(t.restless) }

// DropChanges forgets them, where there is no dual, and returns how many they were.
func (t *Tallies) DropChanges() int {
	n := len(t.restless)
	t.restless = t.restless[:0]
	return n
}

// AppendAll appends the functions of all calibration rows, for a dual that holds none.
func (t *Tallies) AppendAll(dst []diffusion.ValueChange, view graphstore.View, sums *neighborhood.Sums) []diffusion.ValueChange {
	t.restless = t.restless[:0]
	for _, v := range t.rows.order {
		dst = t.appendRow(dst, view, sums, v, nil)
	}
	return dst
}

// appendRow appends what takes the functions at v from held to what they are. The
// change is taken from what is held, so that rounding does not add up.
func (t *Tallies) appendRow(dst []diffusion.ValueChange, view graphstore.View, sums *neighborhood.Sums, v Vertex, held []float64) []diffusion.ValueChange {
	state, class := stateOf(view, sums, v), event.NoClass
	if state.calibrates() {
		class = state.label.Class
		t.row = t.cells(t.row, state.profile)
	}
	for _, s := range t.sides {
		for i := range t.classes {
			for z := range s.z {
				f, want, have := s.at+i*s.z+z, 0.0, 0.0
				if event.Class(i) == class {
					want = t.row[s.cell+z]
				}
				if held != nil {
					have = held[f]
				}
				if want != have {
					dst = append(dst, diffusion.ValueChange{V: v, Function: f, Change: want - have})
				}
			}
		}
	}
	return dst
}

// MarkMoved notes that the values of the dual changed at vertices: the communities
// that have them as a source may be estimated differently.
func (t *Tallies) MarkMoved(view graphstore.View, touched []Vertex) {
	for _, v := range touched {
		if view.Label(v).Class != event.NoClass {
			continue // no source
		}
		for _, m := range view.MemberOf(v) {
			t.each[m.Community].progress.Moved = true
		}
		for _, id := range t.everyone {
			t.each[id].progress.Moved = true
		}
	}
}

// DualStatistics is Statistics of a community whose first moments are read from a
// dual that is up to date with the last Update, and whose second moments are those of
// the last Refresh, brought to the level of the first; see secondMoments.
func (t *Tallies) DualStatistics(id CommunityID, view graphstore.View, sums *neighborhood.Sums, dual *diffusion.Dual, exact bool) *quant.Statistics {
	s := t.base(id)
	a1 := t.firstMoments(id, view, dual)
	a2 := t.secondMoments(t.each[id].spread, a1)
	cells := [families]**quant.Cells{&s.Soft, &s.SoftPair, &s.Hard, &s.HardPair}
	for _, side := range t.sides {
		*cells[side.kind] = t.sideCells(t.each[id], side, side.kind, a1, a2)
		if coarse := side.coarse(); coarse != side.kind && t.keep.has(coarse) {
			*cells[coarse] = t.sideCells(t.each[id], side, coarse, a1, a2)
		}
	}
	k, z := t.classes, t.sides[0].z
	s.ClassA1, s.ClassA2 = make([]float64, k), make([]float64, k)
	for i := range k {
		for at := i * z; at < (i+1)*z; at++ {
			s.ClassA1[i] += a1[at]
			s.ClassA2[i] += a2[at]
		}
	}
	s.OwnCovariance = covariance(t.each[id], s.Soft.P)
	if spread := t.each[id].spread; exact && spread != nil && t.outer != nil {
		s.Moments = t.moments(id, view, sums, a1, a2)
	}
	return s
}

// firstMoments returns A1 by function: the sum of m y over the sources. What an
// error of the dual leaves below zero, or where there is no label, is zero; and so is a
// class of which the community reaches no more than the errors of its cells can make,
// which do not all point one way.
func (t *Tallies) firstMoments(id CommunityID, view graphstore.View, dual *diffusion.Dual) []float64 {
	a1 := make([]float64, t.Functions())
	t.ForMembers(id, view, func(v Vertex, multiplicity uint32) {
		if view.Label(v).Class != event.NoClass {
			return
		}
		m := float64(multiplicity)
		for i, y := range dual.Values(v) {
			a1[i] += float64(m * y)
		}
	})
	bar := t.KernelSum(id) * dual.Certificate()
	for _, s := range t.sides {
		for i := range t.classes {
			part, all := a1[s.at+i*s.z:s.at+(i+1)*s.z], 0.0
			for z, n := range t.n[s.kind][i*s.z : (i+1)*s.z] {
				if part[z] = max(part[z], 0); n == (Sum{}) {
					part[z] = 0
				}
				all += part[z]
			}
			if all <= bar*math.Sqrt(float64(s.z)) {
				clear(part)
			}
		}
	}
	return a1
}

// sideCells reads one kind of cells from the finest of its side.
func (t *Tallies) sideCells(c *community, s side, kind family, a1, a2 []float64) *quant.Cells {
	cells := t.read(c, kind)
	k, z := t.classes, kind.cells(t.classes)
	clear(cells.A1)
	clear(cells.A2)
	for i := range k {
		for fine := range s.z {
			at := fine / (s.z / z) * k
			cells.A1[at+i] += a1[s.at+i*s.z+fine]
			cells.A2[at+i] += a2[s.at+i*s.z+fine]
		}
	}
	return cells
}
