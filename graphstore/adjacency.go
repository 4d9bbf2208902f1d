package graphstore

import "unsafe"

// run is one vertex of the graph: where its neighbours stand in the arena, and
// the sum of their edge weights. What an insert touches is in one cache line.
type run struct {
	degree float64
	at     uint32
	len    uint32
	meta   uint32 // class of the block in the low bits, 1 + index of its hub above
	mark   uint32 // 1 + index into work.degrees during Apply, else 0
}

const (
	classBits = 5
	classMask = 1<<classBits - 1
)

func (r *run) class() uint8         { return uint8(r.meta & classMask) }
func (r *run) hub() uint32          { return r.meta >> classBits }
func (r *run) setClass(class uint8) { r.meta = r.meta&^classMask | uint32(class) }
func (r *run) setHub(hub uint32)    { r.meta = r.meta&classMask | hub<<classBits }

// adjacency holds the neighbours of every vertex as runs in one arena.
//
// Invariant: u stands once in the run of v exactly if v stands once in the run of
// u, with the same weight; a run without neighbours has no block; a run longer
// than hubDegree has an index; weights, when not empty, is as long as the arena.
type adjacency struct {
	runs      column[run]
	arena     arena
	weights   column[float64] // parallel to the arena once a weight differs from 1, else empty
	heavy     int             // directed entries whose weight differs from 1
	weightSum float64         // sum of all degrees
	edges     int
	hubs      hubs
	hubDegree int
}

func newAdjacency(a Allocator, hubDegree int) adjacency {
	return adjacency{
		runs: newColumn[run](a), arena: newArena(a), weights: newColumn[float64](a),
		hubs: hubs{arena: newArena(a)}, hubDegree: hubDegree,
	}
}

func (g *adjacency) release() {
	g.runs.release()
	g.arena.data.release()
	g.weights.release()
	g.hubs.arena.data.release()
}

func (g *adjacency) neighbors(v Vertex) []Vertex {
	r := &g.runs.data[v]
	if r.len == 0 {
		return nil
	}
	return unsafe.Slice((*Vertex)(&g.arena.data.data[r.at]), int(r.len))[:r.len:r.len]
}

func (g *adjacency) entries(r *run) []uint32 { return g.arena.data.data[r.at : r.at+r.len] }

func (g *adjacency) weightsOf(v Vertex) []float64 {
	if g.heavy == 0 {
		return nil
	}
	r := &g.runs.data[v]
	return g.weights.data[r.at : r.at+r.len : r.at+r.len]
}

// position returns where u stands in a run.
func (g *adjacency) position(r *run, u Vertex) (uint32, bool) {
	if hub := r.hub(); hub != 0 {
		return g.hubs.find(hub, g.entries(r), uint32(u))
	}
	for i, x := range g.entries(r) {
		if x == uint32(u) {
			return uint32(i), true
		}
	}
	return 0, false
}

// weight returns the weight of the edge {u, v}, 0 when there is none. It reads
// the shorter run.
func (g *adjacency) weight(u, v Vertex) float64 {
	r, other := &g.runs.data[u], &g.runs.data[v]
	if r.len > other.len {
		r, v = other, u
	}
	i, ok := g.position(r, v)
	if !ok {
		return 0
	}
	return g.weightAt(r.at + i)
}

func (g *adjacency) weightAt(at uint32) float64 {
	if len(g.weights.data) == 0 {
		return 1
	}
	return g.weights.data[at]
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
		r.at = g.arena.alloc(smallestClass)
		r.setClass(smallestClass)
		g.fitWeights()
	} else if r.len == 1<<r.class() {
		g.move(r, r.class()+1)
	}
	at := r.at + r.len
	g.arena.data.data[at] = uint32(u)
	if weight != 1 || len(g.weights.data) > 0 {
		g.setWeight(at, 1, weight)
	}
	r.len++
	if hub := r.hub(); hub != 0 {
		g.hubs.insert(hub, g.entries(r), r.len-1)
	} else if int(r.len) > g.hubDegree {
		r.setHub(g.hubs.add(g.entries(r)))
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
	if len(g.weights.data) == 0 {
		g.weights.resize(len(g.arena.data.data))
		for i := range g.weights.data {
			g.weights.data[i] = 1
		}
	}
	g.weights.data[at] = after
}

// fitWeights keeps the weights as long as the arena, if there are any.
func (g *adjacency) fitWeights() {
	if len(g.weights.data) > 0 {
		g.weights.resize(len(g.arena.data.data))
	}
}

// move takes a run to a block of another class, which must hold it.
func (g *adjacency) move(r *run, class uint8) {
	at := g.arena.alloc(class)
	g.fitWeights()
	copy(g.arena.data.data[at:], g.entries(r))
	if len(g.weights.data) > 0 {
		copy(g.weights.data[at:], g.weights.data[r.at:r.at+r.len])
	}
	g.arena.release(r.at, r.class())
	r.at = at
	r.setClass(class)
}

// remove takes u out of the run of v, where it must stand: the last entry takes
// its place. A block that is three quarters empty gives way to one of half its
// size, an index goes when its hub has shrunk to half of hubDegree.
func (g *adjacency) remove(v, u Vertex) {
	r := &g.runs.data[v]
	i, ok := g.position(r, u)
	if !ok {
		return
	}
	last := r.len - 1
	if hub := r.hub(); hub != 0 {
		g.hubs.remove(hub, g.entries(r), i)
	}
	g.arena.data.data[r.at+i] = g.arena.data.data[r.at+last]
	if len(g.weights.data) > 0 {
		g.setWeight(r.at+i, g.weights.data[r.at+i], 1)
		g.weights.data[r.at+i] = g.weights.data[r.at+last]
	}
	r.len--
	if hub := r.hub(); hub != 0 && int(r.len) <= g.hubDegree/2 {
		g.hubs.drop(hub)
		r.setHub(0)
	}
	switch {
	case r.len == 0:
		g.arena.release(r.at, r.class())
		r.at, r.meta = 0, 0
	case r.class() > smallestClass && r.len <= 1<<r.class()/4:
		g.move(r, r.class()-1)
	}
}

func (g *adjacency) reweigh(v, u Vertex, before, after float64) {
	r := &g.runs.data[v]
	if i, ok := g.position(r, u); ok {
		g.setWeight(r.at+i, before, after)
	}
}
