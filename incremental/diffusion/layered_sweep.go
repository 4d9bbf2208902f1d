package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// sweep pushes layer by layer until no vertex is above the threshold, and reports
// whether that cost no more than a share of a walk. If not, the queues are empty.
func (l *Layered) sweep(view graphstore.View) bool {
	budget := max(sweepMin, int(sweepShare*float64(len(l.layers))*passCost(view)))
	for k := range l.layers {
		of := &l.layers[k]
		limit := l.limit(k)
		for _, v := range of.queue {
			of.queued.drop(v)
			if c := &of.cells[v]; budget >= 0 && math.Abs(c.r) > limit*c.d {
				budget -= l.push(view, k, v)
			}
		}
		of.queue = of.queue[:0]
	}
	return budget >= 0
}

// push moves R_k(v) into y_k(v) and over the neighbours in the next layer, and
// returns its cost.
func (l *Layered) push(view graphstore.View, k int, v Vertex) int {
	of := &l.layers[k]
	c := &of.cells[v]
	r := c.r
	step := r / c.d
	y := of.y[v] + step
	of.y[v], c.r = y, 0
	neighbors, weights := view.Neighbors(v), view.Weights(v)
	stays := l.stays(c.d, len(neighbors) == 0) * step
	var gained, size float64
	if k == len(l.layers)-1 {
		size = l.arrive(v, neighbors, weights, stays, l.keep*step)
	} else {
		gained, size = l.spread(k+1, v, neighbors, weights, stays, l.keep*step)
		gained *= l.gains[k+1]
	}
	l.residual += gained - l.gains[k]*math.Abs(r)
	// As in Field.push: sums of len(neighbors) terms, each new R rounded once, and a
	// rounding of y(v) moves R_k(v) by d(v), and the next layer by as much again.
	l.rounding += float64(len(neighbors)+8)*size +
		2*c.d*(math.Abs(y)+2*math.Abs(step)) + 8*math.Abs(r) + 4*math.Abs(l.residual)
	l.work.Pushes++
	l.work.Traversals += uint64(len(neighbors))
	return len(neighbors) + pushCost
}

// spread adds to the residuals of a layer what a push of v in the layer before sends
// there, and queues those it takes above the threshold. It returns by how much the
// sum of |R| grew, and the size of the terms.
func (l *Layered) spread(k int, v Vertex, neighbors []Vertex, weights []float64, stays, x float64) (gained, size float64) {
	of, limit, self := &l.layers[k], l.limit(k), [1]Vertex{v}
	after, before := of.add(self[:], stays, limit)
	var more, less float64
	if weights == nil {
		more, less = of.add(neighbors, x, limit)
	} else {
		more, less = of.addWeighted(neighbors, weights, x, limit)
	}
	after, before = after+more, before+less
	return after - before, after + before
}

// add adds x to the residuals of the vertices and returns the sums of |R| over them
// after and before.
func (of *layer) add(vertices []Vertex, x, limit float64) (after, before float64) {
	cells := of.cells
	for _, u := range vertices {
		c := &cells[u]
		r := c.r + x
		before += math.Abs(c.r)
		size := math.Abs(r)
		after += size
		c.r = r
		if size > limit*c.d && of.queued.add(u) {
			of.queue = append(of.queue, u)
		}
	}
	return after, before
}

// addWeighted is add where edges have weights.
func (of *layer) addWeighted(vertices []Vertex, weights []float64, x, limit float64) (after, before float64) {
	cells := of.cells
	weights = weights[:len(vertices)]
	for i, u := range vertices {
		c := &cells[u]
		r := c.r + x*weights[i]
		before += math.Abs(c.r)
		size := math.Abs(r)
		after += size
		c.r = r
		if size > limit*c.d && of.queued.add(u) {
			of.queue = append(of.queue, u)
		}
	}
	return after, before
}

// arrive adds to x_S what a push of v in the layer before sends there, and returns
// the size of the terms.
func (l *Layered) arrive(v Vertex, neighbors []Vertex, weights []float64, stays, x float64) (size float64) {
	last := l.last
	last[v] += stays
	size = math.Abs(last[v]) + math.Abs(stays)
	l.touch(v)
	for i, u := range neighbors {
		w := x
		if weights != nil {
			w *= weights[i]
		}
		last[u] += w
		size += math.Abs(last[u]) + math.Abs(w)
		l.touch(u)
	}
	return size
}

// walk computes every layer from nothing: S passes over the graph.
func (l *Layered) walk(view graphstore.View) {
	l.residual, l.rounding, l.sourceSum = 0, 0, 0
	for v := range l.last {
		l.touch(Vertex(v))
		d := l.degree(view.Degree(Vertex(v)))
		for k := range l.layers {
			l.layers[k].cells[v] = cell{d: d}
		}
		l.sourceSum += l.source[v]
	}
	for k := range len(l.layers) + 1 {
		for i := range l.last {
			v := Vertex(i)
			d := l.layers[0].cells[v].d
			x, rounding := l.arrives(view, v, k, d)
			l.rounding += rounding + 4*x
			if k < len(l.layers) {
				l.layers[k].y[v] = x / d
			} else {
				l.last[v] = x
			}
		}
	}
	l.unqueue()
	l.stale, l.scan = false, false
	l.floor = l.rounding
	l.work.Solves++
	l.work.Iterations += uint64(len(l.layers))
	l.work.rebuiltAt = l.work.Traversals
}

func (l *Layered) unqueue() {
	for k := range l.layers {
		of := &l.layers[k]
		for _, v := range of.queue {
			of.queued.drop(v)
		}
		of.queue = of.queue[:0]
	}
}

// rebuildDue reports whether R should be computed from nothing, as for a Field.
func (l *Layered) rebuildDue(view graphstore.View) bool {
	passes := uint64(rebuildPasses * len(l.layers) * (2*view.Edges() + view.Vertices()))
	if l.work.Traversals-l.work.rebuiltAt > passes+1<<20 {
		return true
	}
	allowed := roundingShare * l.config.Tolerance * l.sourceSum
	return l.rounding*unitRoundoff > allowed && l.rounding > 2*l.floor
}

// rebuild computes degrees, residuals, the last layer and all sums from y, the source
// and the graph.
func (l *Layered) rebuild(view graphstore.View) {
	l.residual, l.rounding, l.sourceSum = 0, 0, 0
	for i := range l.last {
		v := Vertex(i)
		d := l.degree(view.Degree(v))
		for k := range l.layers {
			l.layers[k].cells[v] = cell{d: d}
		}
		l.redo(view, v)
		l.touch(v)
		l.sourceSum += l.source[v]
	}
	l.floor = l.rounding
	l.scan = true
	l.work.Rebuilds++
	l.work.rebuiltAt = l.work.Traversals
}
