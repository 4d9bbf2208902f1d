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

// edges are the edges of the graph and their end times.
type edges struct {
	adjacency
	ends   ends          // by edgeKeyOf
	window time.Duration // how long an edge lasts that has no time to live; 0 is for ever
	most   int           // edges at most

	asserted []entry    // of the batch: edges, then the vertices of changed edges
	mentions []postEdge // of the batch: edges that posts assert
	// result of reads that nothing uses, so that the compiler keeps them
	read uint64
}

// resetBatch empties the per-batch state.
func (g *edges) resetBatch() {
	g.asserted, g.mentions = emptied(g.asserted), emptied(g.mentions)
}

// postEdge is an edge that a post asserts.
type postEdge struct {
	key  uint64
	post uint32 // of the batch
	end  event.Time
}

// mention records that a post asserts the edge of that key, until a time.
func (g *edges) mention(key uint64, post uint32, end event.Time) {
	g.mentions = append(g.mentions, postEdge{key, post, end})
}

// edgeKeyOf packs an edge into a key that sorts as Delta.Edges does.
func edgeKeyOf(u, v Vertex) uint64 { return pair(uint32(min(u, v)), uint32(max(u, v))) }

// endpointsOf returns the two vertices of the edge of a key.
func endpointsOf(key uint64) (u, v Vertex) {
	high, low := unpair(key)
	return Vertex(high), Vertex(low)
}

// assert records that edge event at is about the edge of that key.
func (g *edges) assert(key uint64, at uint32) { g.asserted = append(g.asserted, entry{key, at}) }

// leave asserts that v has no edges.
func (g *edges) leave(v Vertex) {
	for _, u := range g.Neighbors(v) {
		g.assert(edgeKeyOf(u, v), absent)
	}
}

// readAhead is how many edges are read before they are needed, see warm: few enough to be in the
// first processor caches still when they are.
const readAhead = 32

// apply applies the last event of each edge, removes edges that end now, and lists the changed
// edges and their end vertices.
func (g *edges) apply(p *step) {
	g.asserted = p.lastOfEach(g.asserted)
	for i, e := range g.asserted {
		if i%readAhead == 0 {
			g.read += g.warm(g.asserted[i:min(len(g.asserted), i+readAhead)])
		}
		if e.at != absent {
			g.applyEvent(p, e)
			continue
		}
		g.ends.clear(e.key)
		g.change(p, e.key, 0)
	}
	g.applyMentions(p)
	if ended := g.ends.due(p.endsBy, g.asserted[:0]); len(ended) > 0 {
		for _, e := range ended {
			g.change(p, e.key, 0)
		}
		g.asserted = ended
		slices.SortFunc(p.delta.Edges, compareEdges)
	}
	g.listEndpoints(p)
}

// applyMentions sets the edges that posts assert. An existing edge keeps its weight and its end if
// they are greater, so posts may come in any order. A post is refused whole if the edge limit
// leaves no space for one of its edges.
func (g *edges) applyMentions(p *step) {
	if len(g.mentions) == 0 {
		return
	}
	slices.SortStableFunc(g.mentions, func(a, b postEdge) int { return cmp.Compare(a.key, b.key) })
	explicit := len(p.delta.Edges)
	for _, m := range g.mentions {
		if slices.Contains(p.overLimitPosts, m.post) {
			continue
		}
		weight := g.weight(endpointsOf(m.key))
		end := m.end
		if weight > 0 {
			held, limited := g.ends.at[m.key]
			if end = max(end, held); !limited {
				end = forever
			}
		}
		if !g.change(p, m.key, max(weight, p.batch.Posts[m.post].Weight)) {
			p.refuse(event.KindPost, int(m.post), event.LimitExceeded, "edges")
			p.overLimitPosts = append(p.overLimitPosts, m.post)
			continue
		}
		g.ends.set(m.key, end)
	}
	if len(p.delta.Edges) > explicit {
		p.delta.Edges = netEdges(p.delta.Edges)
	}
}

// netEdges sorts changes and merges those of one edge, which are in the order of events.
func netEdges(changes []EdgeChange) []EdgeChange {
	slices.SortStableFunc(changes, compareEdges)
	net := changes[:0]
	for _, c := range changes {
		last := len(net) - 1
		if last >= 0 && compareEdges(net[last], c) == 0 {
			net[last].After = c.After
			continue
		}
		if last >= 0 && net[last].Before == net[last].After {
			net = net[:last]
		}
		net = append(net, c)
	}
	if last := len(net) - 1; last >= 0 && net[last].Before == net[last].After {
		net = net[:last]
	}
	return net
}

// compareEdges orders changes by their edges.
func compareEdges(a, b EdgeChange) int {
	return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V))
}

// applyEvent applies the last edge event of a key.
func (g *edges) applyEvent(p *step, entry entry) {
	e := &p.batch.Edges[entry.at]
	weight, end := e.Weight, p.endOf(e.Time, e.TTL, g.window)
	if e.Remove || end <= p.endsBy { // it is removed, or has ended already
		weight, end = 0, forever
	}
	if !g.change(p, entry.key, weight) {
		p.refuse(event.KindEdge, int(entry.at), event.LimitExceeded, "edges")
		return
	}
	g.ends.set(entry.key, end)
}

// change gives an edge a weight, 0 to remove it, and lists the change. It reports false if the
// graph is full.
func (g *edges) change(p *step, key uint64, after float64) bool {
	u, v := endpointsOf(key)
	before := g.weight(u, v)
	if before == after {
		return true
	}
	if before == 0 && g.edges >= g.most || g.weightSum+2*(after-before) > weightSumMax {
		return false
	}
	g.set(u, v, before, after)
	p.delta.Edges = append(p.delta.Edges, EdgeChange{U: u, V: v, Before: before, After: after})
	return true
}

// listEndpoints lists the vertices of the edges that changed.
func (g *edges) listEndpoints(p *step) {
	d, found := &p.delta, g.asserted[:0]
	for i := range d.Edges {
		found = append(found, entry{key: uint64(d.Edges[i].U)}, entry{key: uint64(d.Edges[i].V)})
	}
	g.asserted = p.lastOfEach(found)
	for _, e := range g.asserted {
		d.Endpoints = append(d.Endpoints, Vertex(e.key))
	}
}
