package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// iterate improves z by relaxation, see block, until the certificate is at most goal, or until as
// many passes as gain a digit do not halve the residual, which rounding is the reason of. R must be
// right; it is again after.
//
// It is computed from nothing, which takes a pass too, where the last pass should have brought it
// below the goal.
func (f *Field) iterate(view graphstore.View, goal float64) {
	bar := goal * f.alpha * f.sourceSum
	if f.sources == 0 || f.bound() <= bar {
		return
	}
	f.work.Solves++
	before, digit, root := math.Inf(1), digitPasses(f.keep), math.Sqrt(overshoot(f.keep))
	for pass := 1; pass <= passesMax(f.keep); pass++ {
		size := f.relax(view)
		f.work.Iterations++
		stalled := pass == passesMax(f.keep)
		if pass%digit == 0 {
			stalled, before = stalled || size >= before/2, size
		}
		if stalled || root*size <= bar {
			f.rebuild(view)
			if stalled || f.bound() <= bar {
				return
			}
		}
	}
}

// relax takes a step at every vertex, in order, and returns the sum of the |R(v)| that it met. It
// does not change R.
func (f *Field) relax(view graphstore.View) (size float64) {
	omega := 1 + overshoot(f.keep)
	for i, d := range f.d {
		diagonal := d - f.keep
		r := f.alpha*f.source[i] + f.keep*neighborSum(view, f.z, Vertex(i)) - diagonal*f.z[i]
		f.z[i] += omega / diagonal * r
		size += math.Abs(r)
	}
	return size
}

// R is computed again from z once pushes have visited rebuildPasses times as many neighbours as the
// computation does, or once the bound on rounding exceeds roundingShare of the tolerance (and twice
// the bound after a rebuild).
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
	neighbors, weights := view.Neighbors(v), view.Weights(v)
	var sum, size float64
	for i, u := range neighbors {
		x := f.z[u]
		if weights != nil {
			x *= weights[i]
		}
		sum += x
		size += math.Abs(x)
	}
	z, m := f.z[v], f.source[v]
	r = f.alpha*m - (d-f.keep)*z + f.keep*sum
	terms := float64(len(neighbors) + 8)
	return r, terms * (f.alpha*m + d*math.Abs(z) + f.keep*size)
}
