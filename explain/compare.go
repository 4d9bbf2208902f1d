package explain

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// kinds are the causes in the order in which they are listed.
var kinds = [...]string{
	quant.CauseJoined, quant.CauseLeft, quant.CausePredictions,
	quant.CauseModel, quant.CauseLabels, quant.CauseEdges,
}

// cause is a kind of change and its facts.
type cause struct {
	kind   string
	groups []group
}

// comparison sorts what differs between two states into causes.
type comparison struct {
	a, b   state
	toA    []graphstore.Vertex // by vertex of b
	inB    []bool              // by vertex of a
	weight []float64           // by vertex of a: the edge to it of the vertex at hand
	causes [len(kinds)]cause
}

// compare returns the causes that occurred between a and b.
func compare(a, b state) []cause {
	c := &comparison{
		a: a, b: b, toA: make([]graphstore.Vertex, b.view.Vertices()),
		inB: make([]bool, a.view.Vertices()), weight: make([]float64, a.view.Vertices()),
	}
	for i, kind := range kinds {
		c.causes[i].kind = kind
	}
	for v := range graphstore.Vertex(b.view.Vertices()) {
		c.toA[v] = nobody
		if !b.view.Erased(v) {
			if u := a.find(b.view.ID(v)); u != nobody {
				c.toA[v], c.inB[u] = u, true
			}
		}
	}
	for v := range graphstore.Vertex(b.view.Vertices()) {
		if !b.view.Erased(v) {
			c.vertex(b.view.ID(v), c.toA[v], v)
			c.edges(c.toA[v], v)
		}
	}
	for u := range graphstore.Vertex(a.view.Vertices()) {
		if !c.inB[u] && !a.view.Erased(u) {
			c.vertex(a.view.ID(u), u, nobody)
			c.edges(u, nobody)
		}
	}
	return slices.DeleteFunc(slices.Clone(c.causes[:]), func(c cause) bool { return len(c.groups) == 0 })
}

func (c *comparison) add(kind string, g group) {
	i := slices.Index(kinds[:], kind)
	c.causes[i].groups = append(c.causes[i].groups, g)
}

// vertex compares what the states say of one vertex, u in a and v in b.
func (c *comparison) vertex(id event.ID, u, v graphstore.Vertex) {
	times := [2]event.Time{c.a.asserted(u), c.b.asserted(v)}
	if was, is := c.a.label(u), c.b.label(v); was != is || times[before] != times[after] {
		label := [2]known{was, is}
		c.add(quant.CauseLabels, group{{kind: event.KindLabel, u: id, label: label, asserted: times}})
	}
	var moved group
	kind := ""
	was, is := c.a.member(u), c.b.member(v)
	if was != is {
		moved = group{{kind: event.KindMember, u: id, multiplicity: [2]uint32{was, is}}}
		kind = quant.CauseJoined
		if is < was {
			kind = quant.CauseLeft
		}
	}
	if said, says := c.a.prediction(u), c.b.prediction(v); !slices.Equal(said, says) {
		p := fact{kind: event.KindPrediction, u: id, units: [2][]uint32{said, says}}
		switch {
		case was == 0 && is > 0 && said == nil, was > 0 && is == 0 && says == nil:
			moved = append(moved, p)
		case c.a.version != c.b.version: // a switch replaces every prediction at once
			c.add(quant.CauseModel, group{p})
		default:
			c.add(quant.CausePredictions, group{p})
		}
	}
	if moved != nil {
		c.add(kind, moved)
	}
}

// edges compares the edges of one vertex, u in a and v in b. An edge is listed at
// its end that comes last in b, or at the only one that is there.
func (c *comparison) edges(u, v graphstore.Vertex) {
	c.a.neighbors(u, func(n graphstore.Vertex, w float64) { c.weight[n] = w })
	if v != nobody {
		c.b.neighbors(v, func(x graphstore.Vertex, w float64) {
			was, n := 0.0, c.toA[x]
			if n != nobody {
				was, c.weight[n] = c.weight[n], 0
			}
			if was != w && x < v {
				c.edge(c.b.view.ID(v), c.b.view.ID(x), was, w)
			}
		})
	}
	c.a.neighbors(u, func(n graphstore.Vertex, w float64) {
		gone := c.weight[n] != 0
		c.weight[n] = 0
		// Of an edge that is gone, a sees both ends alike; an end that b lacks is the
		// one to list it, or the later of two that are there or are not.
		if listed := c.inB[n] == (v != nobody) && n < u || c.inB[n] && v == nobody; gone && listed {
			c.edge(c.a.view.ID(u), c.a.view.ID(n), w, 0)
		}
	})
}

func (c *comparison) edge(u, v event.ID, was, is float64) {
	c.add(quant.CauseEdges, group{{kind: event.KindEdge, u: u, v: v, weight: [2]float64{was, is}}})
}
