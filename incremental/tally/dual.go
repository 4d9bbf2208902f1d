package tally

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// The functions of a dual are f_zi(v) = g phi_z(v) at calibration labels of class i, where g is the
// weight of the label's age (one without a half-life), and zero elsewhere, over two sides: the
// finest soft cells that are kept, and the finest hard ones, if any. All coarser cells are
// marginals of a side. Class i of a side of Z cells has the functions at + i Z to at + (i+1) Z.
// Behind both sides there are K more, one at all calibration labels of a class: a class is the sum
// of many cells, whose errors may all have one sign, but the error of this one value is within the
// tolerance. It says whether the class is reached at all, and the cells are scaled to it.
//
// Where nobody reads masses by cell, there are only these K functions: the only side is then the
// class itself, a single cell.

// side is one of them.
type side struct {
	kind family
	z    int // cells
	at   int // first function
}

// sidesOf returns the soft side and, if hard cells are kept, the hard one; or whole classes.
func sidesOf(classes int, keep Families) (sides []side) {
	functions := 0
	for kind := range family(families) {
		if !keep.has(kind) || keep.ClassMasses != (kind == whole) {
			continue
		}
		s := side{kind: kind, z: kind.cells(classes)}
		if last := len(sides) - 1; last >= 0 && sides[last].kind == s.coarse() {
			s.at = sides[last].at // the finer one takes its place
			sides[last] = s
		} else {
			s.at = functions
			sides = append(sides, s)
		}
		functions = s.at + classes*s.z
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

// cellFunctions returns the number of functions of cells. Those of whole classes are the last K:
// they follow, or they are the cells.
func (t *Tallies) cellFunctions() int {
	if t.keep.ClassMasses {
		return t.Functions()
	}
	return t.Functions() - t.classes
}

// Functions returns the number of functions of a dual of such tallies.
func (f Families) Functions(classes int) int { return functionsOf(classes, sidesOf(classes, f)) }

func functionsOf(classes int, sides []side) int {
	last := sides[len(sides)-1]
	if last.kind == whole {
		return classes
	}
	return last.at + classes*last.z + classes
}

// AppendChanges appends what the Updates since the last call changed in the functions;
// held reads them as they are, nil where they are zero. Only the state at the end of a
// step counts: between the Updates of one step profiles can be no distributions.
func (t *Tallies) AppendChanges(dst []diffusion.ValueChange, view graphstore.View, sums *neighborhood.Sums,
	held func(Vertex) []float64,
) []diffusion.ValueChange {
	slices.Sort(t.changedSinceDual)
	for _, v := range slices.Compact(t.changedSinceDual) {
		dst = t.appendRow(dst, view, sums, v, held(v))
	}
	t.changedSinceDual = t.changedSinceDual[:0]
	return dst
}

// DropChanges forgets what AppendChanges would look at, where there is no dual.
func (t *Tallies) DropChanges() { t.changedSinceDual = t.changedSinceDual[:0] }

// AppendAll appends the functions of all calibration rows, for a dual that holds none.
func (t *Tallies) AppendAll(dst []diffusion.ValueChange, view graphstore.View, sums *neighborhood.Sums) []diffusion.ValueChange {
	t.changedSinceDual = t.changedSinceDual[:0]
	for _, v := range t.rows {
		dst = t.appendRow(dst, view, sums, v, nil)
	}
	return dst
}

// appendRow appends what takes the functions at v from held to what they are. The
// change is computed from the held value, so that rounding does not add up.
func (t *Tallies) appendRow(dst []diffusion.ValueChange, view graphstore.View, sums *neighborhood.Sums, v Vertex, held []float64) []diffusion.ValueChange {
	clear(t.row)
	if state := stateOf(view, sums, v); state.calibrates() {
		class, g := int(state.label.Class), t.gains(state.time).one
		for _, s := range t.sides {
			for z, x := range state.profile.phi(t.phi, s.kind) {
				t.row[s.at+class*s.z+z] = float64(g * x)
			}
		}
		if !t.keep.ClassMasses { // else that was the side
			t.row[t.cellFunctions()+class] = g
		}
	}
	for f, want := range t.row {
		have := 0.0
		if held != nil {
			have = held[f]
		}
		if want != have {
			dst = append(dst, diffusion.ValueChange{V: v, Function: f, Change: want - have})
		}
	}
	return dst
}

// MarkMoved notes that the values of the dual, or of that of residuals, changed at vertices by about so much: the
// communities that have them as a source may be estimated differently.
func (t *Tallies) MarkMoved(view graphstore.View, touched []Vertex, by func(Vertex) float64, residuals bool) {
	for _, v := range touched {
		if view.Label(v).Class == event.NoClass { // else no source
			x := by(v)
			t.eachOf(view, v, func(c CommunityID, multiplicity float64) {
				rate := t.rooms[c].Mass
				if residuals {
					rate = t.rooms[c].Residual
				}
				t.take(c, x*multiplicity*rate)
			})
		}
	}
}

// DualStatistics is Statistics of a community whose first moments are read from a
// dual that is up to date with the last Update, and whose second moments are those of
// the last Refresh, brought to the level of the first; see secondMoments.
func (t *Tallies) DualStatistics(id CommunityID, view graphstore.View, dual *diffusion.Dual, exact bool) *quant.Statistics {
	first, sources := t.firstMoments(id, view, dual)
	spread := t.each[id].spread
	t.markStale(spread, first)
	massMin := 0.0
	if spread == nil || spread.Stale || total(spread.A1) == 0 { // else labels are known to be reached
		massMin = errorShare * dual.Certificate() * sources * float64(t.classes) / max(t.LabelMass(), 1)
	}
	m := t.secondMoments(spread, first)
	s := t.statistics(id, m)
	s.MassMin = massMin
	if exact && t.outer != nil && (spread != nil || t.keep.ClassMasses) {
		s.Moments = t.moments(id, m.a1, m.a2)
	}
	return s
}

// firstMoments returns A1 by cell: the sum of m y over the sources. What an error of the
// dual leaves below zero, or where there is no label, is zero, the cells of a class sum to its
// mass, and a class that the community hardly reaches fades out; auto fades all classes alike.
// Where nobody reads cells it counts the sources that a function has reached: the others are
// exactly right, as no walk from there ends at a label.
func (t *Tallies) firstMoments(id CommunityID, view graphstore.View, dual *diffusion.Dual) (a1 []float64, sources float64) {
	if t.keep.ClassMasses {
		a1, sources = dual.Estimate(id, view)
	} else {
		a1 = make([]float64, t.Functions())
		view.ForMembers(id, func(v Vertex, multiplicity uint32) {
			if view.Label(v).Class != event.NoClass {
				return
			}
			for i, y := range dual.Values(v) {
				a1[i] += float64(float64(multiplicity) * y)
			}
		})
	}
	error := t.KernelSum(id) * dual.Certificate()
	for i, mass := range a1[t.Functions()-t.classes:] {
		if !t.keep.ClassMasses {
			mass *= fade(mass, error)
		}
		for _, s := range t.sides {
			scaleClass(a1[s.at+i*s.z:s.at+(i+1)*s.z], t.n[s.kind][i*s.z:(i+1)*s.z], mass)
		}
	}
	return a1[:t.cellFunctions()], sources
}

// errorShare is the largest share of the bound that the error of a class reached in random
// histories: members have errors of both signs.
const errorShare = 0.5

// Reach returns the mean value of the dual over the sources that it has reached, 0 for none.
func (t *Tallies) Reach(id CommunityID, view graphstore.View, dual *diffusion.Dual) float64 {
	first, sources := t.firstMoments(id, view, dual)
	return total(first) / max(sources, 1)
}

// total adds up numbers.
func total(x []float64) (all float64) {
	for _, x := range x {
		all += x
	}
	return all
}

// fade returns by how much a class counts that seems to be reached with a mass of which
// error may be the error: what an error alone can make counts for nothing, and twice as much
// counts in full. In between the confusion of the class passes smoothly from that of all
// labels to that of the labels near the community.
func fade(mass, error float64) float64 {
	if mass >= 2*error {
		return 1
	}
	return max(0, mass/error-1)
}

// scaleClass scales the cells of one class to its mass: those without a label to nothing,
// and where the errors of the cells have left none of them, in proportion to the labels.
func scaleClass(cells []float64, labels []Sum, mass float64) {
	all := 0.0
	for z, n := range labels {
		if cells[z] = max(cells[z], 0); n == (Sum{}) {
			cells[z] = 0
		}
		all += cells[z]
	}
	if !(all > 0) && mass > 0 {
		for z, n := range labels {
			cells[z] = n.Float()
			all += cells[z]
		}
	}
	for z := range cells {
		if all > 0 {
			cells[z] *= mass / all
		}
	}
}

// byClass sums the cells of the first side by class.
func (t *Tallies) byClass(cells []float64) []float64 {
	z := t.sides[0].z
	if z == 1 {
		return cells[:t.classes:t.classes]
	}
	sums := make([]float64, t.classes)
	for i := range sums {
		sums[i] = total(cells[i*z : (i+1)*z])
	}
	return sums
}

// coarsen sets the moments of one kind of cells from the finest of its side.
func (t *Tallies) coarsen(cells *quant.Cells, s side, m kernelMoments) {
	k, z := t.classes, cells.Z
	coarsen := func(dst, fine []float64) {
		clear(dst)
		for i := range k {
			for at := range s.z {
				dst[at/(s.z/z)*k+i] += fine[s.at+i*s.z+at]
			}
		}
	}
	coarsen(cells.A1, m.a1)
	coarsen(cells.A2, m.a2)
	if t.decay != nil {
		coarsen(cells.G2A, m.g2a)
	}
}
