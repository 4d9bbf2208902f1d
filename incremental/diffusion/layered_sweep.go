package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// settle is Field.settle, with walk in the place of iteration.
func (l *Layered) settle(view graphstore.View) {
	if l.Certificate() <= l.config.Tolerance {
		return
	}
	goal := settleShare * l.config.Tolerance
	excess := min(l.Certificate()/goal, excessMax)
	least := leastShare * l.config.Tolerance * l.sourceSum / (float64(len(l.layers)) * l.degreeSum)
	budget := max(sweepMin, int(sweepShare*float64(len(l.layers))*PassCost(view)))
	for lift := l.lift * excess * excess; l.Certificate() > goal; lift *= liftCut {
		l.lift = max(1, min(lift, liftMax))
		if budget = l.sweep(view, l.lift*least, budget); budget < 0 {
			l.walk(view)
			return
		}
		if lift < 1 {
			return
		}
	}
}

// sweep pushes, layer by layer, every vertex with gains[k] |R_k(v)| / d(v) above the
// bar, and returns what is left of the budget. Below zero it got no further.
func (l *Layered) sweep(view graphstore.View, bar float64, budget int) int {
	for k := range l.layers {
		l.queueAbove(k, bar/l.gains[k])
	}
	for k := range l.layers {
		of := &l.layers[k]
		limit := bar / l.gains[k]
		next := 0.0 // limit of the next layer
		if k+1 < len(l.layers) {
			next = bar / l.gains[k+1]
		}
		for _, v := range of.queue {
			of.queued.drop(v)
			if c := &of.cells[v]; budget >= 0 && math.Abs(c.r) > limit*c.d {
				budget -= l.push(view, k, v, next)
			}
		}
		of.queue = of.queue[:0]
	}
	return budget
}

// queueAbove queues every vertex whose residual at layer k, per degree, is above limit.
func (l *Layered) queueAbove(k int, limit float64) {
	of := &l.layers[k]
	for v := range of.cells {
		if c := &of.cells[v]; math.Abs(c.r) > limit*c.d {
			of.queued.add(Vertex(v))
			of.queue = append(of.queue, Vertex(v))
		}
	}
}

// push moves R_k(v) into y_k(v) and over the neighbours in the next layer, whose limit
// is next, and returns its cost.
func (l *Layered) push(view graphstore.View, k int, v Vertex, next float64) int {
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
		to := &l.layers[k+1]
		after, before := to.add([]Vertex{v}, stays, next)
		more, less := to.spread(neighbors, weights, l.keep*step, next)
		after, before = after+more, before+less
		gained, size = l.gains[k+1]*(after-before), after+before
	}
	l.residual += gained - l.gains[k]*math.Abs(r)
	// As in Field.push: sums of len(neighbors) terms, each new R rounded once, and a
	// rounding of y(v) moves R_k(v) by d(v), and the next layer by as much again.
	l.rounding += float64(len(neighbors)+8)*size +
		2*c.d*(math.Abs(y)+2*math.Abs(step)) + 8*math.Abs(r) + 4*math.Abs(l.residual)
	l.work.Pushes++
	l.work.Traversals += uint64(len(neighbors))
	return len(neighbors) + PushCost
}

// spread adds x, times the weights if there are any, to the residuals of the
// neighbours, queues those it takes above the limit, and returns the sums of |R| over
// them after and before.
func (of *layer) spread(neighbors []Vertex, weights []float64, x, limit float64) (after, before float64) {
	if weights == nil {
		return of.add(neighbors, x, limit)
	}
	return of.addWeighted(neighbors, weights, x, limit)
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
	l.stale = false
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
	l.work.Rebuilds++
	l.work.rebuiltAt = l.work.Traversals
}
