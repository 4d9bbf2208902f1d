package diffusion

import (
	"math"
	"slices"

	"gqlstream/graphstore"
)

// End and threshold of sweeps. A vertex is pushed if |R(v)| is above a theta d(v). With the
// smallest useful threshold the tolerance would hold even if all residuals were equal to it.
// Residuals have both signs and all sizes, so the threshold is lift times as large, as high as the
// certificate allows.
const (
	sweepGoal  = 0.9  // of the tolerance: sweeps bring the certificate below it
	leastShare = 0.95 // of the tolerance: the certificate that the least bar guarantees
	liftStart  = 3    // of a new field; it soon finds its own
	liftMax    = 1 << 10
	// the threshold is divided by this after every sweep, until the certificate is low enough
	liftCut   = 0.8
	excessMax = 8 // a bar begins at most this squared above where the last one ended
)

// Costs in units of one neighbour visited by a push, measured.
const (
	pushCost = 8 // cost of a push without its neighbours
	// A pass of iteration visits this many neighbours in the time of one visit by a push.
	passGain     = 2 // of a field
	passGainDual = 4

	vertexCost = 6 // the cost of a vertex in a pass of iteration, in neighbours
)

// The sweeps of an update may cost sweepShare of the cost of a recomputation, and at least
// sweepMin.
const (
	sweepShare = 0.25
	sweepMin   = 1 << 10
)

// iterateShort divides the tolerance: iteration reduces the certificate to this share, so that the
// next batches need no pushes.
const iterateShort = 4

// reachTolerance leaves residuals in place while the certificate allows it: some cancel with later
// ones of the opposite sign. Once the certificate exceeds the tolerance, a shift and sweeps reduce
// it to sweepGoal of the tolerance. They use the highest sufficient threshold, because a push gains
// most where the residual is largest for its degree. The threshold begins at that of the sweep
// before, and higher for a larger certificate, because the residual of single vertices must first
// be spread. So the work comes in portions. Iteration replaces sweeps that exceed their budget.
func (f *Field) reachTolerance(view graphstore.View) {
	if f.bound() <= f.allowed(1) {
		return
	}
	f.shiftIfDue()
	goal := f.allowed(sweepGoal)
	excess := min(f.bound()/goal, excessMax)
	least := leastShare * f.config.Tolerance * f.sourceSum / f.degreeSum
	budget := f.config.sweepBudget(view, passGain)
	for lift := min(f.lift*excess*excess, liftMax); ; lift *= liftCut {
		f.lift = max(1, lift)
		limit := f.alpha * f.lift * least
		f.queueAbove(limit)
		if f.bound() <= goal || lift < 1 && len(f.queue) == 0 {
			return // in the second case all are at or below the least bar
		}
		if budget < 0 {
			f.iterate(view, f.config.Tolerance/iterateShort)
			f.touchAll(len(f.z))
			return
		}
		budget = f.sweep(view, limit, budget)
		f.shiftIfDue()
	}
}

// allowed returns the sum of |R| at which the certificate is that share of the tolerance.
func (f *Field) allowed(share float64) float64 {
	return share * f.config.Tolerance * f.alpha * f.sourceSum
}

// queueAbove queues every vertex with a residual per degree above limit, and sums |R| again, so
// that pushes need not maintain the sum.
func (f *Field) queueAbove(limit float64) {
	queue, residual, d := f.queue[:0], 0.0, f.d[:len(f.r)]
	for v, r := range f.r {
		size := math.Abs(r)
		residual += size
		if size > limit*d[v] {
			queue = append(queue, Vertex(v))
		}
	}
	f.queue, f.residual = queue, residual
	f.rounding += float64(len(f.r)+4) * residual
}

// sweepBudget bounds the cost of sweeps before iteration is tried: a share of the cost of a
// recompute, which takes about 1/sqrt(a) passes a digit.
func (c Config) sweepBudget(view graphstore.View, gain float64) int {
	passes := math.Log10(4/c.Tolerance) / math.Sqrt(c.Alpha)
	return max(sweepMin, int(sweepShare*passes*passCost(view, gain)))
}

// passCost returns the cost of a pass over the graph, in neighbours visited by a push. A pass
// visits gain neighbours in the time of one.
func passCost(view graphstore.View, gain float64) float64 {
	return float64(2*view.Edges()+vertexCost*view.Vertices()) / gain
}

// readAhead is the number of vertices that have their neighbours read before the first of them is
// pushed.
const readAhead = 16

// sweep pushes the queued vertices that are still above the limit when their turn comes, and
// returns the remaining budget; a negative value means that the sweep stopped early.
//
// The processor waits longer for the neighbours of a vertex, which lie anywhere in memory, than it
// works on them. So they are read for several vertices at a time, and the waits overlap.
func (f *Field) sweep(view graphstore.View, limit float64, budget int) int {
	before := f.work.Pushes
	for group := range slices.Chunk(f.queue, readAhead) {
		f.read += readNeighbors(view, group)
		for _, v := range group {
			if budget >= 0 && math.Abs(f.r[v]) > limit*f.d[v] {
				budget -= f.push(view, v)
			}
		}
	}
	// A push rounds the residual of each neighbour once. No push makes the sum of |R| larger, so
	// the residuals that one push rounds are at most the sum at the time of the queue.
	f.rounding += 2 * float64(f.work.Pushes-before) * f.residual
	return budget
}

// readNeighbors reads the cache lines of the neighbours of vertices, and of their weights. It
// returns a sum that means nothing, without which nothing would be read.
func readNeighbors(view graphstore.View, vertices []Vertex) (sum float64) {
	const perLine, weightsPerLine = 16, 8
	for _, v := range vertices {
		neighbors, weights := view.Neighbors(v), view.Weights(v)
		for i := 0; i < len(neighbors); i += perLine {
			sum += float64(neighbors[i])
		}
		for i := 0; i < len(weights); i += weightsPerLine {
			sum += weights[i]
		}
	}
	return sum
}

// push moves the residual of v into z(v) and over its neighbours, and returns its
// cost. Order matters to no invariant, only to the bits.
func (f *Field) push(view graphstore.View, v Vertex) int {
	r, d := f.r[v], f.d[v]
	step := r / (d - f.keep)
	z := f.z[v] + step
	f.z[v], f.r[v] = z, 0
	f.touch(v)
	neighbors := view.Neighbors(v)
	if weights := view.Weights(v); weights == nil {
		spread(f.r, neighbors, f.keep*step)
	} else {
		spreadWeighted(f.r, neighbors, weights, f.keep*step)
	}
	f.signed -= f.alpha * d * step
	// A rounding of z(v) moves R by at most 2 d(v) times as much; step*w is rounded twice.
	f.rounding += 2*d*(math.Abs(z)+2*math.Abs(step)) + 8*math.Abs(r)
	f.work.Pushes++
	f.work.Traversals += uint64(len(neighbors))
	return len(neighbors) + pushCost
}

// spread adds x to the residual of every neighbour.
func spread(r []float64, neighbors []Vertex, x float64) {
	for _, u := range neighbors {
		r[u] += x
	}
}

// spreadWeighted is spread where edges have weights.
func spreadWeighted(r []float64, neighbors []Vertex, weights []float64, x float64) {
	weights = weights[:len(neighbors)]
	for i, u := range neighbors {
		r[u] += x * weights[i]
	}
}
