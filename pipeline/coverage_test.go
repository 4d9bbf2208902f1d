package pipeline

import (
	"maps"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// The status must say how many vertices have labels, predictions and communities, and how many of
// these have an edge, of the graph as it stands.
func TestEvidenceIsCounted(t *testing.T) {
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	id := event.NumberID
	half := []uint32{event.One / 2, event.One / 2}
	apply := func(b *event.Batch) {
		t.Helper()
		if _, refused := store.Apply(b); len(refused) > 0 {
			t.Fatal(refused)
		}
	}
	apply(&event.Batch{
		Edges: []event.Edge{
			{Src: id(1), Dst: id(2), Weight: 1},
			{Src: id(2), Dst: id(3), Weight: 1},
		},
		Labels: []event.Label{
			{
				Vertex: id(1),
				Class:  1,
			}, {Vertex: id(3), Class: 1}, {Vertex: id(7), Class: 0}, {Vertex: id(8), Class: 1},
		},
		Predictions: []event.Prediction{{Vertex: id(2), Units: half}, {Vertex: id(9), Units: half}},
		Members: []event.Member{
			{Community: "a", Vertex: id(1), Multiplicity: 1},
			{Community: "b", Vertex: id(1), Multiplicity: 1},
			{Community: "a", Vertex: id(9), Multiplicity: 2},
		},
	})
	var c coverage
	check := func(position event.Position, labels, predictions, members web.Meeting, left,
		right uint64,
	) {
		t.Helper()
		c.due = time.Time{}
		got := c.count(store.View(), position, []string{"left", "right"})
		of := map[string]uint64{"left": left, "right": right}
		if got.Position != uint64(position) || got.Labels != labels ||
			got.Predictions != predictions ||
			got.Members != members ||
			!maps.Equal(got.LabelsByClass, of) {
			t.Errorf("%+v", got)
		}
	}
	check(4, web.Meeting{Vertices: 4, WithEdge: 2}, web.Meeting{Vertices: 2, WithEdge: 1},
		web.Meeting{Vertices: 2, WithEdge: 1}, 1, 3)
	apply(&event.Batch{
		First: 5, Last: 6,
		Edges:    []event.Edge{{Src: id(1), Dst: id(2), Remove: true}},
		Vertices: []event.Vertex{{Vertex: id(3), Erase: true}},
	})
	if c.due = time.Now().Add(time.Hour); c.count(store.View(), 6, nil).Position != 4 {
		t.Error("counted before it is due")
	}
	check(6, web.Meeting{Vertices: 3}, web.Meeting{Vertices: 2}, web.Meeting{Vertices: 2}, 1, 2)
}
