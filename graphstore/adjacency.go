package graphstore

import "unsafe"

// run is one vertex of the graph: where its neighbours stand in the arena, and
// the sum of their edge weights. What an insert touches is in one cache line.
type run struct {
	degree  float64
	at      uint32
	len     uint32
	class   uint8 // capacity class of the block that it stands in
	hub     bool  // whether it has an index
	changed bool  // whether it has other neighbours, or another order, than after the last compaction
}

// adjacency holds the neighbours of every vertex as runs in one arena.
//
// Invariant: u stands once in the run of v exactly if v stands once in the run of
// u, with the same weight; a run without neighbours has no block; a run longer
// than hubDegree has an index, and none shorter than half of that; weights, when not empty, has the spans of the arena.
type adjacency struct {
	runs      column[run]
	arena     arena
	weights   pages[float64] // parallel to the arena once a weight differs from 1, else empty
	heavy     int            // directed entries whose weight differs from 1
	weightSum float64        // sum of all degrees
	edges     int
	hubs      map[Vertex]map[uint32]uint32 // of vertices with many neighbours: where each stands in the run
	hubDegree int
}

// newAdjacency returns a graph without vertices.
func newAdjacency(hubDegree int) adjacency {
	return adjacency{hubs: map[Vertex]map[uint32]uint32{}, hubDegree: hubDegree}
}

// Neighbors returns the neighbours of v in the store's order, without v. The
// order is a function of the history since the last Compact.
func (g *adjacency) Neighbors(v Vertex) []Vertex {
	r := &g.runs.data[v]
	if r.len == 0 {
		return nil
	}
	return unsafe.Slice((*Vertex)(&g.arena.from(r.at)[0]), r.len)
}

// entries returns the neighbours of a run that has some.
func (g *adjacency) entries(r *run) []uint32 {
	if r.len == 0 {
		return nil
	}
	return g.arena.from(r.at)[:r.len]
}

// Weights returns the edge weights parallel to Neighbors, or nil when every edge
// of the graph weighs one.
func (g *adjacency) Weights(v Vertex) []float64 {
	if g.heavy == 0 {
		return nil
	}
	r := &g.runs.data[v]
	if r.len == 0 {
		return nil
	}
	return g.weights.from(r.at)[:r.len:r.len]
}

// position returns the index of u in the run of v.
func (g *adjacency) position(v, u Vertex) (uint32, bool) {
	r := &g.runs.data[v]
	if r.hub {
		i, ok := g.hubs[v][uint32(u)]
		return i, ok
	}
	for i, x := range g.entries(r) {
		if x == uint32(u) {
			return uint32(i), true
		}
	}
	return 0, false
}

// warm reads the memory that setting these edges will read, and returns a number that
// means nothing.
//
// An insertion waits for memory, first for the runs of its ends and then for the blocks that these
// name, and the processor cannot begin the next insertion meanwhile. It can begin the next turn of a
// loop that does little but read, so here the waits overlap.
func (g *adjacency) warm(edges []entry) (sum uint64) {
	for _, e := range edges {
		u, v := unpair(e.key)
		sum += uint64(g.runs.data[u].len + g.runs.data[v].len)
	}
	for _, e := range edges {
		u, v := unpair(e.key)
		sum += g.warmRun(&g.runs.data[u]) + g.warmRun(&g.runs.data[v])
	}
	return sum
}

// warmRun reads the end of a run, where an insert writes, and its beginning, where a search starts.
func (g *adjacency) warmRun(r *run) uint64 {
	if r.len == 0 {
		return 0
	}
	block := g.arena.from(r.at)
	return uint64(block[r.len-1] + block[0])
}

// weight returns the weight of the edge {u, v}, 0 when there is none. It reads
// the shorter run.
func (g *adjacency) weight(u, v Vertex) float64 {
	if g.runs.data[u].len > g.runs.data[v].len {
		u, v = v, u
	}
	i, ok := g.position(u, v)
	if !ok {
		return 0
	}
	return g.weightAt(g.runs.data[u].at + i)
}

// weighted reports whether weights are kept at all.
func (g *adjacency) weighted() bool { return len(g.weights.list) > 0 }

// weightAt returns the weight of the entry at an offset of the arena.
func (g *adjacency) weightAt(at uint32) float64 {
	if !g.weighted() {
		return 1
	}
	return g.weights.from(at)[0]
}

// set brings the weight of the edge {u, v}, which is before, to after.
func (g *adjacency) set(u, v Vertex, before, after float64) {
	switch {
	case before == 0:
		g.insert(u, v, after)
		g.insert(v, u, after)
		g.edges++
	case after == 0:
		g.remove(u, v)
		g.remove(v, u)
		g.edges--
	default:
		g.reweigh(u, v, before, after)
		g.reweigh(v, u, before, after)
	}
	g.runs.data[u].degree += after - before
	g.runs.data[v].degree += after - before
	g.weightSum += 2 * (after - before)
}

// insert appends u to the run of v, where it must not stand yet.
func (g *adjacency) insert(v, u Vertex, weight float64) {
	r := &g.runs.data[v]
	if r.len == 0 {
		r.at = g.arena.take(smallestClass)
		r.class = smallestClass
		g.fitWeights()
	} else if r.len == 1<<r.class {
		g.move(r, r.class+1)
	}
	at := r.at + r.len
	g.arena.from(at)[0] = uint32(u)
	if weight != 1 || g.weighted() {
		g.setWeight(at, 1, weight)
	}
	r.len++
	r.changed = true
	if r.hub {
		g.hubs[v][uint32(u)] = r.len - 1
	} else if int(r.len) > g.hubDegree {
		g.index(v)
	}
}

// index makes an index of the run of v.
func (g *adjacency) index(v Vertex) {
	r := &g.runs.data[v]
	index := make(map[uint32]uint32, r.len)
	for i, u := range g.entries(r) {
		index[u] = uint32(i)
	}
	g.hubs[v], r.hub = index, true
}

// dropIndex forgets the index of a run, if it has one.
func (g *adjacency) dropIndex(v Vertex) {
	if r := &g.runs.data[v]; r.hub {
		delete(g.hubs, v)
		r.hub = false
	}
}

// setWeight changes the weight of one entry.
func (g *adjacency) setWeight(at uint32, before, after float64) {
	if before != 1 {
		g.heavy--
	}
	if after != 1 {
		g.heavy++
	}
	if !g.weighted() {
		g.weights.fit(&g.arena.pages)
		for i := range g.weights.spans {
			weights := g.weights.spans[i].data
			for j := range weights {
				weights[j] = 1
			}
		}
	}
	g.weights.from(at)[0] = after
}

// fitWeights gives the weights the spans of the arena, if there are any, so that an entry and its
// weight have the same offset.
func (g *adjacency) fitWeights() {
	if g.weighted() {
		g.weights.fit(&g.arena.pages)
	}
}

// move takes a run to a block of another class, which must hold it.
func (g *adjacency) move(r *run, class uint8) {
	at := g.arena.take(class)
	g.fitWeights()
	copy(g.arena.from(at), g.entries(r))
	if g.weighted() {
		copy(g.weights.from(at), g.weights.from(r.at)[:r.len])
	}
	g.arena.give(r.at, r.class)
	r.at = at
	r.class = class
}

// remove takes u out of the run of v, where it must stand: the last entry takes
// its place. A block that is three quarters empty gives way to one of half its
// size, an index goes when its hub has shrunk to half of hubDegree.
func (g *adjacency) remove(v, u Vertex) {
	r := &g.runs.data[v]
	i, ok := g.position(v, u)
	if !ok {
		return
	}
	last := r.len - 1
	block := g.arena.from(r.at)
	block[i] = block[last]
	if r.hub {
		index := g.hubs[v]
		index[block[last]] = i
		delete(index, uint32(u))
	}
	if g.weighted() {
		weights := g.weights.from(r.at)
		g.setWeight(r.at+i, weights[i], 1)
		weights[i] = weights[last]
	}
	r.len--
	r.changed = true
	if int(r.len) <= g.hubDegree/2 {
		g.dropIndex(v)
	}
	switch {
	case r.len == 0:
		g.arena.give(r.at, r.class)
		*r = run{degree: r.degree}
	case r.class > smallestClass && r.len <= 1<<r.class/4:
		g.move(r, r.class-1)
	}
}

// reweigh changes the weight of the entry of u in the run of v.
func (g *adjacency) reweigh(v, u Vertex, before, after float64) {
	r := &g.runs.data[v]
	if i, ok := g.position(v, u); ok {
		g.setWeight(r.at+i, before, after)
	}
}
