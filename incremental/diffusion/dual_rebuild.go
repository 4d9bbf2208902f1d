package diffusion

import (
	"math"
	"runtime"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/parallel"
)

func (g *Dual) rebuildDue(view graphstore.View) bool {
	passes := uint64(rebuildPasses * (2*view.Edges() + view.Vertices()))
	if g.work.Traversals-g.work.RebuiltAt > passes+1<<20 {
		return true
	}
	return g.rounding*unitRoundoff > roundingShare*g.config.Tolerance && g.rounding > 2*g.floor
}

// restart computes R from nothing and iterates from where y stands.
func (g *Dual) restart(view graphstore.View, certificate float64) {
	g.whole = true
	g.touchAll(len(g.rows))
	g.rebuild(view)
	g.iterate(view, certificate)
}

// rebuild computes degrees, R and its bound from y, f and the graph.
func (g *Dual) rebuild(view graphstore.View) {
	g.sums.current = false
	for v := range g.rows {
		d := view.Degree(Vertex(v)) + 1
		g.cells[v*g.stride], g.most[v] = d, d
	}
	g.floor = g.roundingOfRebuild(view)
	g.rebuilt(g.residualsOf(view, 0, g.l))
	g.stale = false
}

// rebuilt notes that all of R was computed from nothing and found within bound.
func (g *Dual) rebuilt(bound float64) {
	g.bound, g.rounding, g.scan = bound, g.floor, true
	g.work.Rebuilds++
	g.work.RebuiltAt = g.work.Traversals
}

// roundingOfRebuild bounds the rounding error of R computed from nothing, as rounding does.
func (g *Dual) roundingOfRebuild(view graphstore.View) float64 {
	most := 0
	for v := range g.rows {
		most = max(most, len(view.Neighbors(Vertex(v))))
	}
	return float64(most+8) * g.scale()
}

// residualsOf computes R of the functions from first to end from nothing and bounds |R(v)| / (a d(v)).
func (g *Dual) residualsOf(view graphstore.View, first, end int) (bound float64) {
	for i := range g.rows {
		v := Vertex(i)
		d, r := g.residuals(v)
		g.residualsAt(view, v, first, r[first:end])
		for _, x := range r[first:end] {
			bound = max(bound, math.Abs(x)/(g.alpha*d))
		}
	}
	return bound
}

// residualsAt writes R(v) by definition to r, of its functions from first on.
func (g *Dual) residualsAt(view graphstore.View, v Vertex, first int, r []float64) {
	clear(r)
	g.addNeighbors(view, v, g.y[first:], r)
	d := view.Degree(v) + 1
	y := g.Values(v)[first:]
	for i := range r {
		r[i] = g.keep*r[i] - (d-g.keep)*y[i]
	}
	if f := g.Function(v); f != nil {
		f = f[first:]
		for i := range r {
			r[i] += g.alpha * d * f[i]
		}
	}
}

// addNeighbors adds to dst the weighted sum of the neighbours' rows of x, each L numbers behind the last.
func (g *Dual) addNeighbors(view graphstore.View, v Vertex, x, dst []float64) {
	weights := view.Weights(v)
	for i, u := range view.Neighbors(v) {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		for j, y := range x[int(u)*g.l:][:len(dst)] {
			dst[j] += w * y
		}
	}
}

// iterate improves all functions until the certificate is at most goal or rounding forbids.
func (g *Dual) iterate(view graphstore.View, goal float64) {
	g.whole = true
	g.touchAll(len(g.rows))
	if g.Certificate() <= goal {
		return
	}
	g.sums.current = false
	_, bound := g.iterateBlocks(view, goal)
	g.rebuilt(bound)
}

// iterateBlocks runs conjugate gradients on all functions, a block at a time and blocks side by side, whose
// numbers are their own. It returns the most passes of a block and the bound of |R(v)| / (a d(v)) that is left.
func (g *Dual) iterateBlocks(view graphstore.View, goal float64) (passes uint64, bound float64) {
	if len(g.rows) == 0 {
		return 0, 0
	}
	g.work.Solves++
	g.floor = g.roundingOfRebuild(view)
	blocks := (g.l + lanes - 1) / lanes
	each, left := make([]uint64, blocks), make([]float64, blocks)
	scratch := make([]*block, runtime.GOMAXPROCS(0))
	parallel.Each(blocks, func(i, worker int) {
		if scratch[worker] == nil {
			scratch[worker] = newBlock(len(g.rows), g.keep)
		}
		first := i * lanes
		each[i], left[i] = g.iterateBlock(view, scratch[worker], first, min(first+lanes, g.l), goal)
	})
	passes = slices.Max(each)
	g.work.Iterations += passes
	return passes, slices.Max(left)
}

// iterateBlock improves the functions of one block until their certificate is at most goal or a restart
// no longer halves the bound. The recurrence drifts from the residual by definition, which alone decides.
func (g *Dual) iterateBlock(view graphstore.View, b *block, first, end int, goal float64) (passes uint64, bound float64) {
	before := math.Inf(1)
	for range restartsMax {
		passes += g.conjugate(view, b, first, end, aimShort*goal)
		if bound = g.residualsOf(view, first, end); certificate(bound, g.floor) <= goal || bound > before/2 {
			break
		}
		before = bound
	}
	return passes, bound
}

// conjugate improves the functions of one block until all their residuals are within goal, and returns
// in how many passes.
func (g *Dual) conjugate(view graphstore.View, b *block, first, end int, goal float64) uint64 {
	for v := range g.rows {
		d, r := g.residuals(Vertex(v))
		b.diagonal[v] = d - g.keep
		b.r[v] = lane{}
		copy(b.r[v][:], r[first:end])
	}
	return b.run(view, g.y[first:], g.l, end-first, goal*g.alpha)
}
