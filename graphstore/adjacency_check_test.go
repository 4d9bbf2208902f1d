package graphstore

import (
	"cmp"
	"fmt"
	"slices"
)

// check recounts degrees, edges and weights, and looks every edge up from both of its ends.
func (g *adjacency) check() error {
	entries, heavy, sum := 0, 0, 0.0
	for v := range g.runs {
		r := &g.runs[v]
		if g.weights != nil && len(g.weights[v]) != len(r.neighbors) {
			return fmt.Errorf(
				"vertex %d has %d neighbours and %d weights", v, len(r.neighbors),
				len(g.weights[v]),
			)
		}
		if !r.changed && !slices.IsSorted(r.neighbors) {
			return fmt.Errorf(
				"the neighbours of vertex %d are not in order, and it is not known",
				v,
			)
		}
		degree := 0.0
		for i, u := range r.neighbors {
			if int(u) >= len(g.runs) || int(u) == v {
				return fmt.Errorf("vertex %d has the neighbour %d of %d", v, u, len(g.runs))
			}
			weight := g.weightAt(Vertex(v), i)
			degree += weight
			if weight != 1 {
				heavy++
			}
		}
		if degree != r.degree {
			return fmt.Errorf("degree of %d is %v, recounted %v", v, r.degree, degree)
		}
		sum += degree
		entries += len(r.neighbors)
	}
	if entries != 2*g.edges || heavy != g.heavy || sum != g.weightSum {
		return fmt.Errorf("%d entries, %d heavy, sum %v; want %d, %d, %v",
			entries, heavy, sum, 2*g.edges, g.heavy, g.weightSum)
	}
	return cmp.Or(g.checkHubs(), g.checkSymmetry())
}

// checkSymmetry looks every entry up from both of its ends. One that stands twice in a
// run is found only at the first of its places.
func (g *adjacency) checkSymmetry() error {
	for v := range g.runs {
		for i, u := range g.runs[v].neighbors {
			here, _ := g.position(Vertex(v), u)
			there, known := g.position(u, Vertex(v))
			if here != i || !known || g.weightAt(Vertex(v), here) != g.weightAt(u, there) {
				return fmt.Errorf("edge %d-%d is one-sided, doubled, or of two weights", v, u)
			}
		}
	}
	return nil
}

// checkHubs checks that exactly the runs of hubs are indexed, with an entry for each
// neighbour. That the entries are right is seen by checkSymmetry.
func (g *adjacency) checkHubs() error {
	seen := 0
	for v := range g.runs {
		r := &g.runs[v]
		if index := len(g.hubs[Vertex(v)]); r.hub && index != len(r.neighbors) ||
			!r.hub && len(r.neighbors) > g.hubDegree {
			return fmt.Errorf(
				"the index of vertex %d has %d entries, want %d", v, index, len(r.neighbors),
			)
		}
		if r.hub {
			seen++
		}
	}
	if seen != len(g.hubs) {
		return fmt.Errorf("%d hubs and %d indices", seen, len(g.hubs))
	}
	return nil
}
