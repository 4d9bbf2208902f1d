package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// R is computed from nothing once pushes have visited rebuildPasses times as many
// neighbours as that takes, or once the bound on rounding exceeds roundingShare of
// what the tolerance allows (and twice what a rebuild leaves of it).
const (
	rebuildPasses = 64
	roundingShare = 1e-2
)

func (f *Field) rebuildDue(view graphstore.View) bool {
	passes := uint64(rebuildPasses * (2*view.Edges() + view.Vertices()))
	if f.work.Traversals-f.work.RebuiltAt > passes+1<<20 {
		return true
	}
	allowed := roundingShare * f.config.Tolerance * f.alpha * f.sourceSum
	return f.rounding*unitRoundoff > allowed && f.rounding > 2*f.floor
}

// rebuild computes degrees, R and all sums from z, the source and the graph.
func (f *Field) rebuild(view graphstore.View) {
	f.residual, f.signed, f.rounding, f.sourceSum = 0, 0, 0, 0
	for i := range f.z {
		v := Vertex(i)
		d := view.Degree(v) + 1
		r, rounding := f.residualAt(view, v, d)
		f.r[v], f.d[v] = r, d
		f.residual += math.Abs(r)
		f.signed += r
		f.rounding += rounding
		f.sourceSum += f.source[v]
	}
	f.rounding += float64(len(f.z)) * f.residual
	f.floor = f.rounding
	f.stale = false
	f.work.Rebuilds++
	f.work.RebuiltAt = f.work.Traversals
}

// residualAt returns R(v) by definition, and a bound on its rounding error in units of 2^-53.
func (f *Field) residualAt(view graphstore.View, v Vertex, d float64) (r, rounding float64) {
	neighbors := view.Neighbors(v)
	var sum, size float64
	switch weights := view.Weights(v); {
	case f.blank:
	case weights == nil:
		sum, size = gatherSizes(f.z, neighbors)
	default:
		sum, size = gatherSizesWeighted(f.z, neighbors, weights)
	}
	z, m := f.z[v], f.source[v]
	r = f.alpha*m - (d-f.keep)*z + f.keep*sum
	terms := float64(len(neighbors)/4 + 8)
	return r, terms * (f.alpha*m + d*math.Abs(z) + f.keep*size)
}
