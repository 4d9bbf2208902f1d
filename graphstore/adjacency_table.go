package graphstore

import (
	"fmt"
	"slices"
)

// adjacencyRow is a row of the adjacency table; see adjacency.records.
type adjacencyRow struct {
	Vertex    Vertex
	Neighbors []Vertex
	Weights   nullable[[]float64] // null when all are one
}

// load appends a run; finishLoad compacts it. The degree is recomputed from the weights, which is
// exact, instead of being trusted.
func (g *adjacency) load(row *adjacencyRow) error {
	v := row.Vertex
	list := row.Neighbors
	weights := row.Weights.Value
	if int(v) >= len(g.runs) || len(g.runs[v].neighbors) > 0 ||
		len(weights) > 0 && len(weights) != len(list) {
		return fmt.Errorf("neighbours of vertex %d: %w", v, errTable)
	}
	if len(list) == 0 {
		return nil
	}
	if most := slices.Max(list); int(most) >= len(g.runs) {
		return fmt.Errorf("vertex %d has the neighbour %d: %w", v, most, errTable)
	}
	if len(weights) > 0 {
		g.keepWeights()
	}
	r := &g.runs[v]
	r.neighbors = slices.Clone(list)
	r.degree = float64(len(list))
	r.changed = true
	if len(weights) > 0 {
		g.weights[v] = slices.Clone(weights)
		r.degree = 0
		for _, weight := range weights {
			r.degree += weight
			if weight != 1 {
				g.heavy++
			}
		}
	}
	g.weightSum += r.degree
	g.edges += len(list) // halved by finishLoad
	return nil
}

// finishLoad counts the edges, sorts and indexes the hubs.
func (g *adjacency) finishLoad(edges uint64) error {
	if uint64(g.edges) != 2*edges {
		return fmt.Errorf("%d neighbours of %d edges: %w", g.edges, edges, errTable)
	}
	g.edges /= 2
	g.compact()
	return nil
}
