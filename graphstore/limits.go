package graphstore

import "gqlstream/ingest/event"

// What things take at most, in bytes, in the store and in the operators above it. Vertices
// with long names take most of theirs for the name, and communities most of theirs for
// their statistics; edges and memberships are as measured while they grow, rounded up.
const (
	edgeBytes       = 32
	vertexBytes     = 512
	classBytes      = 16 // of a vertex, for each class
	membershipBytes = 64
	communityBytes  = 12 << 10
)

// LimitsOf returns the limits of a store for a machine or a container with so many bytes of
// memory: three eighths of it for edges, a quarter for vertices, an eighth each for
// communities and memberships, and the rest for everything else.
func LimitsOf(memory uint64, classes int) event.Limits {
	room := func(bytes, each uint64, most int) int {
		return int(min(max(1, bytes/each), uint64(most)))
	}
	return event.Limits{
		Edges:       room(memory/8*3, edgeBytes, EdgesMaxDefault),
		Vertices:    room(memory/4, vertexBytes+classBytes*uint64(classes), VerticesMaxDefault),
		Communities: room(memory/8, communityBytes, NamesMaxDefault),
		Memberships: room(memory/8, membershipBytes, membershipsMax),
	}
}

// Fill counts the things of a kind that there are, and that there may be.
type Fill struct {
	Kind      string
	Used, Max int
}

// Fills returns the contents and limits of the store, always the same kinds in the same order.
// Events that would go beyond a limit are refused.
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
