package explain

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// kinds are the causes, in the order of the output.
var kinds = [...]string{
	quant.CauseJoined, quant.CauseLeft, quant.CausePredictions,
	quant.CauseModel, quant.CauseLabels, quant.CauseEdges, quant.CauseAttributes,
}

// cause is a kind of change and its facts; coefficients and gamma of auto have no facts.
type cause struct {
	kind    string
	groups  []group
	details []quant.Detail
}

// comparison finds the differences between two states.
type comparison struct {
	a, b   state
	toA    []graphstore.Vertex // by vertex of b
	inB    []bool              // by vertex of a
	weight []float64           // by vertex of a: the edge to it of the vertex at hand
	keys   []string            // of the attributes of both
	take   func(kind string, g group)
}

// causesOf returns the causes that occurred between a and b.
func causesOf(a, b state) []cause {
	var causes [len(kinds)]cause
	for i, kind := range kinds {
		causes[i].kind = kind
	}
	compare(a, b, func(kind string, g group) {
		i := slices.Index(kinds[:], kind)
		causes[i].groups = append(causes[i].groups, g)
	})
	return slices.DeleteFunc(causes[:], func(c cause) bool { return len(c.groups) == 0 })
}

// compare calls take for each change between a and b, with the kind of its cause. Where a is empty,
// take may fill it.
func compare(a, b state, take func(kind string, g group)) {
	c := &comparison{
		a: a, b: b, take: take,
		toA:    make([]graphstore.Vertex, b.view.Vertices()),
		inB:    make([]bool, a.view.Vertices()),
		weight: make([]float64, a.view.Vertices()),
		keys:   slices.Concat(a.view.EvidenceAttributes(), b.view.EvidenceAttributes()),
	}
	slices.Sort(c.keys)
	c.keys = slices.Compact(c.keys)
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
	for i, there := range c.inB {
		if u := graphstore.Vertex(i); !there && !a.view.Erased(u) {
			c.vertex(a.view.ID(u), u, nobody)
			c.edges(u, nobody)
		}
	}
}

// vertex compares one vertex in both states, u in a and v in b.
func (c *comparison) vertex(id event.ID, u, v graphstore.Vertex) {
	f := fact{u: id, about: [2]about{c.a.about(u), c.b.about(v)}}
	was, is := &f.about[before], &f.about[after]
	of := func(kind event.Kind) fact { f.kind = kind; return f }
	if was.label != is.label || slices.Equal(was.units, is.units) && !was.pair.Same(is.pair) {
		c.take(quant.CauseLabels, group{of(event.KindLabel)})
	}
	var moved group
	kind := quant.CauseJoined
	if was.multiplicity != is.multiplicity {
		moved = group{of(event.KindMember)}
		if is.multiplicity < was.multiplicity {
			kind = quant.CauseLeft
		}
	}
	if !slices.Equal(was.units, is.units) || was.rests != is.rests {
		p := of(event.KindPrediction)
		switch {
		case was.multiplicity == 0 && is.multiplicity > 0 && was.units == nil,
			was.multiplicity > 0 && is.multiplicity == 0 && is.units == nil:
			moved = append(moved, p)
		case c.a.version != c.b.version: // a switch replaces every prediction at once
			c.take(quant.CauseModel, group{p})
		default:
			c.take(quant.CausePredictions, group{p})
		}
	}
	if moved != nil {
		c.take(kind, moved)
	}
	for _, key := range c.keys {
		if was, is := c.a.attribute(u, key), c.b.attribute(v, key); was != is {
			f.values = append(f.values, attribute{key, [2]event.Value{was, is}})
		}
	}
	if len(f.values) > 0 {
		c.take(quant.CauseAttributes, group{of(event.KindVertex)})
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
	c.take(quant.CauseEdges, group{{kind: event.KindEdge, u: u, v: v, weight: [2]float64{was, is}}})
}

// fact is one difference between the two states, with the values before and after. Kind selects the
// fields that matter.
type fact struct {
	kind event.Kind // edge, label, prediction, member or vertex
	u, v event.ID   // v: the other end of an edge

	weight [2]float64 // of an edge; 0: there is none
	about  [2]about   // of a vertex
	values []attribute
}

// attribute is an attribute that differs, and its values before and after.
type attribute struct {
	key    string
	values [2]event.Value
}

// about has the facts of a vertex in a state.
type about struct {
	label known
	// of its prediction by an event; nil: none. Predictions of a built-in classifier follow from
	// other facts
	units        []uint32
	rests        graphstore.Evidence
	multiplicity uint32 // in the community
	pair         *pairs.Pair
}

// known is the label of a vertex, of any role.
type known struct {
	graphstore.Label
	drawn    graphstore.Audit // when it is an audit label
	asserted event.Time       // last, where labels age
}

// nothingKnown is the knowledge of most vertices: none.
var nothingKnown = known{
	Label: graphstore.Label{Class: event.NoClass},
	drawn: graphstore.Audit{Class: event.NoClass},
}

// The two sides of a fact.
const (
	before = 0
	after  = 1
)

// assert adds the event that makes one side of the fact true to a batch. Versions of
// predictions are left out: the store would keep those of two versions apart.
func (f *fact) assert(b *event.Batch, community string, side int) {
	switch f.kind {
	case event.KindEdge:
		w := f.weight[side]
		b.Edges = append(b.Edges, event.Edge{Src: f.u, Dst: f.v, Weight: w, Remove: w == 0})
	case event.KindLabel:
		is := f.about[side].label
		l := event.Label{Vertex: f.u, Class: is.Class, Role: is.Role, Time: is.asserted}
		if drawn := is.drawn; drawn.Class != event.NoClass {
			l.Class, l.Role, l.Pi = drawn.Class, event.Audit, drawn.Pi
		}
		b.Labels = append(b.Labels, l)
	case event.KindPrediction:
		b.Predictions = append(
			b.Predictions,
			event.Prediction{
				Vertex: f.u, Units: f.about[side].units, Rests: f.about[side].rests,
			},
		)
	case event.KindMember:
		b.Members = append(b.Members, event.Member{
			Community: community, Vertex: f.u, Multiplicity: f.about[side].multiplicity,
		})
	case event.KindVertex:
		v := event.Vertex{Vertex: f.u}
		for _, a := range f.values {
			v.Attributes = append(v.Attributes, event.Attribute{
				Key: a.key, Value: a.values[side],
			})
		}
		b.Vertices = append(b.Vertices, v)
	}
}

// group is the facts that are taken together when one change is looked at alone: a
// fact, or a member with the prediction that came or went with it.
type group []fact

// state is one state of the graph as the comparison reads it.
type state struct {
	view         graphstore.View
	core         *incremental.Core
	version      string   // of the model that made all the predictions that events asserted
	multiplicity []uint32 // n: in the community
}

// read returns the state of a core for one community.
func read(core *incremental.Core, community graphstore.Community) state {
	view := core.View()
	s := state{view: view, core: core, multiplicity: make([]uint32, view.Vertices())}
	if active, known := view.ActiveVersion(); known {
		s.version = view.Versions()[active]
	}
	view.ForMembers(
		community,
		func(v graphstore.Vertex, multiplicity uint32) { s.multiplicity[v] = multiplicity },
	)
	return s
}

// nobody is a vertex that the state does not have.
const nobody = ^graphstore.Vertex(0)

// find returns the vertex of a name, or nobody.
func (s *state) find(id event.ID) graphstore.Vertex {
	if v, known := s.view.Lookup(id); known {
		return v
	}
	return nobody
}

// about returns the facts of a vertex, which may not exist. Lists are copies.
func (s *state) about(v graphstore.Vertex) about {
	if v == nobody {
		return about{label: nothingKnown}
	}
	out := about{
		label:        known{Label: s.view.Label(v), drawn: s.view.Audit(v)},
		multiplicity: s.multiplicity[v],
		pair:         s.core.Pair(v),
	}
	if s.core.LabelsAge() {
		out.label.asserted = s.view.LabelTime(v)
	}
	if units := s.view.Prediction(v); units != nil &&
		!graphstore.IsDerived(s.view.Versions()[s.view.Version(v)]) {
		out.units, out.rests = slices.Clone(units), s.view.Evidence(v)
	}
	return out
}

// attribute returns the value of an attribute of a vertex, which may not exist.
func (s *state) attribute(v graphstore.Vertex, key string) event.Value {
	if v == nobody {
		return event.Value{}
	}
	return s.view.Attribute(v, key)
}

// of returns the facts of the vertex with a name.
func (s *state) of(id event.ID) about { return s.about(s.find(id)) }

// neighbors visits the neighbours of v and the weights of their edges.
func (s *state) neighbors(v graphstore.Vertex, visit func(graphstore.Vertex, float64)) {
	if v == nobody {
		return
	}
	for u, weight := range s.view.EdgesOf(v) {
		visit(u, weight)
	}
}
