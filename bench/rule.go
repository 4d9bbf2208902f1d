package bench

import (
	"slices"

	"gqlstream/graphstore"
)

// ruleGraph is the adjacency that the published rule walks: lists of neighbours
// with the self-loop left implicit, edges of weight one.
type ruleGraph struct{ neighbors [][]graphstore.Vertex }

// newRuleGraph copies the edges of a view.
func newRuleGraph(view graphstore.View) *ruleGraph {
	g := &ruleGraph{neighbors: make([][]graphstore.Vertex, view.Vertices())}
	for v := range g.neighbors {
		g.neighbors[v] = slices.Clone(view.Neighbors(graphstore.Vertex(v)))
	}
	return g
}

func (g *ruleGraph) degree(v graphstore.Vertex) float64 { return float64(len(g.neighbors[v]) + 1) }

// set inserts or removes the edge, which must be absent or present.
func (g *ruleGraph) set(u, v graphstore.Vertex, present bool) {
	for _, arc := range [2][2]graphstore.Vertex{{u, v}, {v, u}} {
		list := g.neighbors[arc[0]]
		if present {
			list = append(list, arc[1])
		} else {
			at := slices.Index(list, arc[1])
			list[at] = list[len(list)-1]
			list = list[:len(list)-1]
		}
		g.neighbors[arc[0]] = list
	}
}

// rule is the update rule of Zhang, Lofgren and Goel (Approximate Personalized
// PageRank on Dynamic Graphs, KDD 2016), forward push from one source: estimates p
// and residuals r, with
//
//	p(v) + a r(v) = a [v is the source] + (1-a) * sum over arcs x -> v of p(x)/d(x)
//
// so that p(v) + sum over u of r(u) PPR(u, v) is the exact value and sum |r| bounds
// the L1 error. An arc u -> v that comes or goes changes p(u) so that p(u)/d(u)
// stays, and r(u) and r(v) pay for it; then vertices with |r| > epsilon d are
// pushed. It is straightforward on purpose, as in the paper: a queue, two arrays, an
// arc at a time. The graph has the self-loops that ours has, and loops count once.
type rule struct {
	alpha, epsilon float64
	g              *ruleGraph
	p, r           []float64

	queue  []graphstore.Vertex
	queued []bool
}

// newRule starts from given estimates, and computes their residual.
func newRule(g *ruleGraph, source graphstore.Vertex, alpha, epsilon float64, p []float64) *rule {
	n := len(g.neighbors)
	s := &rule{alpha: alpha, epsilon: epsilon, g: g, p: p, r: make([]float64, n), queued: make([]bool, n)}
	s.r[source] = 1
	for i := range n {
		v := graphstore.Vertex(i)
		s.r[v] -= p[v] / alpha
		share := (1 - alpha) / alpha * p[v] / g.degree(v)
		s.r[v] += share
		for _, u := range g.neighbors[v] {
			s.r[u] += share
		}
	}
	for v := range n {
		s.enqueue(graphstore.Vertex(v))
	}
	s.push()
	return s
}

// repair restores the invariant after the edge came or went in the graph: arc by
// arc, at one end each. It queues what must be pushed.
func (s *rule) repair(u, v graphstore.Vertex, inserted bool) {
	s.repairArc(u, v, inserted)
	s.repairArc(v, u, inserted)
	s.enqueue(u)
	s.enqueue(v)
}

func (s *rule) repairArc(u, v graphstore.Vertex, inserted bool) {
	d := s.g.degree(u)
	change := 0.0
	if inserted {
		change = s.p[u] / (d - 1)
	} else {
		change = -s.p[u] / (d + 1)
	}
	s.p[u] += change
	s.r[u] -= change / s.alpha
	s.r[v] += change * (1 - s.alpha) / s.alpha
}

// enqueue puts v into the queue if its residual is too large.
func (s *rule) enqueue(v graphstore.Vertex) {
	if r, bar := s.r[v], s.epsilon*s.g.degree(v); (r > bar || r < -bar) && !s.queued[v] {
		s.queued[v] = true
		s.queue = append(s.queue, v)
	}
}

// push moves residuals until none is too large.
func (s *rule) push() {
	for at := 0; at < len(s.queue); at++ {
		v := s.queue[at]
		s.queued[v] = false
		r := s.r[v]
		if bar := s.epsilon * s.g.degree(v); r <= bar && r >= -bar {
			continue
		}
		s.p[v] += s.alpha * r
		share := (1 - s.alpha) * r / s.g.degree(v)
		s.r[v] = share // the self-loop
		for _, u := range s.g.neighbors[v] {
			s.r[u] += share
			s.enqueue(u)
		}
		s.enqueue(v)
	}
	s.queue = s.queue[:0]
}

// matchStep is by how much match moves the bar.
const matchStep = 1.05

// match moves the bar a little, so that the bound that pushes leave approaches another.
func (s *rule) match(bound float64) {
	if s.bound() < bound {
		s.epsilon *= matchStep
	} else {
		s.epsilon /= matchStep
	}
}

// bound returns sum |r|, which bounds the L1 error.
func (s *rule) bound() float64 {
	sum := 0.0
	for _, r := range s.r {
		sum += max(r, -r)
	}
	return sum
}
