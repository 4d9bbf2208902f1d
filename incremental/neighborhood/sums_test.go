package neighborhood

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event/eventtest"
)

// Incremental sums must equal a recount from scratch after every batch of a stream that
// adds, removes, reweights, repeats, erases, expires, posts and ages. Every vertex with
// changed votes must be listed, with its votes before.
func TestNeighbourSumsEqualRecount(t *testing.T) {
	for seed := range uint64(400) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: true, Erase: true, TTL: true, Posts: seed%2 > 0,
		})
		store, err := graphstore.New(graphstore.Config{
			Classes:  stream.Config.Classes,
			Evidence: graphstore.EvidenceConfig{HalfLife: time.Duration(seed%3) * 10 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		sums := New(stream.Config.Classes, true)
		for i := range 30 {
			before := Recount(store.View(), stream.Config.Classes, true, sums.At())
			batch := stream.Next()
			delta, refused := store.Apply(batch)
			if len(refused) > 0 {
				t.Fatalf("seed %d batch %d: refused %v", seed, i, refused)
			}
			if err := follows(before, sums, sums.Update(store.View(), delta),
				store.View()); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			before = Recount(store.View(), stream.Config.Classes, true, sums.At())
			aged := sums.Age(store.View(), batch.Time)
			if err := follows(before, sums, aged, store.View()); err != nil {
				t.Fatalf("seed %d batch %d, aged: %v", seed, i, err)
			}
		}
		store.Release()
	}
}

// follows returns an error unless sums equal a recount of view, every changed vertex is in changes,
// and Before returns the previous votes of each vertex.
func follows(before, sums *Sums, changes []Vertex, view graphstore.View) error {
	if err := check(sums, view); err != nil {
		return err
	}
	for v := range Vertex(len(before.seen)) {
		if !slices.Contains(changes, v) && !equal(before.Votes(v), sums.Votes(v)) {
			return fmt.Errorf("vertex %d changed and is not listed", v)
		}
		if !equal(before.Votes(v), sums.Before(v)) {
			return fmt.Errorf(
				"vertex %d had votes %v, Before says %v", v, before.Votes(v), sums.Before(v),
			)
		}
	}
	return nil
}

func equal(a, b Votes) bool {
	return a.Mass == b.Mass && slices.Equal(a.Sum, b.Sum) && slices.Equal(a.Hard, b.Hard)
}

// Ties go to the lowest class, of predictions as of votes.
func TestTiesGoToTheLowestClass(t *testing.T) {
	if got := HardClass([]uint32{5, 9, 9}); got != 1 {
		t.Errorf("hard class of a tie between 1 and 2 is %d", got)
	}
	got, voted := Votes{Mass: 4, Hard: []uint64{2, 0, 2}}.Majority()
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
	anew := Recount(view, s.classes, s.width > 1+s.classes, s.at)
	for v := range Vertex(view.Vertices()) {
		if got, want := s.Votes(v), anew.Votes(v); !equal(got, want) {
			return fmt.Errorf("vertex %d has votes %v, a recount gives %v", v, got, want)
		}
	}
	return nil
}
