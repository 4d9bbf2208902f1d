package neighborhood

import (
	"fmt"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event/eventtest"
)

// Incremental sums must equal a recount from scratch after every batch of a
// stream that adds, removes, reweights, repeats, erases and expires, and every
// vertex whose votes changed must be listed with its votes before.
func TestNeighbourSumsEqualRecount(t *testing.T) {
	for seed := range uint64(400) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: true, Erase: true, TTL: true})
		store, err := graphstore.New(graphstore.Config{Classes: stream.Config.Classes})
		if err != nil {
			t.Fatal(err)
		}
		sums := New(stream.Config.Classes, true)
		for i := range 30 {
			before := Recount(store.View(), stream.Config.Classes, true)
			delta, refused := store.Apply(stream.Next())
			if len(refused) > 0 {
				t.Fatalf("seed %d batch %d: refused %v", seed, i, refused)
			}
			changes := sums.Update(store.View(), delta)
			if err := check(sums, store.View()); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			for v := range Vertex(len(before.seen)) {
				listed := slices.Contains(changes, v)
				if !listed && !equal(before.Votes(v), sums.Votes(v)) {
					t.Fatalf("seed %d batch %d: vertex %d changed and is not listed", seed, i, v)
				}
				if !equal(before.Votes(v), sums.Before(v)) {
					t.Fatalf("seed %d batch %d: vertex %d had votes %v, Before says %v",
						seed, i, v, before.Votes(v), sums.Before(v))
				}
			}
		}
		store.Release()
	}
}

func equal(a, b Votes) bool {
	return a.Count == b.Count && slices.Equal(a.Sum, b.Sum) && slices.Equal(a.Hard, b.Hard)
}

// Ties go to the lowest class, of predictions as of votes.
func TestTiesGoToTheLowestClass(t *testing.T) {
	if got := HardClass([]uint32{5, 9, 9}); got != 1 {
		t.Errorf("hard class of a tie between 1 and 2 is %d", got)
	}
	got, voted := Votes{Count: 4, Hard: []uint64{2, 0, 2}}.Majority()
	if got != 0 || !voted {
		t.Errorf("majority of a tie between 0 and 2 is %d (voted: %t)", got, voted)
	}
	if _, voted := (Votes{Hard: []uint64{0, 0}}).Majority(); voted {
		t.Error("a vertex without voting neighbours has a majority")
	}
}

// An update of a warmed-up sum must not allocate.
func TestUpdateDoesNotAllocate(t *testing.T) {
	stream := eventtest.New(7, eventtest.Config{Classes: 3, Vertices: 50, EventsMax: 40})
	store, err := graphstore.New(graphstore.Config{Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Release()
	sums := New(3, true)
	for range 200 {
		delta, _ := store.Apply(stream.Next())
		sums.Update(store.View(), delta)
	}
	delta, _ := store.Apply(stream.Next())
	view := store.View()
	if allocs := testing.AllocsPerRun(50, func() { sums.Update(view, delta) }); allocs > 0 {
		t.Errorf("an update allocates %v times", allocs)
	}
}

// check compares the sums with a recount and names the first difference.
func check(s *Sums, view graphstore.View) error {
	anew := Recount(view, s.classes, s.width > 1+s.classes)
	for v := range Vertex(view.Vertices()) {
		if got, want := s.Votes(v), anew.Votes(v); !equal(got, want) {
			return fmt.Errorf("vertex %d has votes %v, a recount gives %v", v, got, want)
		}
	}
	return nil
}
