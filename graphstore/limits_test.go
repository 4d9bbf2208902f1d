package graphstore

import (
	"slices"
	"testing"

	"gqlstream/ingest/event"
)

// Limits must grow with the memory, not exceed the bounds of a store, cost no more than the
// memory together, and leave configured limits unchanged.
func TestLimitsFollowTheMemory(t *testing.T) {
	last := event.Limits{}
	for _, memory := range []uint64{1, 512 << 20, 4 << 30, 24 << 30, 1 << 40, 1 << 60} {
		c := LimitsOf(memory, 10)
		config := Config{Classes: 10, Limits: c}
		if err := config.Validate(); err != nil {
			t.Errorf("%d bytes: %v", memory, err)
		}
		if c.Edges < last.Edges || c.Vertices < last.Vertices || c.Communities < last.Communities ||
			c.Memberships < last.Memberships {
			t.Errorf("%d bytes allow less than fewer do: %+v, %+v", memory, c, last)
		}
		takes := uint64(c.Edges)*edgeBytes + uint64(c.Vertices)*(vertexBytes+10*classBytes) +
			uint64(c.Communities)*communityBytes + uint64(c.Memberships)*membershipBytes
		if memory > 1<<20 && takes > memory {
			t.Errorf("%d bytes: what may be held takes %d", memory, takes)
		}
		last = c
	}
}

// A full store must refuse one more of each kind, with the reason, and go on with its
// contents. A limit below the present contents must remove nothing.
func TestAFullStoreRefusesOneMore(t *testing.T) {
	number := event.NumberID
	s := newTestStore(t, Config{})
	s.Limit(event.Limits{Vertices: 3, Edges: 2, Communities: 1, Memberships: 2})
	fill := func(position event.Position) (list []event.Refusal) {
		for _, batch := range []event.Batch{
			{Edges: []event.Edge{
				{Src: number(1), Dst: number(2), Weight: 1},
				{Src: number(2), Dst: number(3), Weight: 1},
				{Src: number(1), Dst: number(3), Weight: 1},
				{Src: number(1), Dst: number(4), Weight: 1},
			}},
			{Members: []event.Member{{Community: "c", Vertex: number(1), Multiplicity: 1}}},
			{Members: []event.Member{{Community: "c", Vertex: number(2), Multiplicity: 1}}},
			{Members: []event.Member{{Community: "c", Vertex: number(3), Multiplicity: 1}}},
			{Members: []event.Member{{Community: "d", Vertex: number(1), Multiplicity: 1}}},
		} {
			batch.First, batch.Last = position, position
			_, refused := s.Apply(&batch)
			list = append(list, refused...)
			position++
		}
		return list
	}
	refused := fill(1)
	if len(refused) != 4 {
		t.Errorf("refused %+v", refused)
	}
	s.Limit(event.Limits{Edges: 1}) // which is less than there are
	refused = append(refused, fill(6)...)
	if slices.ContainsFunc(
		refused,
		func(r event.Refusal) bool { return r.Reason != event.LimitExceeded },
	) {
		t.Errorf("refused %+v", refused)
	}
	for i, want := range []Fill{
		{"vertices", 3, 3},
		{"edges", 2, 1},
		{"communities", 1, 1},
		{"memberships", 2, 2},
	} {
		if got := s.View().Fills()[i]; got != want {
			t.Errorf("fill %+v, want %+v", got, want)
		}
	}
}
