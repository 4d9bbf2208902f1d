package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// How a sweep ends and where its bar stands. A vertex is pushed when |R(v)| is above
// a theta d(v). The least bar that is ever needed is the one at which even residuals
// that all stand at it keep the tolerance. They never do, they have both signs and all
// sizes, so the bar stands at lift times that, as high as the certificate allows.
const (
	sweepGoal  = 0.9  // of the tolerance: a sweep brings the certificate below it
	leastShare = 0.95 // of the tolerance: the certificate that the least bar guarantees
	liftStart  = 3    // of a new field; it soon finds its own
	liftMax    = 1 << 10
	liftCut    = 0.8 // the bar is cut by this until the certificate is low enough
	excessMax  = 8   // a bar begins at most this squared above where the last one ended
)

// Costs in units of one neighbour visited by a push, measured.
const (
	pushCost = 8 // a push, besides its neighbours
	passGain = 4 // a pass of iteration visits so many neighbours in that time

	vertexCost = 6 // a pass of iteration spends as much on a vertex as on so many neighbours
)

// A sweep may cost sweepShare of what a recompute would, and sweepMin at least.
const (
	sweepShare = 0.25
	sweepMin   = 1 << 10
)

// iterateShort divides the tolerance: iteration takes the certificate that far down, so
// that the next batches have room.
const iterateShort = 4

// reachTolerance leaves residuals where they are while the certificate allows it: some will meet
// others of the opposite sign. Once it exceeds the tolerance, a shift and a sweep take it to
// sweepGoal of that, with the highest bar that will do, because a push gains most where the
// residual is largest for its degree. The bar begins at that of the sweep before, and higher the
// more there is to lose: what one vertex holds must first be spread. So work comes in portions, one
// for as many events as fill up the rest of the tolerance. A sweep that outgrows its budget is work
// that iteration does better.
func (f *Field) reachTolerance(view graphstore.View) {
	if f.bound() <= f.allowed(1) {
		return
	}
	f.shiftIfDue(view)
	goal := f.allowed(sweepGoal)
	excess := min(f.bound()/goal, excessMax)
	least := leastShare * f.config.Tolerance * f.sourceSum / f.degreeSum
	budget := f.sweepBudget(view)
	for lift := f.lift * excess * excess; f.bound() > goal; lift *= liftCut {
		f.lift = max(1, min(lift, liftMax))
		limit := f.alpha * f.lift * least
		f.queueAbove(limit)
		if budget = f.sweep(view, limit, budget); budget < 0 {
			f.iterate(view, f.config.Tolerance/iterateShort)
			f.touchAll(len(f.z))
			return
		}
		f.shiftIfDue(view)
		if lift < 1 {
			return // all are at or below the least bar
		}
	}
}

// allowed returns the sum of |R| at which the certificate is that share of the tolerance.
func (f *Field) allowed(share float64) float64 {
	return share * f.config.Tolerance * f.alpha * f.sourceSum
}

// queueAbove queues every vertex whose residual per degree is above limit.
func (f *Field) queueAbove(limit float64) {
	for v := range f.cells {
		if c := &f.cells[v]; math.Abs(c.r) > limit*c.d {
			f.queued.add(Vertex(v))
			f.queue = append(f.queue, Vertex(v))
		}
	}
}

// sweepBudget bounds the cost of a sweep before iteration is tried: a share of
// the cost of a recompute at the pace of the last iteration on this graph.
func (f *Field) sweepBudget(view graphstore.View) int {
	passes := f.pace * math.Log10(4/f.config.Tolerance)
	return max(sweepMin, int(sweepShare*passes*passCost(view)))
}

// passCost returns the cost of a pass over the graph, in neighbours visited by a push.
func passCost(view graphstore.View) float64 {
	return float64(2*view.Edges()+vertexCost*view.Vertices()) / passGain
}

// sweep pushes first in, first out until no queued vertex is above the limit, and
// returns what is left of the budget. Below zero it got no further; the queue is empty.
func (f *Field) sweep(view graphstore.View, limit float64, budget int) int {
	f.blank = f.blank && len(f.queue) == 0
	for len(f.queue) > 0 {
		for i, v := range f.queue {
			f.queued.drop(v)
			if c := &f.cells[v]; math.Abs(c.r) <= limit*c.d {
				continue
			}
			if budget < 0 {
				f.queue = f.queue[:copy(f.queue, f.queue[i:])]
				f.unqueue()
				return budget
			}
			budget -= f.push(view, v, limit)
		}
		f.queue, f.next = f.next, f.queue[:0]
	}
	return max(budget, 0)
}

func (f *Field) unqueue() {
	for _, list := range [][]Vertex{f.queue, f.next} {
		for _, v := range list {
			f.queued.drop(v)
		}
	}
	f.queue, f.next = f.queue[:0], f.next[:0]
}

// push moves the residual of v into z(v) and over its neighbours, and returns its
// cost. Order matters to no invariant, only to the bits.
func (f *Field) push(view graphstore.View, v Vertex, limit float64) int {
	c := &f.cells[v]
	r := c.r
	step := r / (c.d - f.keep)
	z := f.z[v] + step
	f.z[v], c.r = z, 0
	f.touch(v)
	neighbors := view.Neighbors(v)
	var after, before float64
	if weights := view.Weights(v); weights == nil {
		after, before = f.spread(neighbors, f.keep*step, limit)
	} else {
		after, before = f.spreadWeighted(neighbors, weights, f.keep*step, limit)
	}
	f.residual += after - before - math.Abs(r)
	f.signed -= f.alpha * c.d * step
	// The sums have len(neighbors) terms; each new R and z is rounded once, and a
	// rounding of z(v) moves R by at most 2 d(v) times as much; step*w twice.
	f.rounding += float64(len(neighbors)+8)*(after+before) +
		2*c.d*(math.Abs(z)+2*math.Abs(step)) + 8*math.Abs(r) + 4*math.Abs(f.residual)
	f.work.Pushes++
	f.work.Traversals += uint64(len(neighbors))
	return len(neighbors) + pushCost
}

// spread adds x to the residual of every neighbour and queues those it takes
// above the threshold. It returns the sums of |R| over them after and before.
func (f *Field) spread(neighbors []Vertex, x, limit float64) (after, before float64) {
	cells := f.cells
	for _, u := range neighbors {
		c := &cells[u]
		r := c.r + x
		before += math.Abs(c.r)
		size := math.Abs(r)
		after += size
		c.r = r
		if size > limit*c.d {
			f.enqueue(u)
		}
	}
	return after, before
}

// spreadWeighted is spread where edges have weights.
func (f *Field) spreadWeighted(neighbors []Vertex, weights []float64, x, limit float64) (
	after, before float64,
) {
	cells := f.cells
	weights = weights[:len(neighbors)]
	for i, u := range neighbors {
		c := &cells[u]
		r := c.r + x*weights[i]
		before += math.Abs(c.r)
		size := math.Abs(r)
		after += size
		c.r = r
		if size > limit*c.d {
			f.enqueue(u)
		}
	}
	return after, before
}

func (f *Field) enqueue(v Vertex) {
	if f.queued.add(v) {
		f.next = append(f.next, v)
	}
}
