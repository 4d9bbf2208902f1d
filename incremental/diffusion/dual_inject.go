package diffusion

import (
	"fmt"
	"math"

	"gqlstream/graphstore"
)

// begin clears the list of touched vertices and extends the vectors to the view's vertices.
func (g *Dual) begin(view graphstore.View, delta *graphstore.Delta) {
	g.resetTouched(view, delta, len(g.rows))
	g.grow(view.Vertices())
}

// grow extends the vectors to n vertices. A new one is isolated: f = y = R = 0, d = 1. That is a
// solution already, so a vertex costs nothing until its first edge or label.
func (g *Dual) grow(n int) {
	seen := len(g.rows)
	if n <= seen {
		return
	}
	g.rows = lengthen(g.rows, n)
	g.y = lengthen(g.y, n*g.l)
	g.cells = lengthen(g.cells, n*g.stride)
	g.most = lengthen(g.most, n)
	for v := seen; v < n; v++ {
		g.cells[v*g.stride], g.most[v] = 1, 1
	}
	g.queued.grow(n)
}

// residuals returns d(v) and the residuals of v.
func (g *Dual) residuals(v Vertex) (d float64, r []float64) {
	c := g.cells[int(v)*g.stride : (int(v)+1)*g.stride : (int(v)+1)*g.stride]
	return c[0], c[1:]
}

// AppendChange appends the change of the functions at a vertex from the held to the wanted values;
// nil stands for zero. The change is computed from the held values, so that rounding does not
// accumulate.
func AppendChange(dst []ValueChange, v Vertex, held, wanted []float64) []ValueChange {
	for i := range max(len(held), len(wanted)) {
		change := 0.0
		if wanted != nil {
			change = wanted[i]
		}
		if held != nil {
			change -= held[i]
		}
		if change != 0 {
			dst = append(dst, ValueChange{V: v, Function: i, Change: change})
		}
	}
	return dst
}

// addValues changes f and, unless a rebuild follows, the residual: by a d(v) times the change, with
// the degree before the batch, because inject adds the effect of edges.
func (g *Dual) addValues(changes []ValueChange) {
	for _, c := range changes {
		if c.Function < 0 || c.Function >= g.l {
			panic(fmt.Sprintf("diffusion: function %d of %d", c.Function, g.l))
		}
		if g.rows[c.V] == 0 {
			g.f = lengthen(g.f, len(g.f)+g.l)
			g.valued = append(g.valued, c.V)
			g.rows[c.V] = uint32(len(g.valued))
		}
		f := g.Function(c.V)
		f[c.Function] += c.Change
		size := math.Abs(f[c.Function])
		if !(size <= math.MaxFloat64) {
			panic(fmt.Sprintf("diffusion: function %d of vertex %d would be "+
				"%v", c.Function, c.V, f[c.Function]))
		}
		g.peak = max(g.peak, size)
		if g.stale {
			continue
		}
		d, r := g.residuals(c.V)
		r[c.Function] += g.alpha * d * c.Change
		g.rounding += 4 * g.scale()
		g.mark(c.V)
	}
}

// shrinkMax bounds the factor by which a degree falls before R is computed again from y. The
// rounding error of R(v) is bounded in units of d(v), so an error that was small relative to a
// large degree may be large relative to a small one. The computation is cheap, because most edges
// of the vertex are gone.
const shrinkMax = 4

// inject adds the effect of a batch's edges to R, for unchanged y.
func (g *Dual) inject(view graphstore.View, delta *graphstore.Delta) {
	for i := range delta.Edges {
		e := &delta.Edges[i]
		g.injectEnd(e.U, e.V, e.After-e.Before)
		g.injectEnd(e.V, e.U, e.After-e.Before)
	}
	g.rounding += 8 * g.scale() * float64(len(delta.Edges))
	for _, v := range delta.Endpoints {
		_, r := g.residuals(v)
		d := view.Degree(v) + 1
		g.cells[int(v)*g.stride] = d
		if g.most[v] = max(g.most[v], d); g.most[v] > shrinkMax*d {
			g.residualsAt(view, v, 0, r)
			g.most[v] = d
			g.rounding += float64(len(view.Neighbors(v))+8) * g.scale()
		}
		g.mark(v)
	}
}

func (g *Dual) injectEnd(u, v Vertex, w float64) {
	_, r := g.residuals(u)
	yu, yv := g.Values(u), g.Values(v)
	for i := range r {
		r[i] += w * (g.keep*yv[i] - yu[i])
	}
	for i, f := range g.Function(u) {
		r[i] += w * g.alpha * f
	}
}

// mark queues v if a residual of it is above the threshold.
func (g *Dual) mark(v Vertex) {
	d, r := g.residuals(v)
	limit := g.alpha * g.config.Tolerance * d
	for _, x := range r {
		if math.Abs(x) > limit {
			if g.queued.add(v) {
				g.queue = append(g.queue, v)
			}
			return
		}
	}
}
