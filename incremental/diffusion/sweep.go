package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// The threshold follows M and the sum of degrees in steps: theta stays between
// thetaLow and 1 times its target and starts at thetaStart, so that a growing
// graph costs a scan for every few per cent of growth and not for every batch.
const (
	thetaLow   = 0.9
	thetaStart = 0.95
)

// Costs in units of one neighbour visited by a push, measured.
const (
	pushCost   = 8 // a push, besides its neighbours
	passGain   = 4 // a pass of iteration visits so many neighbours in that time
	vertexCost = 6 // a pass of iteration spends as much on a vertex as on so many neighbours
)

// A sweep may cost sweepShare of what a recompute would, and sweepMin at least.
const (
	sweepShare = 0.25
	sweepMin   = 1 << 10
)

// rebase brings theta to its target and queues every vertex above it when there
// may be others than those already queued.
func (f *Field) rebase() {
	if f.sources == 0 {
		f.theta, f.scan = 0, false
		f.unqueue()
		return
	}
	target := f.config.Tolerance * f.sourceSum / f.degreeSum
	if f.theta > target || f.theta < thetaLow*target {
		f.scan = f.scan || f.theta > target
		f.theta = thetaStart * target
	}
	if f.scan {
		f.scan = false
		for v := range f.cells {
			f.mark(Vertex(v))
		}
	}
}

// settleShort is how far below the tolerance iteration takes the certificate, so
// that few vertices are left above the threshold and the next batches have room.
const settleShort = 4

// settle sweeps until no vertex is above the threshold. A sweep that outgrows its
// budget is work that iteration does better: iterate from where it stands and
// sweep what is left. The budget grows each time and pushes are finite, so the
// loop ends; in practice it takes one or two rounds.
func (f *Field) settle(view graphstore.View) {
	budget := f.sweepBudget(view)
	for goal := f.config.Tolerance / settleShort; !f.sweep(view, budget); goal /= 16 {
		f.iterate(view, goal)
		f.touchAll()
		f.rebase()
		budget *= 4
	}
}

// sweepBudget returns what a sweep may cost before iteration is tried: a share of
// what a recompute would cost at the pace of the last iteration on this graph.
func (f *Field) sweepBudget(view graphstore.View) int {
	passes := f.pace * math.Log10(4/f.config.Tolerance)
	return max(sweepMin, int(sweepShare*passes*passCost(view)))
}

func passCost(view graphstore.View) float64 {
	return float64(2*view.Edges()+vertexCost*view.Vertices()) / passGain
}

// sweep pushes first in, first out until no queued vertex is above the threshold,
// and reports whether it got there within the budget. If not, the queue is empty
// and scan is set.
func (f *Field) sweep(view graphstore.View, budget int) bool {
	limit := f.alpha * f.theta
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
				f.scan = true
				return false
			}
			budget -= f.push(view, v, limit)
		}
		f.queue, f.next = f.next, f.queue[:0]
	}
	return true
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
