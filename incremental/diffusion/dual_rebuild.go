package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

func (g *Dual) rebuildDue(view graphstore.View) bool {
	passes := uint64(rebuildPasses * (2*view.Edges() + view.Vertices()))
	if g.work.Traversals-g.work.rebuiltAt > passes+1<<20 {
		return true
	}
	return g.rounding*unitRoundoff > roundingShare*g.config.Tolerance && g.rounding > 2*g.floor
}

// restart computes R from nothing and iterates from where y stands.
func (g *Dual) restart(view graphstore.View, certificate float64) {
	g.touchAll(len(g.rows))
	g.rebuild(view)
	g.iterate(view, certificate)
}

// rebuild computes degrees, R and its bound from y, f and the graph.
func (g *Dual) rebuild(view graphstore.View) {
	g.bound, g.rounding = 0, 0
	for i := range g.rows {
		v := Vertex(i)
		_, r := g.residuals(v)
		d := view.Degree(v) + 1
		g.cells[i*g.stride], g.most[i] = d, d
		g.residualsAt(view, v, r)
		for _, x := range r {
			g.bound = max(g.bound, math.Abs(x)/(g.alpha*d))
		}
		g.rounding = max(g.rounding, float64(len(view.Neighbors(v))+8)*g.scale())
	}
	g.floor = g.rounding
	g.stale, g.scan = false, true
	g.work.Rebuilds++
	g.work.rebuiltAt = g.work.Traversals
}

// residualsAt writes R(v) by definition to r.
func (g *Dual) residualsAt(view graphstore.View, v Vertex, r []float64) {
	clear(r)
	g.addNeighbors(view, v, g.y, r)
	d := view.Degree(v) + 1
	for i, y := range g.Values(v) {
		r[i] = g.keep*r[i] - (d-g.keep)*y
	}
	for i, f := range g.Function(v) {
		r[i] += g.alpha * d * f
	}
}

// addNeighbors adds to dst the weighted sum of the neighbours' rows of x, which are as long as dst.
func (g *Dual) addNeighbors(view graphstore.View, v Vertex, x, dst []float64) {
	l := len(dst)
	weights := view.Weights(v)
	for i, u := range view.Neighbors(v) {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		for j, y := range x[int(u)*l:][:l] {
			dst[j] += w * y
		}
	}
}

// iterate runs conjugate gradients on all functions, a block at a time, until the
// certificate is at most goal or a restart no longer halves the bound.
func (g *Dual) iterate(view graphstore.View, goal float64) {
	g.touchAll(len(g.rows))
	if g.Certificate() <= goal {
		return
	}
	g.work.Solves++
	b := newBlock(len(g.rows), g.keep)
	for range restartsMax {
		before, passes := g.bound, uint64(0)
		for first := 0; first < g.l; first += lanes {
			passes = max(passes, g.conjugate(view, b, first, aimShort*goal))
		}
		g.work.Iterations += passes
		g.rebuild(view)
		if gained := math.Log10(before / g.bound); gained > 0.1 {
			g.pace = max(1, min(paceMax, float64(passes)/gained))
		}
		if g.Certificate() <= goal || g.bound > before/2 {
			return
		}
	}
}

// conjugate improves the functions of one block, from the first on, until all their
// residuals are within goal, and returns in how many passes.
func (g *Dual) conjugate(view graphstore.View, b *block, first int, goal float64) uint64 {
	width := min(lanes, g.l-first)
	for v := range g.rows {
		d, r := g.residuals(Vertex(v))
		b.diagonal[v] = d - g.keep
		b.r[v] = lane{}
		copy(b.r[v][:], r[first:first+width])
	}
	unbounded := math.Inf(1)
	sums := lane{unbounded, unbounded, unbounded, unbounded}
	return b.run(view, g.y[first:], g.l, width, sums, goal*g.alpha)
}
