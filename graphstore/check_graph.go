package graphstore

import (
	"fmt"
	"math/bits"
	"slices"
)

// check recounts degrees, edges and weights, proves symmetry by transposing the
// graph twice, compares each hub's index with its run, and accounts for every
// element of the arenas.
func (g *adjacency) check() error {
	entries, heavy, sum := 0, 0, 0.0
	for v := range g.runs.data {
		r := &g.runs.data[v]
		if r.mark != 0 || (r.len == 0) != (r.class() == 0) || int(r.len) > 1<<r.class() {
			return fmt.Errorf("vertex %d has a run of %d in class %d, mark %d", v, r.len, r.class(), r.mark)
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
	if n := len(g.weights.data); n != 0 && n != len(g.arena.data.data) {
		return fmt.Errorf("%d weights for an arena of %d", n, len(g.arena.data.data))
	}
	return firstOf(g.checkSymmetry(entries), g.checkHubs(), g.checkBlocks())
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSymmetry compares the sorted entries (v, u, weight) with (u, v, weight).
func (g *adjacency) checkSymmetry(entries int) error {
	type entry struct {
		key    uint64
		weight float64
	}
	there, back := make([]entry, 0, entries), make([]entry, 0, entries)
	for v := range g.runs.data {
		r := &g.runs.data[v]
		for i, u := range g.entries(r) {
			weight := g.weightAt(r.at + uint32(i))
			there = append(there, entry{pair(uint32(v), u), weight})
			back = append(back, entry{pair(u, uint32(v)), weight})
		}
	}
	byKey := func(a, b entry) int {
		if a.key < b.key {
			return -1
		}
		return bits.Len64(a.key - b.key)
	}
	slices.SortFunc(there, byKey)
	slices.SortFunc(back, byKey)
	for i := range there {
		if there[i] != back[i] || i > 0 && there[i].key == there[i-1].key {
			v, u := unpair(there[i].key)
			return fmt.Errorf("edge %d-%d is one-sided, doubled, or of two weights", v, u)
		}
	}
	return nil
}

func (g *adjacency) checkHubs() error {
	seen := 0
	for v := range g.runs.data {
		r := &g.runs.data[v]
		hub := r.hub()
		if hub == 0 {
			if int(r.len) > g.hubDegree {
				return fmt.Errorf("vertex %d has %d neighbours and no index", v, r.len)
			}
			continue
		}
		seen++
		slots, _ := g.hubs.slots(hub)
		filled := 0
		for _, x := range slots {
			if x != 0 {
				filled++
			}
		}
		if filled != int(r.len) {
			return fmt.Errorf("the index of vertex %d has %d entries, want %d", v, filled, r.len)
		}
		for i, u := range g.entries(r) {
			if at, ok := g.hubs.find(hub, g.entries(r), u); !ok || int(at) != i {
				return fmt.Errorf("the index of vertex %d finds %d at %d, %t, want %d", v, u, at, ok, i)
			}
		}
	}
	if seen+len(g.hubs.free) != len(g.hubs.list) {
		return fmt.Errorf("%d hubs and %d free of %d", seen, len(g.hubs.free), len(g.hubs.list))
	}
	return nil
}

// checkBlocks checks that blocks in use and free blocks tile both arenas.
func (g *adjacency) checkBlocks() error {
	var blocks, tables []block
	for v := range g.runs.data {
		if r := &g.runs.data[v]; r.len > 0 {
			blocks = append(blocks, block{r.at, r.class()})
		}
	}
	for _, t := range g.hubs.list {
		if t.bits > 0 {
			tables = append(tables, block{t.at, t.bits})
		}
	}
	return firstOf(g.arena.check(blocks), g.hubs.arena.check(tables))
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
		for at := head; at != 0; at = a.data.data[at-1] {
			used = append(used, block{at - 1, uint8(class)})
			if idle += 1 << class; idle > len(a.data.data) {
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
	if end != len(a.data.data) || idle != a.idle {
		return fmt.Errorf("blocks to %d of %d, %d idle of %d", end, len(a.data.data), idle, a.idle)
	}
	return nil
}

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
		if sum != c.sum || len(c.vertices) != len(c.multiplicities) || c.rule.Kind == Everyone && sum != 0 {
			return fmt.Errorf("community %q sums to %d, want %d", c.rule.Name, c.sum, sum)
		}
		total += len(c.vertices)
	}
	var blocks []block
	for v := range m.runs.data {
		r := m.runs.data[v]
		total -= int(r.len)
		if r.len > 0 {
			blocks = append(blocks, block{r.at, classOf(2 * int(r.len))})
		}
		list := m.of(Vertex(v))
		for i := range list {
			if i > 0 && list[i-1].Community >= list[i].Community {
				return fmt.Errorf("memberships of vertex %d are out of order", v)
			}
		}
	}
	if total != 0 {
		return fmt.Errorf("%d memberships more by community than by vertex", total)
	}
	return m.arena.check(blocks)
}
