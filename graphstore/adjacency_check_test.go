package graphstore

import (
	"cmp"
	"fmt"
	"slices"
)

// check recounts degrees, edges and weights, looks every edge up from both of its ends,
// and accounts for every element of the arenas.
func (g *adjacency) check() error {
	entries, heavy, sum := 0, 0, 0.0
	for v := range g.runs.data {
		r := &g.runs.data[v]
		if (r.len == 0) != (r.class == 0) || int(r.len) > 1<<r.class {
			return fmt.Errorf("vertex %d has a run of %d in class %d", v, r.len, r.class)
		}
		if !r.changed && !slices.IsSorted(g.entries(r)) {
			return fmt.Errorf("the neighbours of vertex %d are not in order, and it is not known", v)
		}
		degree := 0.0
		for i, u := range g.entries(r) {
			if int(u) >= len(g.runs.data) || int(u) == v {
				return fmt.Errorf("vertex %d has the neighbour %d of %d", v, u, len(g.runs.data))
			}
			weight := g.weightAt(r.at + uint32(i))
			degree += weight
			if weight != 1 {
				heavy++
			}
		}
		if degree != r.degree {
			return fmt.Errorf("degree of %d is %v, recounted %v", v, r.degree, degree)
		}
		sum += degree
		entries += int(r.len)
	}
	if entries != 2*g.edges || heavy != g.heavy || sum != g.weightSum {
		return fmt.Errorf("%d entries, %d heavy, sum %v; want %d, %d, %v",
			entries, heavy, sum, 2*g.edges, g.heavy, g.weightSum)
	}
	if n := len(g.weights.list); n != 0 && n != len(g.arena.list) {
		return fmt.Errorf("%d pages of weights for an arena of %d", n, len(g.arena.list))
	}
	return cmp.Or(g.checkBlocks(), g.checkHubs(), g.checkSymmetry())
}

// checkSymmetry looks every entry up from both of its ends. One that stands twice in a
// run is found only at the first of its places.
func (g *adjacency) checkSymmetry() error {
	for v := range g.runs.data {
		r := &g.runs.data[v]
		for i, u := range g.entries(r) {
			other := &g.runs.data[u]
			here, _ := g.position(Vertex(v), Vertex(u))
			there, known := g.position(Vertex(u), Vertex(v))
			if int(here) != i || !known || g.weightAt(r.at+here) != g.weightAt(other.at+there) {
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
	for v := range g.runs.data {
		r := &g.runs.data[v]
		if index := len(g.hubs[Vertex(v)]); r.hub && index != int(r.len) || !r.hub && int(r.len) > g.hubDegree {
			return fmt.Errorf("the index of vertex %d has %d entries, want %d", v, index, r.len)
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

// checkBlocks checks that blocks in use and free blocks tile the arena.
func (g *adjacency) checkBlocks() error {
	var blocks []block
	for v := range g.runs.data {
		if r := &g.runs.data[v]; r.len > 0 {
			blocks = append(blocks, block{r.at, r.class})
		}
	}
	return g.arena.check(blocks)
}

// block is one block of an arena.
type block struct {
	at    uint32
	class uint8
}

// check checks that the blocks in use and the free ones tile the arena.
func (a *arena) check(used []block) error {
	idle := 0
	for class, head := range a.free {
		for at := head; at != 0; at = a.from(at - 1)[0] {
			used = append(used, block{at - 1, uint8(class)})
			if idle += 1 << class; idle > a.used {
				return fmt.Errorf("the free list of class %d is a circle", class)
			}
		}
	}
	slices.SortFunc(used, func(a, b block) int { return int(a.at) - int(b.at) })
	end := 0
	for _, b := range used {
		if int(b.at) != end {
			return fmt.Errorf("a block at %d, want one at %d", b.at, end)
		}
		end += 1 << b.class
	}
	if end != a.used || idle != a.idle {
		return fmt.Errorf("blocks to %d of %d, %d idle of %d", end, a.used, idle, a.idle)
	}
	return nil
}
