package diffusion

import (
	"cmp"
	"math"
	"slices"

	"gqlstream/graphstore"
)

// rescan queues every vertex above the threshold when there may be others than
// those already queued.
func (g *Dual) rescan() {
	if g.scan {
		g.scan = false
		for v := range g.rows {
			g.mark(Vertex(v))
		}
	}
}

// reachTolerance sweeps until no vertex is above the threshold. It iterates the costly blocks of
// functions first, and all blocks if a sweep runs out of budget. A sweep after an iteration has
// only a few vertices above the threshold. Its budget grows and the goal of the iteration falls
// each time, so that the loop ends.
func (g *Dual) reachTolerance(view graphstore.View) {
	budget := g.config.sweepBudget(view, passGainDual)
	for goal := g.config.Tolerance / iterateShort; ; goal /= 16 {
		blocks := g.costlyBlocks(excessPaid * float64(budget))
		if len(blocks) == 0 {
			if g.sweep(view, budget) {
				break
			}
			blocks = g.blocks()
		}
		g.iterate(view, goal, blocks)
		g.rescan()
		budget *= 4
	}
	g.bound = g.config.Tolerance
}

// sweep pushes first in, first out until no queued vertex is above the threshold, and reports
// whether it got there within the budget. If not, the queue is empty and scan is set.
func (g *Dual) sweep(view graphstore.View, budget int) bool {
	for len(g.queue) > 0 {
		for i, v := range g.queue {
			g.queued.drop(v)
			if budget < 0 {
				for _, v := range append(g.next, g.queue[i:]...) {
					g.queued.drop(v)
				}
				g.queue, g.next, g.scan = g.queue[:0], g.next[:0], true
				return false
			}
			budget -= g.push(view, v)
		}
		g.queue, g.next = g.next, g.queue[:0]
	}
	return true
}

// pushedShare is a share of the threshold. If one function of a vertex is above the threshold, its
// other functions above this share are pushed as well. Smaller residuals wait: this saves three
// quarters of the functions of a push and needs no more pushes.
const pushedShare = 0.5

// excessPaid is the largest ratio of the queue's excess to the budget for which a sweep begins.
// Above it four of five sweeps ran out of budget.
const excessPaid = 2

// costlyBlocks returns the blocks with the largest excess, so many that the excess of the others
// is at most this. In a live run the functions of residuals change at nearly half of the labels
// between two emissions, and the functions of classes only at new labels.
func (g *Dual) costlyBlocks(most float64) (blocks []int) {
	excess, left := g.excess(), 0.0
	for _, x := range excess {
		left += x
	}
	if left <= most {
		return nil
	}
	blocks = g.blocks()
	slices.SortStableFunc(blocks, func(a, b int) int { return cmp.Compare(excess[b], excess[a]) })
	n := 0
	for ; n < len(blocks) && left > most; n++ {
		left -= excess[blocks[n]]
	}
	return blocks[:n]
}

// blocks lists all blocks of functions.
func (g *Dual) blocks() []int {
	list := make([]int, len(g.excesses))
	for i := range list {
		list[i] = i
	}
	return list
}

// excess returns for every block the sum over queued vertices of degree times the residual in
// thresholds above theirs: two to three times the cost of the sweep.
func (g *Dual) excess() []float64 {
	sums := g.excesses
	clear(sums)
	limit := g.alpha * g.config.Tolerance
	for _, v := range g.queue {
		d, r := g.residuals(v)
		for i, x := range r {
			if x = math.Abs(x); x > limit*d {
				sums[i/lanes] += x / limit
			}
		}
	}
	return sums
}

// push moves the large residuals of v into y(v) and over its neighbours, if one of them
// still is above the threshold, and returns its cost.
func (g *Dual) push(view graphstore.View, v Vertex) int {
	d, r := g.residuals(v)
	limit := g.alpha * g.config.Tolerance
	top, least := 0.0, pushedShare*limit*d
	which := g.which[:0]
	for i, x := range r {
		if x = math.Abs(x); x > least {
			top, which = max(top, x), append(which, int32(i))
		}
	}
	if top <= limit*d {
		return 1
	}
	y, step := g.Values(v), g.step[:len(which)]
	for i, f := range which {
		step[i] = r[f] / (d - g.keep)
	}
	if g.sums.current {
		g.sums.leave(g, v, step, which)
	} else {
		for i, f := range which {
			y[f] += step[i]
			r[f] = 0
		}
	}
	for i := range step {
		step[i] *= g.keep
	}
	g.touch(v)
	neighbors := view.Neighbors(v)
	g.spread(neighbors, view.Weights(v), step, which, limit)
	if g.sums.current {
		g.sums.arrive(g, step, which, d-1)
	}
	// A push rounds the residuals of any one vertex a few times; its rounding of
	// y(v) moves R(v) by d(v) and R(x) by w(v,x) times as much, which is less.
	g.rounding += 8 * g.scale()
	g.work.Pushes++
	g.work.Traversals += uint64(len(neighbors))
	return len(neighbors) + pushCost
}

// spreadTogether is the number of neighbours with degrees read ahead of their residuals, so that
// their cache misses overlap.
const spreadTogether = 32

// spread adds step, times the weight of the edge, to the residuals of these functions at every
// neighbour and queues those it takes above the threshold.
func (g *Dual) spread(neighbors []Vertex, weights, step []float64, which []int32, limit float64) {
	var degrees [spreadTogether]float64
	cells, stride, w := g.cells, g.stride, 1.0
	which = which[:len(step)]
	for len(neighbors) > 0 {
		some := neighbors[:min(len(neighbors), spreadTogether)]
		for i, u := range some {
			degrees[i] = cells[int(u)*stride]
		}
		if g.sums.current {
			g.sums.meet(some, weights, degrees[:])
		}
		for i, u := range some {
			if weights != nil {
				w = weights[i]
			}
			bar, r, over := limit*degrees[i], cells[int(u)*stride+1:][:stride-1], false
			for j, x := range step {
				f := which[j]
				x = r[f] + w*x
				r[f] = x
				if math.Abs(x) > bar {
					over = true
				}
			}
			if over {
				g.enqueue(u)
			}
		}
		if neighbors = neighbors[len(some):]; weights != nil {
			weights = weights[len(some):]
		}
	}
}

func (g *Dual) enqueue(v Vertex) {
	if g.queued.add(v) {
		g.next = append(g.next, v)
	}
}
