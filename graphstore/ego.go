package graphstore

import "gqlstream/ingest/event"

// unreached is the number of hops of a vertex beyond an ego network.
const unreached = 255

// reach places a vertex in an ego network. Its hops follow from via: one
// more than the least number with a neighbour.
type reach struct {
	hops  uint8
	dirty bool               // via changed in this batch
	via   [EgoHopsMax]uint32 // neighbours by their hops, below the radius
}

// least returns the hops that follow from via.
func (r *reach) least(radius int) uint8 {
	for hops := range radius {
		if r.via[hops] > 0 {
			return uint8(hops) + 1
		}
	}
	return unreached
}

// ego is the state of an ego network: the vertices within radius hops of the root.
//
// The radius is the largest up to the rule's at which the network has at most the
// rule's number of members, so the members are a function of the graph alone. After
// a batch the counts of via are put right for the edges that came and went, under
// the old hops; then, level by level, vertices enter and leave a level, each of
// which changes one count at each of its neighbours. So a batch costs the degrees of
// the vertices whose hops change.
type ego struct {
	root   event.ID
	vertex Vertex // of the root
	known  bool   // whether the root is a vertex

	hops, membersMax int // of the rule
	radius           int
	slack            int // edges that may go before radius+1 hops can have few enough members

	reach   map[Vertex]reach // every member; others only within a batch
	touched bool
	dirty   []Vertex

	joined, left []Vertex // by the repair at hand
	list         []Vertex // scratch of a search
}

// newEgo returns the state of an ego network that has not been searched yet.
func newEgo(r Rule) *ego {
	return &ego{
		root: event.ParseID(r.Root), hops: r.Hops, membersMax: r.egoMembersMax(), reach: map[Vertex]reach{},
	}
}

// graph gives the search of an ego network the names and the edges.
type graph struct {
	ids   *interner
	edges *adjacency
}

// applyEgos asserts the memberships in ego networks that follow from what the batch
// did to edges and to the vertices that are roots.
func (m *members) applyEgos(g graph, d *Delta) {
	if len(m.egos) == 0 {
		return
	}
	for _, change := range d.Edges {
		if (change.Before == 0) != (change.After == 0) {
			m.touchEgos(change.U, change.V, change.After != 0)
			m.touchEgos(change.V, change.U, change.After != 0)
		}
	}
	fresh := int(d.FirstVertex) < g.ids.len() || len(d.Reused) > 0
	for _, c := range m.egos {
		e := m.communities[c].ego
		switch {
		case e.known && g.ids.erased(e.vertex):
			e.known = false
			m.rebuildEgo(g, c)
		case e.known && e.touched:
			m.repairEgo(g, c)
		case !e.known && fresh:
			m.rebuildEgo(g, c)
		}
		e.touched = false
	}
}

// touchEgos puts the counts of v right in the ego networks of u, after an edge
// between them came or went.
func (m *members) touchEgos(u, v Vertex, came bool) {
	for _, membership := range m.of[u] {
		e := m.communities[membership.Community].ego
		if e == nil {
			continue
		}
		e.touched = true
		if !came {
			e.slack--
		}
		if hops := e.reach[u].hops; int(hops) < e.radius {
			e.count(v, hops, came)
		}
	}
}

// count puts one neighbour of v at a number of hops, or takes one away.
func (e *ego) count(v Vertex, hops uint8, more bool) {
	r, known := e.reach[v]
	if !known {
		r.hops = unreached
	}
	if more {
		r.via[hops]++
	} else {
		r.via[hops]--
	}
	if !r.dirty {
		r.dirty = true
		e.dirty = append(e.dirty, v)
	}
	e.reach[v] = r
}

// repairEgo follows the changed counts level by level and asserts who joins and
// who leaves.
func (m *members) repairEgo(g graph, c Community) {
	e := m.communities[c].ego
	for level := uint8(1); int(level) < e.radius; level++ {
		for i := 0; i < len(e.dirty); i++ { // grows by vertices of higher levels
			v := e.dirty[i]
			r := e.reach[v]
			is := r.least(e.radius) == level
			if v == e.vertex || is == (r.hops == level) {
				continue
			}
			for _, u := range g.edges.neighbors(v) {
				e.count(u, level, is)
			}
		}
	}
	receded := false
	for _, v := range e.dirty {
		r := e.reach[v]
		receded = receded || v != e.vertex && r.least(e.radius) > r.hops
	}
	e.finish()
	if len(e.reach) > e.membersMax || e.radius < e.hops && (receded || e.slack < 0) {
		m.rebuildEgo(g, c)
		return
	}
	m.assertAll(c, e.joined, 1)
	m.assertAll(c, e.left, 0)
}

// finish gives the dirty vertices their new hops and notes who joins and leaves.
func (e *ego) finish() {
	e.joined, e.left = e.joined[:0], e.left[:0]
	for _, v := range e.dirty {
		r := e.reach[v]
		before := r.hops
		if r.dirty = false; v != e.vertex {
			r.hops = r.least(e.radius)
		}
		if r.hops != unreached {
			e.reach[v] = r
		} else {
			delete(e.reach, v)
		}
		switch {
		case before == unreached && r.hops != unreached:
			e.joined = append(e.joined, v)
		case before != unreached && r.hops == unreached:
			e.left = append(e.left, v)
		}
	}
	e.dirty = e.dirty[:0]
}

// rebuildEgo computes an ego network from nothing and asserts its members.
func (m *members) rebuildEgo(g graph, c Community) {
	community := &m.communities[c]
	m.assertAll(c, community.vertices, 0)
	m.assertAll(c, community.ego.joined, 0)
	m.assertAll(c, community.ego.search(g), 1)
}

// search finds an ego network from its root and returns its members. It looks
// a quarter beyond the most members that it may have, to know how many edges must go
// before a further hop can fit.
func (e *ego) search(g graph) []Vertex {
	clear(e.reach)
	e.radius, e.slack = 0, 0
	e.dirty, e.joined, e.left = e.dirty[:0], e.joined[:0], e.left[:0]
	if e.vertex, e.known = g.ids.lookup(e.root); !e.known {
		return nil
	}
	e.reach[e.vertex] = reach{}
	list := append(e.list[:0], e.vertex)
	for from := 0; e.radius < e.hops; e.radius++ {
		until := len(list)
		for i := from; i < until; i++ {
			list = e.searchNeighbors(g, list, i)
		}
		if len(list) > e.membersMax {
			e.slack = len(list) - e.membersMax - 1
			for _, v := range list[until:] {
				delete(e.reach, v)
			}
			list = list[:until]
			break
		}
		from = until
	}
	e.list = list
	for _, v := range list {
		if hops := e.reach[v].hops; int(hops) < e.radius {
			for _, u := range g.edges.neighbors(v) {
				r := e.reach[u]
				r.via[hops]++
				e.reach[u] = r
			}
		}
	}
	return list
}

// searchNeighbors appends the neighbours of the i-th vertex that are not in the list.
func (e *ego) searchNeighbors(g graph, list []Vertex, i int) []Vertex {
	for _, u := range g.edges.neighbors(list[i]) {
		if len(list) > e.membersMax+e.membersMax/4 {
			break
		}
		if _, in := e.reach[u]; !in {
			e.reach[u] = reach{hops: uint8(e.radius) + 1}
			list = append(list, u)
		}
	}
	return list
}
