package posterior

import (
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
)

// A vertex of more neighbours than their sums hold reads its own neighbours alone, and two steps
// away again once it has fewer.
func TestHubReadsItsOwnNeighbours(t *testing.T) {
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Release()
	sums, labels := neighborhood.New(2, false), pairs.New(2, false)
	state := New(2, "", labels, labelsOf(store, labels))
	batch := &event.Batch{}
	apply := func() {
		delta, refused := store.Apply(batch)
		if len(refused) > 0 {
			t.Fatal(refused[0])
		}
		votes := sums.Update(store.View(), delta)
		labels.Update(store.View(), delta, sums)
		state.Update(store.View(), delta, sums, votes)
		state.Ready(store.View(), sums, nil, batch.Time, func([]Vertex) {})
		batch.Reset()
	}
	next := func() event.Position {
		batch.Last++
		return batch.Last
	}
	for v := range uint64(pairs.NeighboursMost + 2) {
		units := []uint32{event.One / 4, event.One / 4 * 3}
		batch.Predictions = append(
			batch.Predictions,
			event.Prediction{Vertex: event.NumberID(v), Units: units, Position: next()},
		)
		if v > 0 {
			batch.Edges = append(
				batch.Edges,
				event.Edge{
					Src:      event.NumberID(0),
					Dst:      event.NumberID(v),
					Weight:   1,
					Position: next(),
				},
			)
		}
	}
	for v := range event.Class(2) {
		batch.Labels = append(
			batch.Labels,
			event.Label{Vertex: event.NumberID(uint64(v) + 1), Class: v, Position: next()},
		)
	}
	apply()
	check := func(labels bool) {
		t.Helper()
		hub := Vertex(0)
		for store.View().ID(hub) != event.NumberID(0) {
			hub++
		}
		in := state.Reader(store.View(), sums)
		if !in.read(hub) {
			t.Fatal("the hub has no prediction")
		}
		if in.normalize(); in.next[0] < .24 || in.next[0] > .26 || (in.two.all > 0) != labels {
			t.Errorf("the hub hears %v, and %v labels two steps away", in.next, in.two.all)
		}
	}
	check(false)
	batch.Edges = append(
		batch.Edges,
		event.Edge{Src: event.NumberID(3), Dst: event.NumberID(4), Weight: 1, Position: next()},
	)
	batch.Edges = append(
		batch.Edges,
		event.Edge{Src: event.NumberID(1), Dst: event.NumberID(4), Weight: 1, Position: next()},
	)
	for v := range uint64(9) {
		batch.Edges = append(
			batch.Edges,
			event.Edge{
				Src:      event.NumberID(0),
				Dst:      event.NumberID(v + 10),
				Remove:   true,
				Position: next(),
			},
		)
	}
	apply()
	check(true)
}
