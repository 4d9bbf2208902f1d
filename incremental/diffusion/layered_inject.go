package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// begin forgets what was touched and grows to the view's vertices.
func (l *Layered) begin(view graphstore.View, delta *graphstore.Delta) {
	l.follow(view, delta, len(l.last))
	l.grow(view.Vertices())
}

// grow makes room for n vertices. A new one is isolated: y = R = 0, d = 1.
func (l *Layered) grow(n int) {
	seen := len(l.last)
	if n <= seen {
		return
	}
	l.last = lengthen(l.last, n)
	l.source = lengthen(l.source, n)
	for k := range l.layers {
		of := &l.layers[k]
		of.y = lengthen(of.y, n)
		of.cells = lengthen(of.cells, n)
		for v := seen; v < n; v++ {
			of.cells[v].d = 1
		}
		of.queued.grow(n)
	}
}

// addSources changes the source and, unless a walk will, the residuals.
func (l *Layered) addSources(changes []SourceChange) {
	for _, c := range changes {
		before, after := l.changeSource(c)
		if l.stale {
			continue
		}
		l.add(0, c.V, c.Change, before+after)
		if l.lazy {
			continue
		}
		for k := 1; k <= len(l.layers); k++ {
			l.add(k, c.V, l.alpha*c.Change, l.alpha*(before+after))
		}
	}
	if l.sources == 0 {
		l.sourceSum = 0
	}
}

// inject adds to R what the edges of a batch change in it while y stands still.
func (l *Layered) inject(view graphstore.View, delta *graphstore.Delta) {
	for i := range delta.Edges {
		e := &delta.Edges[i]
		l.injectEnd(e.U, e.V, e.After-e.Before)
		l.injectEnd(e.V, e.U, e.After-e.Before)
	}
	l.work.injected += uint64(len(delta.Edges))
	for i := range delta.Degrees {
		change := &delta.Degrees[i]
		v, d := change.V, l.degree(change.After)
		for k := range l.layers {
			l.layers[k].cells[v].d = d
		}
		if l.lazy && (change.Before == 0) != (change.After == 0) {
			l.redo(view, v) // the share that stays is no affine function there
		}
		l.touch(v)
	}
}

// injectEnd adds w to the weight of the edge from u to v, as u sees it.
func (l *Layered) injectEnd(u, v Vertex, w float64) {
	own, stays := 0.0, 0.0 // y_(k-1)(u) and what more of it stays for each unit of degree
	if l.lazy {
		stays = l.alpha
	}
	other := 0.0 // y_(k-1)(v)
	for k := range l.layers {
		y := l.layers[k].y
		in := stays*own + l.keep*other
		l.add(k, u, w*(in-y[u]), math.Abs(w)*(math.Abs(in)+math.Abs(y[u])))
		own, other = y[u], y[v]
	}
	in := stays*own + l.keep*other
	l.add(len(l.layers), u, w*in, math.Abs(w*in))
}

// add changes R_k(v), or x_S(v) where k is S, by x, which was computed from terms of
// the given size.
func (l *Layered) add(k int, v Vertex, x, size float64) {
	if k == len(l.layers) {
		l.last[v] += x
		l.rounding += 4*size + 2*math.Abs(l.last[v])
		l.touch(v)
		return
	}
	c := &l.layers[k].cells[v]
	r := c.r + x
	l.residual += l.gains[k] * (math.Abs(r) - math.Abs(c.r))
	l.rounding += 4*size + 2*math.Abs(r) + 4*math.Abs(l.residual)
	c.r = r
}

// redo computes the residuals of v, and x_S(v), from nothing.
func (l *Layered) redo(view graphstore.View, v Vertex) {
	d := l.layers[0].cells[v].d
	for k := range l.layers {
		in, rounding := l.arrives(view, v, k, d)
		c := &l.layers[k].cells[v]
		r := in - d*l.layers[k].y[v]
		l.residual += l.gains[k] * (math.Abs(r) - math.Abs(c.r))
		l.rounding += rounding + 4*(math.Abs(r)+d*math.Abs(l.layers[k].y[v])+math.Abs(l.residual))
		c.r = r
	}
	in, rounding := l.arrives(view, v, len(l.layers), d)
	l.last[v] = in
	l.rounding += rounding
}

// arrives returns what the right-hand side of step k gives v, and a bound on its
// rounding error in units of 2^-53.
func (l *Layered) arrives(view graphstore.View, v Vertex, k int, d float64) (x, rounding float64) {
	m := l.source[v]
	if k == 0 {
		return m, 0
	}
	y := l.layers[k-1].y
	neighbors := view.Neighbors(v)
	var sum, size float64
	if weights := view.Weights(v); weights == nil {
		sum, size = gatherSizes(y, neighbors)
	} else {
		sum, size = gatherSizesWeighted(y, neighbors, weights)
	}
	stays := l.stays(d, len(neighbors) == 0)
	x = l.restarts()*m + stays*y[v] + l.keep*sum
	terms := float64(len(neighbors)/4 + 8)
	return x, terms * (l.alpha*m + stays*math.Abs(y[v]) + l.keep*size)
}
