package graphstore

import (
	"slices"
)

// Vacuum rewrites the store in canonical form: runs in order of vertices, their
// neighbours sorted, no free blocks, no bytes of erased names, no forgotten
// values. Afterwards two stores that hold the same graph under the same indices
// hold the same bytes and behave alike for ever, whatever their histories; this
// is the form that a snapshot saves and loads. It ends every View.
//
// Cost: two passes over the adjacency, and memory for half a copy of it.
func (s *Store) Vacuum() {
	s.adj.vacuum()
	s.ids.vacuum()
	s.attributes.vacuum()
	s.members.vacuum()
}

// idleSlack is how many elements may lie in free blocks besides half as many as
// are in use.
const idleSlack = 1 << 20

// idleTooMuch reports whether an arena should be rewritten. It bounds memory and
// keeps offsets within 32 bits; random arrival stays below it.
func (a *arena) idleTooMuch() bool { return 3*a.idle > len(a.data.data)+2*idleSlack }

// compact rewrites what has too much free space. It depends on the history since
// the last Vacuum only.
func (s *Store) compact() {
	if s.adj.arena.idleTooMuch() || s.adj.hubs.arena.idleTooMuch() {
		s.adj.vacuum()
	}
	if s.members.arena.idleTooMuch() {
		s.members.vacuum()
	}
}

// vacuum writes the runs anew, from a copy of every edge at its lower end: half the
// graph is enough, because it is symmetric. Every run comes out sorted, since it is
// given its lower neighbours as the walk passes them, then its upper ones.
func (g *adjacency) vacuum() {
	ends, upper, weights := g.uppers()
	starts, size := g.layout()
	g.hubs.arena.data.release()
	g.arena.blank(size)
	g.weights.release()
	g.weights = newColumn[float64](g.arena.data.allocator)
	if g.heavy > 0 {
		g.weights.reserve(size)
		g.weights.resize(size)
	}
	fill, entries, from := slices.Clone(starts), g.arena.data.data, uint32(0)
	for v, end := range ends {
		for i := from; i < end; i++ {
			u := upper[i]
			here, there := fill[v], fill[u]
			entries[here], entries[there] = u, uint32(v)
			if g.heavy > 0 {
				g.weights.data[here], g.weights.data[there] = weights[i], weights[i]
			}
			fill[v]++
			fill[u]++
		}
		from = end
	}
	g.settle(starts)
}

// uppers returns the neighbours of each vertex that come after it, sorted, those of v
// before ends[v], with the weights of these edges where one is not 1.
func (g *adjacency) uppers() (ends []uint32, upper []uint32, weights []float64) {
	ends = make([]uint32, len(g.runs.data))
	total := uint32(0)
	for v := range g.runs.data {
		ends[v] = total // where those of v begin: filling them moves it to their end
		for _, u := range g.entries(&g.runs.data[v]) {
			if u > uint32(v) {
				total++
			}
		}
	}
	upper = make([]uint32, total)
	if g.heavy > 0 {
		weights = make([]float64, total)
	}
	for v := range g.runs.data {
		r := &g.runs.data[v]
		for i, u := range g.entries(r) {
			if u > uint32(v) {
				continue
			}
			at := ends[u]
			ends[u]++
			upper[at] = uint32(v)
			if g.heavy > 0 {
				weights[at] = g.weights.data[r.at+uint32(i)]
			}
		}
	}
	return ends, upper, weights
}

// layout returns where the run of each vertex starts in canonical form, and the
// size of the arena.
func (g *adjacency) layout() (starts []uint32, size int) {
	starts = make([]uint32, len(g.runs.data))
	for v := range g.runs.data {
		if n := int(g.runs.data[v].len); n > 0 {
			starts[v] = uint32(size)
			size += 1 << classOf(n)
		}
	}
	return starts, size
}

// settle points the runs at their blocks in canonical form and indexes the hubs
// anew.
func (g *adjacency) settle(starts []uint32) {
	hubArena := newArena(g.arena.data.allocator)
	size := 0
	for v := range g.runs.data {
		if n := int(g.runs.data[v].len); n > g.hubDegree {
			size += 1 << tableBits(n)
		}
	}
	hubArena.data.reserve(size)
	g.hubs = hubs{arena: hubArena}
	for v := range g.runs.data {
		r := &g.runs.data[v]
		r.at, r.meta = starts[v], 0
		if r.len > 0 {
			r.setClass(classOf(int(r.len)))
		}
		if int(r.len) > g.hubDegree {
			r.setHub(g.hubs.add(g.entries(r)))
		}
	}
}

// vacuum writes the names in order of vertices and makes the table as small as
// its load allows.
func (t *interner) vacuum() {
	bytes := newColumn[uint8](t.bytes.allocator)
	bytes.reserve(len(t.bytes.data) - t.dead)
	for v := range t.entries.data {
		if e := &t.entries.data[v]; e.size != 0 && e.size != erasedID {
			at := len(bytes.data)
			bytes.resize(at + int(e.size))
			copy(bytes.data[at:], t.name(e))
			e.word = uint64(at)
		}
	}
	t.bytes.release()
	t.bytes, t.dead = bytes, 0
	slices.Sort(t.free)
	n := slotsMin
	for 4*len(t.entries.data) >= 3*n {
		n *= 2
	}
	t.rehash(n)
}

// vacuum sorts the keys, drops those that no vertex has, and numbers the values
// in order of first use.
func (a *attributes) vacuum() {
	next := newAttributes(a.allocator)
	for _, key := range slices.Sorted(slices.Values(a.keys)) {
		old := &a.columns[a.index[key]]
		n := len(old.data)
		for n > 0 && old.data[n-1] == 0 {
			n--
		}
		if n == 0 {
			continue
		}
		column := next.addKey(key)
		next.columns[column].reserve(n)
		for v := range Vertex(n) {
			if x := old.data[v]; x != 0 {
				next.set(v, column, a.values[x-1])
			}
		}
	}
	a.release()
	*a = next
}

// vacuum writes the runs of memberships in order of vertices.
func (m *members) vacuum() {
	arena := newArena(m.arena.data.allocator)
	arena.data.reserve(len(m.arena.data.data) - m.arena.idle)
	for v := range m.runs.data {
		r := &m.runs.data[v]
		if r.len == 0 {
			continue
		}
		at := arena.alloc(classOf(2 * int(r.len)))
		copy(arena.data.data[at:], m.arena.data.data[r.at:][:2*r.len])
		r.at = at
	}
	m.arena.data.release()
	m.arena = arena
	for i := range m.communities {
		c := &m.communities[i]
		c.vertices, c.multiplicities = slices.Clip(c.vertices), slices.Clip(c.multiplicities)
	}
}
