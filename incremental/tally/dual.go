package tally

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant/stats"
)

// TouchSources notes that the values of the dual changed at these vertices: the communities that
// have them as a source are touched.
func (t *Tallies) TouchSources(view graphstore.View, changed []Vertex) {
	for _, v := range changed {
		if view.Label(v).Class == event.NoClass { // else no source
			for _, m := range view.MemberOf(v) {
				t.status[m.Community] = touched
			}
		}
	}
}

// DualStatistics is Statistics with first moments from a dual that is current with the last Update,
// and second moments from sketches, scaled to the first moments; see secondMoments.
func (t *Tallies) DualStatistics(
	id CommunityID, view graphstore.View, sums *neighborhood.Sums, dual *diffusion.Dual, exact bool,
) *stats.Statistics {
	first, sources := t.firstMoments(id, dual)
	s := t.statistics(id, [families]masses{whole: t.secondMoments(t.each[id].spread, first)})
	s.MassMin = errorShare * dual.Certificate() * sources * float64(t.classes) / max(
		t.LabelMass(),
		1,
	)
	if exact && !t.keep.Means { // nobody reads their masses
		s.Rows = func(visit func(stats.Row)) {
			t.visitRows(view, sums, func(Vertex) float64 { return 0 }, visit)
		}
	}
	return s
}

// firstMoments returns A1 by class: the sum of m y over the sources for the first K functions of
// the dual, and the number of sources that a function has reached. The other sources have exactly
// zero, because no walk from there ends at a label. A negative sum, and a sum of a class without
// labels, is an error of the dual and is set to zero.
func (t *Tallies) firstMoments(
	id CommunityID, dual *diffusion.Dual,
) (a1 []float64, sources float64) {
	a1, sources = dual.Estimate(id)
	a1 = a1[:t.classes]
	for i, n := range t.counts()[whole].A1 {
		if a1[i] = max(a1[i], 0); n == 0 {
			a1[i] = 0
		}
	}
	return a1, sources
}

// errorShare is the largest share of the bound that the error of a class reached in random
// histories: members have errors of both signs.
const errorShare = 0.5

// Reach returns the mean value of the dual over the sources that it has reached, 0 for none.
func (t *Tallies) Reach(id CommunityID, dual *diffusion.Dual) float64 {
	first, sources := t.firstMoments(id, dual)
	return total(first) / max(sources, 1)
}

// total adds up numbers.
func total(x []float64) (all float64) {
	for _, x := range x {
		all += x
	}
	return all
}
