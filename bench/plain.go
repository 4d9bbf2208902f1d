package bench

import (
	"math"

	"gqlstream/graphstore"
)

// plain is the recursion x <- (1-a) P x + a m that libraries run for personalised
// PageRank, with P of the graph with self-loops, until the L1 distance to the
// solution, in units of M, is at most the certificate: the next step moves x by
// the residual, and the error is at most 1/a times that.
type plain struct {
	alpha float64
	x     []float64 // the mass of each vertex
	next  []float64
}

// plainStepsMax bounds the passes; 0.9^400 is 1e-18.
const plainStepsMax = 400

// solve iterates from the source and returns how many passes it took.
func (p *plain) solve(view graphstore.View, source []float64, certificate float64) (passes int) {
	n, sum := view.Vertices(), 0.0
	if len(p.x) != n {
		p.x, p.next = make([]float64, n), make([]float64, n)
	}
	for v, m := range source {
		p.x[v] = m
		sum += m
	}
	for passes < plainStepsMax {
		moved := p.step(view, source)
		p.x, p.next = p.next, p.x
		passes++
		// What moved x is the residual before the step; (1-a) of it at most is left.
		if moved*(1-p.alpha) <= certificate*p.alpha*sum {
			break
		}
	}
	return passes
}

// step fills next and returns by how much it differs.
func (p *plain) step(view graphstore.View, source []float64) (moved float64) {
	clear(p.next)
	for i, x := range p.x {
		v := graphstore.Vertex(i)
		if x == 0 {
			continue
		}
		share := (1 - p.alpha) * x / (view.Degree(v) + 1)
		p.next[v] += share // the self-loop
		for u, weight := range view.EdgesOf(v) {
			p.next[u] += share * weight
		}
	}
	for v, m := range source {
		p.next[v] += p.alpha * m
		moved += math.Abs(p.next[v] - p.x[v])
	}
	return moved
}
