package classifier

import (
	"fmt"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// votesFor counts the labelled neighbours of v by class, leaving one out.
func votesFor(view graphstore.View, v, without Vertex, classes int) []int {
	votes := make([]int, classes)
	neighbours(view, v, func(u Vertex, _ float64) {
		if c := view.Label(u).Class; c != event.NoClass && u != without {
			votes[c]++
		}
	})
	return votes
}

// vote is the prediction that the votes make: one more is spread over the classes.
func vote(votes []int) []uint32 {
	n := 1
	for _, c := range votes {
		n += c
	}
	shares := make([]float64, len(votes))
	for i, c := range votes {
		shares[i] = (float64(c) + 1/float64(len(votes))) / float64(n)
	}
	return predicted(shares)
}

// nobody is no vertex.
const nobody = ^Vertex(0)

// After every batch of a random history the prediction of every vertex that no
// event predicts must be the vote of its labelled neighbours, counted anew, to the
// last units; an outside prediction must stand.
func TestEnqPredictsWhatARecountDoes(t *testing.T) {
	predictions := 0
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		k := w.stream.Config.Classes
		e := NewEnq(k)
		for i := range 25 {
			view, delta := w.next()
			w.store.Derive(e.Update(view, delta), EnqName)
			if err := e.check(view); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			for v := range Vertex(view.Vertices()) {
				got := view.Prediction(v)
				switch {
				case view.Erased(v):
					if got != nil {
						t.Fatalf("seed %d batch %d: erased vertex %d is predicted %v", seed, i, v, got)
					}
					continue
				case outside(view, v):
					continue
				}
				predictions++
				if want := vote(votesFor(view, v, nobody, k)); !close1(got, want) {
					t.Fatalf("seed %d batch %d: vertex %d is predicted %v, its neighbours vote %v", seed, i, v, got, want)
				}
			}
		}
	}
	if predictions < 10_000 {
		t.Fatalf("only %d predictions were compared", predictions)
	}
}

// close1 allows for the rounding of shares that are computed in another order.
func close1(a, b []uint32) bool {
	return slices.EqualFunc(a, b, func(x, y uint32) bool { return max(x, y)-min(x, y) <= 1 })
}

// What a labelled vertex hears from a neighbour must be the neighbour's prediction
// without its own vote: the corrections that every update visits must sum to those
// of a recount, and those to a vote that leaves the vertex out.
func TestEnqIsHeardWithoutTheListenersVote(t *testing.T) {
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		k := w.stream.Config.Classes
		e := NewEnq(k)
		kept := corrections{classes: k}
		for i := range 20 {
			view, delta := w.next()
			w.store.Derive(e.Update(view, delta), EnqName)
			kept.add(e.Heard(view, delta))
			fresh := NewEnq(k)
			fresh.Recount(view)
			anew := corrections{classes: k}
			anew.add(fresh.HeardByAll(view))
			for v := range Vertex(view.Vertices()) {
				got, recounted, want := kept.of(v), anew.of(v), leftOut(view, v, k)
				if !slices.Equal(got, recounted) || !near(got, want, int64(len(view.Neighbors(v)))) {
					t.Fatalf("seed %d batch %d: vertex %d hears %v more, counted anew %v, by definition %v",
						seed, i, v, got, recounted, want)
				}
			}
		}
	}
}

// corrections sum In - Out by vertex and class.
type corrections struct {
	classes int
	sums    []int64
}

func (c *corrections) add(heard func(func(neighborhood.Hearing) bool)) {
	for h := range heard {
		for k, in := range h.In {
			c.of(h.V)[k] += int64(in) - int64(h.Out[k])
		}
	}
}

func (c *corrections) of(v Vertex) []int64 {
	for len(c.sums) < (int(v)+1)*c.classes {
		c.sums = append(c.sums, 0)
	}
	return c.sums[int(v)*c.classes:][:c.classes]
}

// leftOut is the correction by definition: over the neighbours that Enq predicts,
// the vote without v less the vote with it.
func leftOut(view graphstore.View, v Vertex, k int) []int64 {
	sums := make([]int64, k)
	if view.Label(v).Class == event.NoClass {
		return sums
	}
	neighbours(view, v, func(u Vertex, _ float64) {
		if outside(view, u) {
			return
		}
		with, without := vote(votesFor(view, u, nobody, k)), vote(votesFor(view, u, v, k))
		for i := range sums {
			sums[i] += int64(without[i]) - int64(with[i])
		}
	})
	return sums
}

// near allows for two units for each neighbour.
func near(a, b []int64, neighbours int64) bool {
	return slices.EqualFunc(a, b, func(x, y int64) bool { return max(x-y, y-x) <= 2*neighbours })
}

// check compares the counts with a recount and the predictions in the store with
// what the counts say, and names the first difference.
func (e *Enq) check(view graphstore.View) error {
	twin := NewEnq(e.classes)
	if list := twin.Recount(view); len(list) > 0 {
		return fmt.Errorf("classifier: vertex %d is predicted %v, a recount gives %v",
			list[0].V, view.Prediction(list[0].V), list[0].Units)
	}
	if !slices.Equal(e.counts[:view.Vertices()*e.classes], twin.counts) {
		return fmt.Errorf("classifier: labelled neighbours %v, a recount gives %v", e.counts, twin.counts)
	}
	return nil
}
