package graphstore

import (
	"slices"

	"gqlstream/ingest/event"
)

// fromErasure marks an assertion that is not in the batch: an erasure or an
// expiry, which sets its subject to nothing.
const fromErasure = ^uint32(0)

// work is the scratch memory of Apply, kept between calls.
type work struct {
	edges, labels, predictions, pending, members, scratch []entry

	multiplicities []uint32 // what entry.at of members points to
	joining        uint64   // what the batch's member events assert together
	touched        []entry  // vertices with a changed degree, in order of change
	degrees        []DegreeChange
	units          []uint32 // backing of PredictionChange.Before
	listed         []PredictionChange
	refused        []event.Refusal
	originals      []byte // backing of Refusal.Original
}

// Apply applies the events of a batch and returns what changed, and what was
// refused. Order: vertices, edges, labels, predictions, members; edges, labels and
// predictions whose time has run out at b.Time end after what the batch says of
// their kind. Of several assertions about one thing the last stands, whatever their
// times, so a batch costs what it changes. Both results are valid until the next
// Apply; strings of the batch are not kept.
//
// A refused event changes nothing. Assertions that something is absent (an edge
// removed, a label or prediction withdrawn, a member leaving) do not create the vertices and
// communities they name. An erased vertex loses its edges, label, prediction,
// attributes, memberships and name; its index is free from the next Apply on.
func (s *Store) Apply(b *event.Batch) (*Delta, []event.Refusal) {
	s.compact()
	s.begin(b.Last, b.Time)
	s.applyVertices(b)
	s.applyEdges(b)
	s.applyLabels(b)
	s.applyPredictions(b)
	s.applyMembers(b)
	for _, v := range s.delta.Erased {
		s.ids.recycle(v)
	}
	slices.Sort(s.delta.Erased)
	slices.Sort(s.delta.Reused)
	return &s.delta, s.work.refused
}

// begin empties the delta and the scratch memory.
func (s *Store) begin(position event.Position, time event.Time) {
	s.time = max(s.time, time)
	d, w := &s.delta, &s.work
	*d = Delta{
		Position: position, Time: s.time,
		FirstVertex:    Vertex(len(s.classes.data)),
		FirstCommunity: Community(len(s.members.communities)),
		Erased:         d.Erased[:0], Reused: d.Reused[:0],
		Edges: d.Edges[:0], Degrees: d.Degrees[:0], Labels: d.Labels[:0],
		Predictions: d.Predictions[:0], Members: d.Members[:0],
	}
	w.edges, w.labels = w.edges[:0], w.labels[:0]
	w.predictions, w.pending, w.members = w.predictions[:0], w.pending[:0], w.members[:0]
	w.multiplicities, w.touched, w.degrees = w.multiplicities[:0], w.touched[:0], w.degrees[:0]
	w.joining = 0
	w.units = w.units[:0]
	clear(w.refused)
	w.refused, w.originals = w.refused[:0], w.originals[:0]
}

// vertex returns the index of id, given one now if need be, or why it gets none.
func (s *Store) vertex(id event.ID) (Vertex, event.Reason) {
	full := len(s.classes.data) >= s.config.VerticesMax && len(s.ids.free) == 0
	if full || !s.roomForMatchNone(1) {
		if v, known := s.ids.lookup(id); known {
			return v, ""
		}
		return 0, event.LimitExceeded
	}
	if len(id.Name) > IDBytesMax {
		return 0, event.BadID
	}
	free := len(s.ids.free)
	v := s.ids.intern(id)
	switch {
	case int(v) == len(s.classes.data):
		s.grow(int(v) + 1)
	case len(s.ids.free) < free:
		s.delta.Reused = append(s.delta.Reused, v)
	default:
		return v, ""
	}
	for _, c := range s.members.rules.matchNone {
		s.assertMember(c, v, 1)
	}
	return v, ""
}

// roomForMatchNone reports whether n new vertices may become members of the
// communities that hold a vertex without attributes.
func (s *Store) roomForMatchNone(n int) bool {
	joins := len(s.members.rules.matchNone)
	return joins == 0 || s.roomForMembers(n*joins)
}

// grow makes room for n vertices in every column.
func (s *Store) grow(n int) {
	s.adj.runs.resize(n)
	s.members.runs.resize(n)
	s.classes.resize(n)
	s.classes.data[n-1] = int32(event.NoClass)
	s.roles.resize(n)
	if s.config.LabelTimes {
		s.times.resize(n)
	}
	s.units.resize(n * s.config.Classes)
	s.version.resize(n)
	s.version.data[n-1] = noVersion
	if s.models.incoming != noVersion {
		s.models.pending.resize(n * s.config.Classes)
	}
}

// subject returns the vertex that an event is about. It creates the vertex when
// the event asserts something present, and refuses the event when it cannot.
func (s *Store) subject(
	b *event.Batch, kind event.Kind, i int, id event.ID, present bool,
) (Vertex, bool) {
	if !present {
		return s.ids.lookup(id)
	}
	v, reason := s.vertex(id)
	if reason != "" {
		s.refuse(b, kind, i, reason, "vertex")
	}
	return v, reason == ""
}
