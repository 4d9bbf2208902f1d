package posterior

import (
	"cmp"
	"fmt"
	"math"
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
	fitted, kept, owned, late := 0, 0, 0, 0
	for seed := range uint64(histories) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0, SelfLoops: true, Withdraw: seed%4 == 0, RollOuts: seed%4 == 1, Audits: seed%3 == 1,
		})
		classes, missed := stream.Config.Classes, []float64{0, -1, .05}[seed%3]
		store, err := graphstore.New(graphstore.Config{Classes: classes, Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}}})
		if err != nil {
			t.Fatal(err)
		}
		sums, state := neighborhood.New(classes, false), New(classes, missed, labelsOf(store))
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
				restored, err := Restore(classes, missed, labelsOf(store), state.Epochs()[0], view, sums)
				if err != nil {
					t.Fatal(err)
				}
				for v := range Vertex(view.Vertices()) {
					if have := state.Posterior(v); have != nil && !view.Erased(v) && !slices.Equal(have, restored.Posterior(v)) {
						t.Fatalf("seed %d batch %d: vertex %d has %v, restored %v", seed, i, v, have, restored.Posterior(v))
					}
				}
			}
			if err := state.check(view, sums); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			if state.epoch != nil {
				fitted++
			}
			owned, late = owned+len(state.owned.of), late+len(state.around.lates())
		}
		store.Release()
	}
	if fitted < histories || kept < histories || owned < histories || late < histories {
		t.Errorf("%d histories: epochs in %d batches, %d crowds kept, %d own labels in them, %d vertices late", histories, fitted, kept, owned, late)
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

// check compares what the state has followed with a count from nothing, and every
// posterior that is read with one computed anew under the same epoch: within what is missed,
// and bit for bit where nothing is. It names the first difference.
func (s *State) check(view graphstore.View, sums *neighborhood.Sums) error {
	twin := New(s.classes, s.missed, s.labels)
	twin.recount(view, sums)
	if s.inside.open != twin.inside.open {
		return fmt.Errorf("posterior: %d open vertices, a recount gives %d", s.inside.open, twin.inside.open)
	}
	for id := range s.inside.edges {
		edges, distinct, degrees := s.Inside(graphstore.Community(id))
		if wantEdges, want, wantDegrees := twin.Inside(graphstore.Community(id)); edges != wantEdges || distinct != want || degrees != wantDegrees {
			return fmt.Errorf("posterior: community %s has %d edges between %d open members of %d degrees, a recount gives %d between %d of %d",
				view.CommunityName(graphstore.Community(id)), edges, distinct, degrees, wantEdges, want, wantDegrees)
		}
	}
	if err := cmp.Or(s.checkCrowds(view), s.around.check(view, sums)); err != nil || s.epoch == nil {
		return err
	}
	twin.epoch = s.epoch
	twin.compute(view, sums)
	in := twin.Reader(view, sums)
	for v := range Vertex(view.Vertices()) {
		got, want := s.Posterior(v), twin.Posterior(v)
		stale := s.dirty[v] || slices.ContainsFunc(view.Neighbors(v), func(u Vertex) bool { return s.around.marked[u] })
		if stale || slices.Equal(got, want) {
			continue // the next Ready computes it
		}
		slack := 0.0
		if got != nil && want != nil {
			slack = s.slack(view, in, v)
		}
		for i, x := range want {
			if slack == 0 || math.Abs(got[i]-x) > math.Expm1(slack)*x+1e-12 {
				return fmt.Errorf("posterior: vertex %d has %v, computed anew %v, slack %v", v, got, want, slack)
			}
		}
	}
	return nil
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

// slack returns by how much, in logarithms, the odds of two classes in the posterior of v
// may be off because of what is missed: 0 if nothing is.
func (s *State) slack(view graphstore.View, in *Reader, v Vertex) float64 {
	neighbours := view.Neighbors(v)
	late := slices.ContainsFunc(neighbours, func(u Vertex) bool { return s.around.late[u] })
	if !late && *s.around.unread(v) == 0 || !in.read(v) {
		return 0
	}
	m := s.bars()
	missed := float64(m.untold+m.unread) / unit
	theta, missed2 := s.epoch.Theta, missed*float64(len(neighbours))
	in.normalize()
	labels := in.one.all + in.two.all
	far := 1 / (1 + max(labels-float64(s.classes)*missed2, 0))
	most := 0.0
	for i, p := range in.prior {
		next := math.Log((in.next[i] + 2*missed) / max(in.next[i]-2*missed, probabilityMin/2))
		two := func(m float64) float64 {
			return math.Log((in.two.each[i] + missed2 + m*p) / (max(in.two.each[i]-missed2, 0) + m*p))
		}
		off := (math.Abs(theta[viewNext])+math.Abs(theta[viewFar+2])*far)*next +
			math.Abs(theta[viewLabels+1])*two(mixingMost) + math.Abs(theta[viewLabels+3])*two(mixingLeast)
		for j, x := range [...]float64{in.own[i], in.near[i], in.next[i]} {
			off += math.Abs(theta[viewFar+j]) * (far - 1/(1+labels+float64(s.classes)*missed2)) * math.Abs(math.Log(x/p))
		}
		most = max(most, off)
	}
	return 2 * most
}

// lates lists the vertices whose neighbours know something else of them.
func (a *around) lates() (list []Vertex) {
	for v, late := range a.late {
		if late || a.marked[v] {
			list = append(list, Vertex(v))
		}
	}
	return list
}

// check compares the sums with a recount, but for what has not been told.
func (a *around) check(view graphstore.View, sums *neighborhood.Sums) error {
	twin := newAround(a.classes)
	twin.recount(view, sums)
	for _, v := range a.lates() {
		for _, u := range view.Neighbors(v) {
			twin.tell(u, twin.row(twin.told, int(v)), -1)
			twin.tell(u, a.row(a.told, int(v)), 1)
		}
	}
	if !slices.Equal(a.counts, twin.counts) {
		return fmt.Errorf("posterior: labelled neighbours %v, a recount gives %v", a.counts, twin.counts)
	}
	for v := range Vertex(view.Vertices()) {
		*twin.unread(v) = *a.unread(v)
	}
	if !slices.Equal(a.sums, twin.sums) {
		return fmt.Errorf("posterior: sums over neighbours %v, a recount gives %v", a.sums, twin.sums)
	}
	return nil
}

// A label whose posterior was computed while a neighbour had moved by too little to be told must be computed anew once the
// neighbour is back where it was: what the label leaves out of its neighbours' words is what they would say at the time.
func TestFlushComputesWhatAReturnedNeighbourMoved(t *testing.T) {
	const classes, leaves, hub, label = 2, 200, 0, 1
	store, err := graphstore.New(graphstore.Config{Classes: classes, Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Release()
	sums, state := neighborhood.New(classes, false), New(classes, 0, labelsOf(store))
	edge := func(u, v uint64, remove bool) event.Edge {
		return event.Edge{Src: event.NumberID(u), Dst: event.NumberID(v), Weight: 1, Remove: remove}
	}
	at, view := event.Position(0), store.View()
	step := func(b event.Batch) {
		at++
		b.First, b.Last = at, at
		delta, refused := store.Apply(&b)
		if len(refused) > 0 {
			t.Fatal(refused)
		}
		view = store.View()
		state.Update(view, delta, sums, sums.Update(view, delta))
		state.Ready(view, sums, nil, 1)
	}
	var start event.Batch
	for v := range uint64(leaves) {
		share := uint32(event.One / 100 * (20 + v%60))
		start.Edges = append(start.Edges, edge(hub, v+1, false))
		start.Predictions = append(start.Predictions, event.Prediction{Vertex: event.NumberID(v + 1), Units: []uint32{share, event.One - share}})
		if v%5 == 0 {
			start.Labels = append(start.Labels, event.Label{Vertex: event.NumberID(v + 1), Class: event.Class(v / 5 % classes)})
		}
	}
	step(start)
	step(event.Batch{Edges: []event.Edge{edge(hub, leaves+1, false), edge(label, leaves+2, false)}})
	if hub, _ := view.Lookup(event.NumberID(hub)); !state.around.late[hub] {
		t.Fatal("the hub told how it moved")
	}
	step(event.Batch{Edges: []event.Edge{edge(hub, leaves+1, true)}})
	state.Flush(view, sums)
	restored, err := Restore(classes, 0, labelsOf(store), state.Epochs()[0], view, sums)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range state.labels() {
		if have, want := state.Posterior(v), restored.Posterior(v); !slices.Equal(have, want) {
			t.Errorf("label %d has %v, restored %v", v, have, want)
		}
	}
}
