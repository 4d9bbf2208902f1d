package posterior

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// After every batch of a random history, everything that a state follows must equal a count from nothing, and a state that is
// restored after a Flush must have the same bits.
func TestStateEqualsRecount(t *testing.T) {
	const histories = 600
	fitted, kept, owned, late := 0, 0, 0, 0 // late: batches after which a posterior was behind
	for seed := range uint64(histories) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0, SelfLoops: true, Withdraw: seed%4 == 0, RollOuts: seed%4 == 1, Audits: seed%3 == 1,
		})
		classes := stream.Config.Classes
		store, err := graphstore.New(graphstore.Config{Classes: classes, Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}}})
		if err != nil {
			t.Fatal(err)
		}
		sums, state := neighborhood.New(classes, false), New(classes, labelsOf(store))
		for i := range 12 {
			batch := stream.Next()
			delta, _ := store.Apply(batch)
			view := store.View()
			state.Update(view, delta, sums, sums.Update(view, delta))
			if batch.Emit {
				state.Ready(view, sums, nil, batch.Time)
				kept += keepCrowds(state, view)
			}
			if i%5 == 4 {
				state.Flush(view, sums)
				restored, err := Restore(classes, labelsOf(store), state.Epochs()[0], view, sums)
				if err != nil {
					t.Fatal(err)
				}
				for v := range Vertex(view.Vertices()) {
					if have := state.Posterior(v); have != nil && !view.Erased(v) && !slices.Equal(have, restored.Posterior(v)) {
						t.Fatalf("seed %d batch %d: vertex %d has %v, restored %v", seed, i, v, have, restored.Posterior(v))
					}
				}
			}
			behind, err := state.check(view, sums)
			if err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			late += behind
			if state.epoch != nil {
				fitted++
			}
			owned += len(state.owned.of)
		}
		store.Release()
	}
	if fitted < histories || kept < histories || owned < histories || late < histories {
		t.Errorf("%d histories: epochs in %d batches, %d crowds kept, %d own labels in them, %d posteriors late", histories, fitted, kept, owned, late)
	}
}

// labelsOf lists the labels that calibrate.
func labelsOf(store *graphstore.Store) func() []Vertex {
	return func() (labels []Vertex) {
		view := store.View()
		for v := range Vertex(view.Vertices()) {
			if calibrates(view, v) != event.NoClass {
				labels = append(labels, v)
			}
		}
		return labels
	}
}

// keepCrowds keeps the sums over the members of every community that has none yet, and returns of how many.
func keepCrowds(s *State, view graphstore.View) (kept int) {
	if s.epoch == nil {
		return 0
	}
	for id := range graphstore.Community(view.Communities()) {
		if s.inside.crowds[id] == nil {
			factors := [2][]float64{make([]float64, s.classes), make([]float64, s.classes)}
			for i := range s.classes {
				factors[0][i], factors[1][i] = 1+float64(i), 1/(2+float64(i))
			}
			s.Keep(id, view, factors)
			kept++
		}
	}
	return kept
}

// check compares what the state has followed with a count from nothing, and every posterior that
// is read with one computed from nothing under the same epoch. They may differ where the next
// Ready or Flush computes them. It names the first other difference, and counts the posteriors
// that wait for Flush and differ.
func (s *State) check(view graphstore.View, sums *neighborhood.Sums) (late int, err error) {
	twin := New(s.classes, s.labels)
	twin.recount(view)
	if s.inside.open != twin.inside.open {
		return 0, fmt.Errorf("posterior: %d open vertices, a recount gives %d", s.inside.open, twin.inside.open)
	}
	if !slices.Equal(s.around.counts, twin.around.counts) {
		return 0, fmt.Errorf("posterior: labelled neighbours %v, a recount gives %v",
			s.around.counts, twin.around.counts)
	}
	for id := range s.inside.edges {
		edges, distinct, degrees := s.Inside(graphstore.Community(id))
		if wantEdges, want, wantDegrees := twin.Inside(graphstore.Community(id)); edges != wantEdges || distinct != want || degrees != wantDegrees {
			return 0, fmt.Errorf("posterior: community %s has %d edges between %d open members of %d degrees, a recount gives %d between %d of %d",
				view.CommunityName(graphstore.Community(id)), edges, distinct, degrees, wantEdges, want, wantDegrees)
		}
	}
	if err := s.checkCrowds(view); err != nil || s.epoch == nil {
		return 0, err
	}
	twin.epoch = s.epoch
	twin.compute(view, sums)
	for v := range Vertex(view.Vertices()) {
		got, want := s.Posterior(v), twin.Posterior(v)
		if s.dirty[v] || want == nil || slices.Equal(got, want) {
			continue // one that nobody reads any more stays as it was
		}
		waits := slices.ContainsFunc(view.Neighbors(v), func(u Vertex) bool { return s.around.changed[u] })
		if !waits || got == nil {
			return 0, fmt.Errorf("posterior: vertex %d has %v, computed anew %v", v, got, want)
		}
		late++
	}
	return late, nil
}

// checkCrowds compares the sums over the members of communities with a count from nothing.
func (s *State) checkCrowds(view graphstore.View) error {
	for id, have := range s.inside.crowds {
		if have == nil {
			continue
		}
		twin := &State{classes: s.classes, pi: s.pi, has: s.has, inside: inside{crowds: make([]*Crowd, id+1)}}
		twin.Keep(graphstore.Community(id), view, have.factors)
		want := twin.inside.crowds[id]
		if have.all != want.all || have.squares != want.squares || !slices.EqualFunc(have.sums[:], want.sums[:], slices.Equal) ||
			!slices.ContainsFunc(s.touched, func(v Vertex) bool { return s.dirty[v] }) && !reflect.DeepEqual(have.own, want.own) {
			return fmt.Errorf("posterior: sums over the members of community %d are %v, a recount gives %v", id, have.sums, want.sums)
		}
	}
	return nil
}
