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

// restart computes everything again, with the present y as the start.
func (g *Dual) restart(view graphstore.View, certificate float64) {
	g.countDegrees(view)
	g.iterate(view, certificate, g.blocks())
	g.stale = false
}

// rebuild computes degrees, R and its bound from y, f and the graph.
func (g *Dual) rebuild(view graphstore.View) {
	g.countDegrees(view)
	g.floor = g.roundingOfRebuild(view)
	g.rebuilt(g.residualsOf(view, 0, g.l))
	g.stale = false
}

func (g *Dual) countDegrees(view graphstore.View) {
	g.sums.current = false
	for v := range g.rows {
		d := view.Degree(Vertex(v)) + 1
		g.cells[v*g.stride], g.most[v] = d, d
	}
}

// rebuilt notes that all of R was computed again and is within the bound.
func (g *Dual) rebuilt(bound float64) {
	g.bound, g.rounding, g.scan = bound, g.floor, true
	g.work.Rebuilds++
	g.work.RebuiltAt = g.work.Traversals
}

// roundingOfRebuild bounds the rounding error of R computed from y, as rounding does.
func (g *Dual) roundingOfRebuild(view graphstore.View) float64 {
	most := 0
	for v := range g.rows {
		most = max(most, len(view.Neighbors(Vertex(v))))
	}
	return float64(most+8) * g.scale()
}

// residualsOf computes R of the functions from first to end from y and bounds |R(v)| / (a d(v)).
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

// addNeighbors adds to dst the weighted sum of the neighbours' rows of x, each L numbers behind the
// last.
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

// iterate improves the functions of these blocks by relaxation until their certificate is at most
// goal or rounding forbids, blocks in parallel, each with its own values. R of these functions is
// computed again from y afterwards.
func (g *Dual) iterate(view graphstore.View, goal float64, blocks []int) {
	g.sums.current = false
	g.touchAll(len(g.rows))
	g.work.Solves++
	g.floor = g.roundingOfRebuild(view)
	passes, left := make([]uint64, len(blocks)), make([]float64, len(blocks))
	scratch := make([][]lane, runtime.GOMAXPROCS(0))
	parallel.Each(len(blocks), func(i, worker int) {
		if scratch[worker] == nil {
			scratch[worker] = make([]lane, len(g.rows))
		}
		first := blocks[i] * lanes
		passes[i], left[i] = g.iterateBlock(
			view, scratch[worker], first, min(first+lanes, g.l), goal,
		)
	})
	g.work.Iterations += slices.Max(passes)
	if len(blocks)*lanes >= g.l {
		g.rebuilt(slices.Max(left))
		return
	}
	g.rounding, g.scan = max(g.rounding, g.floor), true
}

// iterateBlock improves the functions of one block until their certificate is at most goal, or
// until as many passes as gain a digit do not halve the residual, which rounding is the reason of.
// It returns how many passes that took, and the bound of |R(v)| / (a d(v)). R by definition, which
// takes a pass too, is computed where the last pass should have brought it below the goal.
func (g *Dual) iterateBlock(
	view graphstore.View, y []lane, first, end int, goal float64,
) (passes uint64, bound float64) {
	b := g.block(y, first, end)
	digit, root, before := uint64(digitPasses(g.keep)), math.Sqrt(b.omega-1), math.Inf(1)
	for int(passes) < passesMax(g.keep) {
		most := b.relax(view, 0, len(y))
		passes++
		stalled := false
		if passes%digit == 0 {
			stalled, before = most >= before/2, most
		}
		if stalled || root*most <= goal {
			g.takeValues(b, first, end)
			if bound = g.residualsOf(view, first, end); stalled ||
				certificate(bound, g.floor) <= goal {
				return passes, bound
			}
		}
	}
	g.takeValues(b, first, end)
	return passes, g.residualsOf(view, first, end)
}

// block returns a block of the functions from first to end, with their values in y.
func (g *Dual) block(y []lane, first, end int) block {
	b := newBlock(g.keep)
	b.y = y
	for v := range y {
		y[v] = lane{}
		copy(y[v][:], g.Values(Vertex(v))[first:end])
		if f := g.Function(Vertex(v)); f != nil {
			b.at, b.f = append(b.at, Vertex(v)), append(b.f, lane{})
			copy(b.f[len(b.f)-1][:], f[first:end])
		}
	}
	return b
}

// takeValues makes the values of a block those of the functions from first to end.
func (g *Dual) takeValues(b block, first, end int) {
	for v := range b.y {
		copy(g.Values(Vertex(v))[first:end], b.y[v][:])
	}
}
