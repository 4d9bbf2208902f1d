package tally

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// A dual has one function for each class: f_i(v) is the weight of the label's age (one without a half-life)
// at calibration labels v of class i, and zero elsewhere. Methods that read kernel masses by cell have a
// field for each community instead, because there are as many as K³ cells of all classes.

// AppendChanges appends what the Updates since the last call changed in the functions;
// held reads them as they are, nil where they are zero.
func (t *Tallies) AppendChanges(dst []diffusion.ValueChange, view graphstore.View, held func(Vertex) []float64) []diffusion.ValueChange {
	slices.Sort(t.changedSinceDual)
	for _, v := range slices.Compact(t.changedSinceDual) {
		dst = t.appendRow(dst, view, v, held(v))
	}
	t.changedSinceDual = t.changedSinceDual[:0]
	return dst
}

// DropChanges forgets what AppendChanges would look at, where there is no dual.
func (t *Tallies) DropChanges() { t.changedSinceDual = t.changedSinceDual[:0] }

// AppendAll appends the functions of all calibration rows, for a dual that holds none.
func (t *Tallies) AppendAll(dst []diffusion.ValueChange, view graphstore.View) []diffusion.ValueChange {
	t.changedSinceDual = t.changedSinceDual[:0]
	for _, v := range t.rows {
		dst = t.appendRow(dst, view, v, nil)
	}
	return dst
}

// appendRow appends what takes the functions at v from held to what they are. The
// change is computed from the held value, so that rounding does not add up.
func (t *Tallies) appendRow(dst []diffusion.ValueChange, view graphstore.View, v Vertex, held []float64) []diffusion.ValueChange {
	label := view.Label(v)
	row := label.Class != event.NoClass && label.Role == event.Calibrate && view.Prediction(v) != nil
	for i := range t.classes {
		want, have := 0.0, 0.0
		if row && event.Class(i) == label.Class {
			want = t.gains(view.LabelTime(v)).one
		}
		if held != nil {
			have = held[i]
		}
		if want != have {
			dst = append(dst, diffusion.ValueChange{V: v, Function: i, Change: want - have})
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
// sketches, brought to the level of the first; see secondMoments.
func (t *Tallies) DualStatistics(id CommunityID, view graphstore.View, sums *neighborhood.Sums, dual *diffusion.Dual, exact bool) *quant.Statistics {
	first, sources := t.firstMoments(id, view, dual)
	s := t.statistics(id, [families]masses{whole: t.secondMoments(t.each[id].spread, first)})
	s.MassMin = errorShare * dual.Certificate() * sources * float64(t.classes) / max(t.LabelMass(), 1)
	if exact && !t.keep.Means { // nobody reads their masses
		s.Rows = func(visit func(quant.Row)) { t.visitRows(view, sums, func(Vertex) float64 { return 0 }, visit) }
	}
	return s
}

// firstMoments returns A1 by class: the sum of m y over the sources, and how many sources a function has
// reached: the others are exactly right, as no walk from there ends at a label. What an error of the
// dual leaves below zero, or where there is no label, is zero.
func (t *Tallies) firstMoments(id CommunityID, view graphstore.View, dual *diffusion.Dual) (a1 []float64, sources float64) {
	a1, sources = dual.Estimate(id, view)
	for i, n := range t.n[whole] {
		if a1[i] = max(a1[i], 0); n == (Sum{}) {
			a1[i] = 0
		}
	}
	return a1, sources
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
