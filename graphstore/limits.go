package graphstore

import "gqlstream/ingest/event"

// Bytes that the store and the operators above it need for each element, as measured while they
// grow, rounded up. For vertices with long names most of this is the name; for communities most of
// it is statistics.
const (
	edgeBytes       = 32
	vertexBytes     = 512
	classBytes      = 16 // of a vertex, for each class
	membershipBytes = 64
	communityBytes  = 12 << 10
)

// LimitsOf returns the limits of a store for a machine or container with that many bytes of memory:
// three eighths for edges, a quarter for vertices, an eighth each for communities and memberships,
// the rest for everything else.
func LimitsOf(memory uint64, classes int) event.Limits {
	atMost := func(bytes, each uint64, most int) int {
		return int(min(max(1, bytes/each), uint64(most)))
	}
	return event.Limits{
		Edges:       atMost(memory/8*3, edgeBytes, EdgesMaxDefault),
		Vertices:    atMost(memory/4, vertexBytes+classBytes*uint64(classes), VerticesMaxDefault),
		Communities: atMost(memory/8, communityBytes, NamesMaxDefault),
		Memberships: atMost(memory/8, membershipBytes, membershipsMax),
	}
}

// Fill counts the elements of a kind, and how many there may be.
type Fill struct {
	Kind      string
	Used, Max int
}

// Fills returns the contents and limits of the store, in a fixed order. Events beyond a limit are
// refused.
func (w View) Fills() []Fill {
	s, c := w.s, &w.s.config
	return []Fill{
		{"vertices", w.Present(), c.Limits.Vertices},
		{"edges", w.Edges(), c.Limits.Edges},
		{"communities", w.Communities(), c.Limits.Communities},
		{"memberships", s.members.total + s.members.egoMembers, c.Limits.Memberships},
		{"versions", len(s.labelling.versions.names), c.versionsMax},
		{"attributes", len(s.attributes), c.attributesMax},
	}
}
