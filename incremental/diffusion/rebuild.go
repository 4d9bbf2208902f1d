package diffusion

import (
	"errors"
	"fmt"
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
	if f.work.Traversals-f.work.rebuiltAt > passes+1<<20 {
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
		f.cells[v] = cell{r: r, d: d}
		f.residual += math.Abs(r)
		f.signed += r
		f.rounding += rounding
		f.sourceSum += f.source[v]
	}
	f.rounding += float64(len(f.z)) * f.residual
	f.floor = f.rounding
	f.stale = false
	f.work.Rebuilds++
	f.work.rebuiltAt = f.work.Traversals
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

// Check recomputes everything that the field keeps from z, the source and view,
// and reports what differs: R by more than the rounding accounted for, degrees or sums.
func (f *Field) Check(view graphstore.View) error {
	if f.stale {
		return nil
	}
	if len(f.z) != view.Vertices() {
		return fmt.Errorf("diffusion: field of %d vertices, graph of %d", len(f.z), view.Vertices())
	}
	var errs []error
	var apart, allowed, residual, signed, sources float64
	for i := range f.z {
		v := Vertex(i)
		c := f.cells[v]
		if d := view.Degree(v) + 1; d != c.d {
			errs = append(errs, fmt.Errorf("degree of %d is %v, graph says %v", v, c.d, d))
		}
		r, rounding := f.residualAt(view, v, c.d)
		apart += math.Abs(r - c.r)
		allowed += rounding * unitRoundoff
		residual += math.Abs(c.r)
		signed += c.r
		sources += f.source[v]
	}
	allowed += f.rounding * unitRoundoff
	differ := func(what string, have, want, bound float64) {
		if !(math.Abs(have-want) <= bound) {
			errs = append(errs, fmt.Errorf("%s is %v, recomputed %v, allowed difference %v", what, have, want, bound))
		}
	}
	differ("distance of R from its definition", apart, 0, allowed)
	differ("sum of |R|", f.residual, residual, allowed)
	differ("sum of R", f.signed, signed, allowed)
	differ("sum of sources", f.sourceSum, sources, sources*1e-12)
	differ("sum of degrees", f.degreeSum, view.WeightSum()+float64(len(f.z)), 0)
	if len(errs) > 0 {
		return fmt.Errorf("diffusion: %w", errors.Join(errs...))
	}
	return nil
}
