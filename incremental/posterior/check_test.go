package posterior

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// After every batch of a random history, everything that a state follows must equal a count from
// nothing, and a state that is restored after a Flush must have the same bits.
func TestStateEqualsRecount(t *testing.T) {
	const histories = 600
	// late: batches after which a posterior was behind; featured: with attributes in it
	fitted, late, aged, featured := 0, 0, 0, 0
	for seed := range uint64(histories) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0, SelfLoops: true,
			Withdraw: seed%4 == 0, RollOuts: seed%4 == 1, Audits: seed%3 == 1,
			Posts: seed%5 > 2, Attributes: seed%2 == 1,
		})
		classes := stream.Config.Classes
		store, err := graphstore.New(graphstore.Config{
			Classes:     classes,
			Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
			Evidence: graphstore.EvidenceConfig{
				HalfLife:   time.Duration(seed%7) * 10 * time.Second,
				Attributes: []string{graphstore.EveryAttribute},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		sums, pairs := neighborhood.New(classes, false), pairs.New(classes, false)
		state := New(classes, "", pairs, labelsOf(store, pairs))
		for i := range 12 {
			batch := stream.Next()
			delta, _ := store.Apply(batch)
			view := store.View()
			votes := sums.Update(view, delta)
			pairs.Update(view, delta, sums)
			state.Update(view, delta, sums, votes)
			if step := view.AgeStep(); step > 0 && batch.Time-batch.Time%step != sums.At() {
				at := batch.Time - batch.Time%step
				votes := sums.Age(view, at)
				pairs.Update(view, &graphstore.Delta{}, sums)
				state.Age(view, at)
				state.Update(view, &graphstore.Delta{}, sums, votes)
				aged++
			}
			if batch.Emit {
				state.Ready(view, sums, nil, batch.Time, func([]Vertex) {})
			}
			if i%5 == 4 {
				state.Flush(view, sums)
				restored, err := Restore(
					classes, "", pairs, labelsOf(store, pairs), state.Epochs()[0], view, sums,
				)
				if err != nil {
					t.Fatal(err)
				}
				for id, h := range state.inside.histograms {
					if !h.equal(restored.inside.histograms[id]) {
						t.Fatalf("seed %d batch %d: community %d has %v, restored %v", seed, i, id,
							h, restored.inside.histograms[id])
					}
				}
				if !maps.EqualFunc(state.labelPi, restored.labelPi, slices.Equal) {
					t.Fatalf("seed %d batch %d: labels have %v, restored %v", seed, i,
						state.labelPi, restored.labelPi)
				}
			}
			behind, err := state.check(view, sums)
			if err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			late += behind
			if state.epoch != nil {
				fitted++
				featured += min(1, len(state.epoch.Features))
			}
		}
		store.Release()
	}
	if fitted < histories || late < histories/4 || aged < histories || featured < histories {
		t.Errorf(
			"%d histories: epochs in %d batches, %d with attributes, %d vertices late, %d times "+
				"older", histories, fitted, featured, late, aged,
		)
	}
}

// labelsOf lists the labels that calibrate.
func labelsOf(store *graphstore.Store, pairs *pairs.Pairs) func() []Vertex {
	return func() (labels []Vertex) {
		view := store.View()
		for v := range Vertex(view.Vertices()) {
			if pairs.Calibrates(v) != event.NoClass {
				labels = append(labels, v)
			}
		}
		return labels
	}
}

// check compares the state with a count from scratch, and every posterior with one computed
// from scratch under the same epoch. They may differ where the next Ready or Flush computes
// them. It names the first other difference, and counts the posteriors that wait for Flush
// and differ.
func (s *State) check(view graphstore.View, sums *neighborhood.Sums) (late int, err error) {
	twin := New(s.classes, "", s.pairs, s.labels)
	twin.massesAt = s.massesAt
	twin.recount(view)
	if s.inside.open != twin.inside.open {
		return 0, fmt.Errorf(
			"posterior: %d open vertices, a recount gives %d",
			s.inside.open,
			twin.inside.open,
		)
	}
	for id := range s.inside.edges {
		edges, distinct, degrees := s.Inside(graphstore.Community(id))
		if wantEdges, want, wantDegrees := twin.Inside(
			graphstore.Community(id)); edges != wantEdges ||
			distinct != want ||
			degrees != wantDegrees {
			return 0, fmt.Errorf(
				"posterior: community %s has %d edges between %d open members of %d degrees, a "+
					"recount gives %d between %d of %d",
				view.CommunityName(graphstore.Community(id)),
				edges,
				distinct,
				degrees,
				wantEdges,
				want,
				wantDegrees,
			)
		}
	}
	if s.epoch == nil {
		return 0, nil
	}
	twin.epoch = s.epoch
	twin.useFeatures(view, s.epoch.Features)
	if !slices.Equal(s.features.rows, twin.features.rows) {
		return 0, fmt.Errorf("posterior: features %v, computed again %v", s.features.rows,
			twin.features.rows)
	}
	twin.contributions, twin.labelPi = slices.Clone(s.contributions), maps.Clone(s.labelPi)
	twin.countMembers(view)
	for id, h := range s.inside.histograms {
		if want := twin.inside.histograms[id]; !h.equal(want) {
			return 0, fmt.Errorf("posterior: community %d has %v, a recount gives %v", id, h, want)
		}
	}
	twin.compute(view, sums, func() { twin.sortVertices(view, sums) })
	for v := range Vertex(view.Vertices()) {
		same := s.contributions[v] == twin.contributions[v] &&
			slices.Equal(s.labelPi[v], twin.labelPi[v])
		if s.dirty[v] != 0 || twin.contributions[v].cell == 0 || same {
			continue // one that nobody reads any more stays as it was
		}
		changed := func(u Vertex) bool { return s.inputChanges[u] != 0 }
		if !slices.ContainsFunc(view.Neighbors(v), changed) || s.contributions[v].cell == 0 {
			return 0, fmt.Errorf("posterior: vertex %d is in %v with %v, computed again %v, %v",
				v, s.contributions[v], s.labelPi[v], twin.contributions[v], twin.labelPi[v])
		}
		late++
	}
	return late, nil
}
