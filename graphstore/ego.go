package graphstore

import (
	"slices"

	"gqlstream/ingest/event"
)

// ego is the state of an ego network: the vertices within radius hops of the root.
//
// The radius is the largest one, up to the rule's hops, at which the network has at most the rule's
// number of members, so the members depend on the graph alone. If a batch may have moved a vertex
// nearer to the root or further from it, the whole network is searched again; other changes of
// edges cost two look-ups.
type ego struct {
	root   event.ID
	vertex Vertex // of the root, as of the last search
	known  bool   // whether the root existed then

	hops, membersMax int // of the rule
	radius           int
	// edges that may be removed before radius+1 hops can have few enough members
	slack int

	distances map[Vertex]int // by member: hops from the root
	moved     bool           // whether the batch may have changed the members
	list      []Vertex       // scratch of a search
}

// newEgo returns the state of an ego network that has not been searched yet.
func newEgo(r Rule) *ego {
	return &ego{
		root:       event.ParseID(r.Root),
		hops:       r.Hops,
		membersMax: r.egoMembersMax(),
		distances:  map[Vertex]int{},
	}
}

// graph gives the search of an ego network access to names and edges.
type graph struct {
	ids   *ids
	edges *adjacency
}

// applyEgos asserts the changes of ego networks that follow from the batch's changes of edges and
// of roots.
func (m *members) applyEgos(g graph, d *Delta) {
	if len(m.egos) == 0 {
		return
	}
	for _, change := range d.Edges {
		if (change.Before == 0) != (change.After == 0) {
			m.touchEgos(g, change.U, change.V, change.After != 0)
			m.touchEgos(g, change.V, change.U, change.After != 0)
		}
	}
	for _, c := range m.egos {
		e := m.communities[c].ego
		if v, known := g.ids.Lookup(e.root); e.moved || v != e.vertex || known != e.known {
			m.rebuildEgo(g, c)
		}
	}
}

// touchEgos marks the ego networks of u that an edge added or removed between u and v may change: v
// may now be nearer through u, or u may have been its only neighbour nearer to the root.
func (m *members) touchEgos(g graph, u, v Vertex, came bool) {
	for _, membership := range m.of[u] {
		e := m.communities[membership.Community].ego
		if e == nil || e.moved {
			continue
		}
		at := e.distances[u]
		to, within := e.distances[v]
		if came {
			e.moved = at < e.radius && (!within || to > at+1)
			continue
		}
		e.slack--
		e.moved = e.slack < 0 && e.radius < e.hops || within && to == at+1 && !e.borders(g, v, at)
	}
}

// borders reports whether v has a neighbour at that number of hops.
func (e *ego) borders(g graph, v Vertex, hops int) bool {
	return slices.ContainsFunc(g.edges.Neighbors(v), func(u Vertex) bool {
		at, within := e.distances[u]
		return within && at == hops
	})
}

// rebuildEgo searches an ego network and asserts its members.
func (m *members) rebuildEgo(g graph, c Community) {
	community := &m.communities[c]
	m.assertAll(c, community.vertices, 0)
	m.assertAll(c, community.ego.search(g), 1)
}

// search finds an ego network from its root and returns its members. It searches a quarter beyond
// the member limit, to learn how many edges must be removed before a further hop can fit.
func (e *ego) search(g graph) []Vertex {
	clear(e.distances)
	e.radius, e.slack, e.moved = 0, 0, false
	if e.vertex, e.known = g.ids.Lookup(e.root); !e.known {
		return nil
	}
	e.distances[e.vertex] = 0
	list := append(e.list[:0], e.vertex)
	for from := 0; e.radius < e.hops; e.radius++ {
		until := len(list)
		for i := from; i < until; i++ {
			list = e.searchNeighbors(g, list, i)
		}
		if len(list) > e.membersMax {
			e.slack = len(list) - e.membersMax - 1
			for _, v := range list[until:] {
				delete(e.distances, v)
			}
			list = list[:until]
			break
		}
		from = until
	}
	e.list = list
	return list
}

// searchNeighbors appends the neighbours of the i-th vertex that are not in the list.
func (e *ego) searchNeighbors(g graph, list []Vertex, i int) []Vertex {
	for _, u := range g.edges.Neighbors(list[i]) {
		if len(list) > e.membersMax+e.membersMax/4 {
			break
		}
		if _, in := e.distances[u]; !in {
			e.distances[u] = e.radius + 1
			list = append(list, u)
		}
	}
	return list
}
