package pipeline

import (
	"log/slog"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// The page must define the members of each kind of community in words.
func TestDefinitionsInWords(t *testing.T) {
	text := func(s string) event.Value { return event.Value{Kind: event.StringValue, Text: s} }
	store, err := graphstore.New(graphstore.Config{Classes: 2, Communities: []graphstore.Rule{
		{Name: "panel"},
		{Name: "all", Kind: graphstore.Everyone},
		{Name: "german", Kind: graphstore.ByAttribute, Key: "language", Value: text("de")},
		{Name: "adults", Kind: graphstore.ByExpression, Expression: "age >= 18"},
		{Name: "ego", Kind: graphstore.Ego, Root: "1", Hops: 1},
		{Name: "none", Kind: graphstore.Ego, Root: "zoe", Hops: 2},
		{Name: "cut", Kind: graphstore.Ego, Root: "1", Hops: 2, MembersMax: 2},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Release()
	edge := func(u, v uint64) event.Edge {
		return event.Edge{Src: event.NumberID(u), Dst: event.NumberID(v), Weight: 1}
	}
	store.Apply(&event.Batch{Edges: []event.Edge{edge(1, 2), edge(2, 3)}})
	for c, want := range []string{
		"", "every vertex", `language == "de"`, "age >= 18", "within 1 hop of 1",
		"within 2 hops of zoe, which is not a vertex at present",
		"within 2 hops of 1; at present within 1 hops, because more would exceed members_max",
	} {
		if got := inWords(store.View(), graphstore.Community(c)); got != want {
			t.Errorf("community %d: %q, want %q", c, got, want)
		}
	}
}

// A status that was shown must not change with the next one: another goroutine reads it.
func TestMismatchesThatWereShownStay(t *testing.T) {
	store, err := graphstore.New(graphstore.Config{Classes: 2, Communities: []graphstore.Rule{
		{Name: "adults", Kind: graphstore.ByExpression, Expression: "age >= 18"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Release()
	d := definitions{ // as a page knows them, so that nothing else is news for it
		texts:  map[string]string{"adults": "age >= 18"},
		misses: map[string]uint64{},
		gone:   map[string]bool{"adults": true},
	}
	shown := []map[string]uint64{d.misses}
	for v := range uint64(3) {
		age := event.Attribute{Key: "age", Value: event.Value{Kind: event.StringValue, Text: "old"}}
		store.Apply(
			&event.Batch{
				Vertices: []event.Vertex{
					{Vertex: event.NumberID(v), Attributes: []event.Attribute{age}},
				},
			},
		)
		d.show(store.View(), nil, slog.New(slog.DiscardHandler), false)
		shown = append(shown, d.misses)
	}
	for i, misses := range shown {
		if misses["adults"] != uint64(i) {
			t.Errorf("the status after %d mismatches says %d now", i, misses["adults"])
		}
	}
}
