package explain

import (
	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// fact is what differs between the two states about one thing, with what it was
// before and is after. Kind says which fields count.
type fact struct {
	kind event.Kind // edge, label, prediction or member
	u, v event.ID   // v: the other end of an edge

	weight       [2]float64 // 0: no edge
	label        [2]known
	asserted     [2]event.Time // of the label, where labels age
	units        [2][]uint32   // nil: no prediction
	multiplicity [2]uint32
}

// known is the label of a vertex, of whatever role.
type known struct {
	graphstore.Label
	drawn graphstore.Audit // when it is an audit label
}

// nothingKnown is the knowledge of most vertices: none.
var nothingKnown = known{graphstore.Label{Class: event.NoClass}, graphstore.Audit{Class: event.NoClass}}

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
		l := event.Label{Vertex: f.u, Class: f.label[side].Class, Role: f.label[side].Role, Time: f.asserted[side]}
		if drawn := f.label[side].drawn; drawn.Class != event.NoClass {
			l.Class, l.Role, l.Pi = drawn.Class, event.Audit, drawn.Pi
		}
		b.Labels = append(b.Labels, l)
	case event.KindPrediction:
		b.Predictions = append(b.Predictions, event.Prediction{Vertex: f.u, Units: f.units[side]})
	case event.KindMember:
		b.Members = append(b.Members, event.Member{
			Community: community, Vertex: f.u, Multiplicity: f.multiplicity[side],
		})
	}
}

// group is the facts that are taken together when one change is looked at alone: a
// fact, or a member with the prediction that came or went with it.
type group []fact

// state is one state of the graph as the comparison reads it.
type state struct {
	view         graphstore.View
	version      string   // of the model that made all the predictions that events asserted
	multiplicity []uint32 // n: in the community
}

// read returns the state of a view for one community.
func read(view graphstore.View, community graphstore.Community) state {
	s := state{view: view, multiplicity: make([]uint32, view.Vertices())}
	if active, known := view.ActiveVersion(); known {
		s.version = view.Versions()[active]
	}
	view.ForMembers(community, func(v graphstore.Vertex, multiplicity uint32) { s.multiplicity[v] = multiplicity })
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

func (s *state) label(v graphstore.Vertex) known {
	if v == nobody {
		return nothingKnown
	}
	return known{s.view.Label(v), s.view.Audit(v)}
}

// asserted returns when the label of v was asserted last, where labels age.
func (s *state) asserted(v graphstore.Vertex) event.Time {
	if v == nobody {
		return 0
	}
	return s.view.LabelTime(v)
}

// prediction returns a copy of what an event said of v; what a built-in classifier
// says follows from other facts.
func (s *state) prediction(v graphstore.Vertex) []uint32 {
	if v == nobody {
		return nil
	}
	units := s.view.Prediction(v)
	if units == nil || graphstore.IsDerived(s.view.Versions()[s.view.Version(v)]) {
		return nil
	}
	return append([]uint32(nil), units...)
}

func (s *state) member(v graphstore.Vertex) uint32 {
	if v == nobody {
		return 0
	}
	return s.multiplicity[v]
}

// neighbors visits the neighbours of v and the weights of their edges.
func (s *state) neighbors(v graphstore.Vertex, visit func(graphstore.Vertex, float64)) {
	if v == nobody {
		return
	}
	for u, weight := range s.view.EdgesOf(v) {
		visit(u, weight)
	}
}
