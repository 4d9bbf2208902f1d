package graphstore

import (
	"cmp"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// weightSumMax bounds the sum of all degrees: below it every sum of weights is a
// multiple of event.WeightUnit that a float64 holds exactly.
const weightSumMax = 1 << 33

// edges are the edges of the graph, and when those end that have a time to live.
type edges struct {
	adjacency
	ends   ends          // by edgeKeyOf
	window time.Duration // how long an edge holds that does not say; 0 is for ever
	most   int           // edges at most

	asserted, touched []entry        // of the batch: edges, and vertices in order of first change
	degrees           []DegreeChange // of the touched vertices
	read              uint64         // keeps the compiler from leaving out reads whose values nobody uses
}

// begin empties what is kept of a batch.
func (g *edges) begin() {
	g.asserted, g.touched, g.degrees = emptied(g.asserted), emptied(g.touched), emptied(g.degrees)
}

// edgeKeyOf packs an edge into a key that sorts as Delta.Edges does.
func edgeKeyOf(u, v Vertex) uint64 { return pair(uint32(min(u, v)), uint32(max(u, v))) }

// assert says that edge event at is about the edge of that key.
func (g *edges) assert(key uint64, at uint32) { g.asserted = append(g.asserted, entry{key, at}) }

// leave asserts that v has no edges.
func (g *edges) leave(v Vertex) {
	for _, u := range g.Neighbors(v) {
		g.assert(edgeKeyOf(u, v), fromErasure)
	}
}

// readAhead counts the edges that are read before they are needed, see glance: few
// enough that they are still in the processor's first caches when they are.
const readAhead = 32

// apply sets the edges that stand, ends those whose time has come, and lists edges and
// degrees that changed.
func (g *edges) apply(p *step) {
	g.asserted = p.standing(g.asserted)
	for i, e := range g.asserted {
		if i%readAhead == 0 {
			g.read += g.warm(g.asserted[i:min(len(g.asserted), i+readAhead)])
		}
		if e.at != fromErasure {
			g.applyEvent(p, e)
			continue
		}
		g.ends.clear(e.key)
		g.change(p, e.key, 0)
	}
	if ended := g.ends.due(p.now, g.asserted[:0]); len(ended) > 0 {
		for _, e := range ended {
			g.change(p, e.key, 0)
		}
		g.asserted = ended
		slices.SortFunc(p.delta.Edges, compareEdges)
	}
	g.listDegrees(p)
}

// compareEdges orders changes by their edges.
func compareEdges(a, b EdgeChange) int {
	return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V))
}

// applyEvent applies the edge event that stands for its key.
func (g *edges) applyEvent(p *step, entry entry) {
	e := &p.batch.Edges[entry.at]
	weight, end := e.Weight, endOf(e.Time, p.now, e.TTL, g.window)
	if e.Remove || end <= p.now { // it is gone, or has ended already
		weight, end = 0, forever
	}
	if !g.change(p, entry.key, weight) {
		p.refuse(event.KindEdge, int(entry.at), event.LimitExceeded, "edges")
		return
	}
	g.ends.set(entry.key, end)
}

// change gives an edge a weight, 0 to remove it, and lists the change. It reports
// whether there was room.
func (g *edges) change(p *step, key uint64, after float64) bool {
	high, low := unpair(key)
	u, v := Vertex(high), Vertex(low)
	before := g.weight(u, v)
	if before == after {
		return true
	}
	if before == 0 && g.edges >= g.most || g.weightSum+2*(after-before) > weightSumMax {
		return false
	}
	g.touch(u)
	g.touch(v)
	g.set(u, v, before, after)
	p.delta.Edges = append(p.delta.Edges, EdgeChange{U: u, V: v, Before: before, After: after})
	return true
}

// touch remembers the degree of v before its first change.
func (g *edges) touch(v Vertex) {
	r := &g.runs.data[v]
	if r.mark != 0 {
		return
	}
	g.touched = append(g.touched, entry{uint64(v), uint32(len(g.degrees))})
	g.degrees = append(g.degrees, DegreeChange{V: v, Before: r.degree, NeighborsBefore: int(r.len)})
	r.mark = uint32(len(g.degrees))
}

// listDegrees lists the degrees of the touched vertices, sorted, and unmarks them.
func (g *edges) listDegrees(p *step) {
	g.touched, p.scratch = sortEntries(g.touched, p.scratch)
	for _, e := range g.touched {
		change := g.degrees[e.at]
		r := &g.runs.data[change.V]
		r.mark = 0
		change.After, change.NeighborsAfter = r.degree, int(r.len)
		p.delta.Degrees = append(p.delta.Degrees, change)
	}
}
