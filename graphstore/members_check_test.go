package graphstore

import (
	"fmt"
	"slices"
)

// check compares both directions of the member lists.
func (m *members) check() error {
	total := 0
	for i := range m.communities {
		c := &m.communities[i]
		sum := uint64(0)
		for j, v := range c.vertices {
			if j > 0 && c.vertices[j-1] >= v || c.multiplicities[j] == 0 {
				return fmt.Errorf("community %q is out of order at %d", c.rule.Name, j)
			}
			if got := m.multiplicity(Community(i), v); got != c.multiplicities[j] {
				return fmt.Errorf("vertex %d is %d times in %q, want %d",
					v, got, c.rule.Name, c.multiplicities[j])
			}
			sum += uint64(c.multiplicities[j])
		}
		if sum != c.sum || len(c.vertices) != len(c.multiplicities) {
			return fmt.Errorf("community %q sums to %d, want %d", c.rule.Name, c.sum, sum)
		}
		total += len(c.vertices)
	}
	for v, list := range m.of {
		total -= len(list)
		for i := range list {
			if i > 0 && list[i-1].Community >= list[i].Community {
				return fmt.Errorf("memberships of vertex %d are out of order", v)
			}
		}
	}
	if total != 0 {
		return fmt.Errorf("%d memberships more by community than by vertex", total)
	}
	return nil
}

// checkMembers compares the members with those of a rule, and the reach of an ego network
// with its hops.
func (c *community) checkMembers(want []Vertex, hops int) error {
	if !slices.Equal(c.vertices, want) || c.sum != uint64(len(want)) {
		return fmt.Errorf(
			"community %q holds %d vertices, want %d, or others", c.rule.Name, len(c.vertices),
			len(want),
		)
	}
	if c.ego != nil && (c.ego.radius != hops || len(c.ego.distances) != len(want)) {
		return fmt.Errorf("community %q reaches %d vertices in %d hops, want %d in %d",
			c.rule.Name, len(c.ego.distances), c.ego.radius, len(want), hops)
	}
	return nil
}
