package ask

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// world is a store of n vertices with predictions, a few calibration labels and the
// communities a (the first 60 %) and b (the last 60 %).
func world(t *testing.T, n int) *graphstore.Store {
	t.Helper()
	store, err := graphstore.New(graphstore.Config{Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Release)
	r := rand.New(rand.NewPCG(1, 2))
	var b event.Batch
	for v := range n {
		id, units := event.NumberID(uint64(v)), b.Units(3)
		left := uint32(event.One)
		for k := range 2 {
			units[k] = r.Uint32N(left)
			left -= units[k]
		}
		units[2] = left
		b.Predictions = append(b.Predictions, event.Prediction{Vertex: id, Units: units})
		if v%10 == 0 {
			b.Labels = append(b.Labels, event.Label{Vertex: id, Class: event.Class(r.IntN(3))})
		}
		if v < n*6/10 {
			b.Members = append(
				b.Members,
				event.Member{Community: "a", Vertex: id, Multiplicity: 1 + uint32(v%2)},
			)
		}
		if v >= n*4/10 {
			b.Members = append(b.Members, event.Member{Community: "b", Vertex: id, Multiplicity: 1})
		}
	}
	store.Apply(&b)
	return store
}

// Members without predictions must be drawn like others. The expected half-width for any number of
// labels must be a valid number.
func TestMembersWithoutPredictionsAreDrawn(t *testing.T) {
	store := world(t, 100)
	var b event.Batch
	for v := range 60 { // half of them have predictions
		b.Members = append(
			b.Members,
			event.Member{Community: "c", Vertex: event.NumberID(uint64(v + 70)), Multiplicity: 1},
		)
	}
	store.Apply(&b)
	a := answer(
		t,
		store.View(),
		Question{
			Communities: []string{"c"},
			Count:       20,
			Shares:      map[string][]float64{"c": {.2, .3, .5}},
		},
	)
	for _, o := range append(a.Offers, a.Others...) {
		if !(o.HalfWidth > 0 && o.HalfWidth <= .5) {
			t.Errorf("%d labels: ±%v", o.Labels, o.HalfWidth)
		}
	}
	if a.Fresh < 15 || a.Fresh > 25 || len(a.Others) < 2 ||
		a.Others[1].HalfWidth >= a.Others[0].HalfWidth {
		t.Errorf("%d drawn, offers %v", a.Fresh, a.Others)
	}
}

func answer(t *testing.T, view graphstore.View, q Question) *Answer {
	t.Helper()
	a, err := Ask(view, event.ClassSet{Count: 3}, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Over many seeds every member must be drawn as often as its pi says, in one community and in
// two that overlap, and every draw must have the size that was asked for.
func TestMembersAreDrawnWithTheirProbability(t *testing.T) {
	view := world(t, 400).View()
	for _, communities := range [][]string{{"a"}, {"a", "b"}} {
		const seeds, count = 1500, 40
		times, pi := map[event.ID]float64{}, map[event.ID]float64{}
		for seed := range uint64(seeds) {
			p, err := newPlan(
				view,
				event.ClassSet{Count: 3},
				Question{Communities: communities, Count: count, Seed: seed},
			)
			if err != nil {
				t.Fatal(err)
			}
			p.spend(count)
			if seed == 0 {
				for i := range p.candidates {
					pi[p.view.ID(p.candidates[i].vertex)] = p.candidates[i].pi
				}
			}
			var a Answer
			p.draw(&a)
			drawn := a.Drawn
			if n := len(drawn); n != count {
				t.Fatalf("seed %d: %d drawn of %v, want %d", seed, n, communities, count)
			}
			for _, d := range drawn {
				times[d.ID]++
				if math.Abs(d.Pi-pi[d.ID]) > 1e-6 {
					t.Fatalf("%v was drawn with %v, its pi is %v", d.ID, d.Pi, pi[d.ID])
				}
			}
		}
		worst := 0.0
		for id, p := range pi {
			worst = max(worst, math.Abs(times[id]-seeds*p)/math.Sqrt(seeds*p*(1-p)+1e-9))
		}
		if worst > 4.5 {
			t.Errorf(
				"%v: a member is drawn %.1f standard deviations off its pi",
				communities,
				worst,
			)
		}
	}
}

// The same state, seed and position give the same draw; another seed or position another one.
func TestDrawIsDeterministic(t *testing.T) {
	view := world(t, 300).View()
	q := Question{Communities: []string{"a", "b"}, Count: 30, Seed: 7, Position: 5}
	first := answer(t, view, q)
	if !reflect.DeepEqual(first, answer(t, view, q)) {
		t.Error("two answers to one question differ")
	}
	for _, other := range []Question{
		{Communities: q.Communities, Count: 30, Seed: 8, Position: 5},
		{Communities: q.Communities, Count: 30, Seed: 7, Position: 6},
	} {
		if reflect.DeepEqual(first.Drawn, answer(t, view, other).Drawn) {
			t.Errorf("%+v draws what %+v draws", other, q)
		}
	}
	for _, d := range first.Drawn {
		v, _ := view.Lookup(d.ID)
		if view.Label(v).Class != event.NoClass {
			t.Errorf("%v is drawn, whose class is known", d.ID)
		}
	}
}

// A target width is reached by the number of labels that is drawn for it, and more labels
// promise narrower intervals.
func TestOffersShrinkWithLabels(t *testing.T) {
	view := world(t, 1000).View()
	a := answer(t, view, Question{Communities: []string{"a"}, TargetWidth: 0.1})
	if w := a.Offers[0].HalfWidth; w > 0.1 || w < 0.09 {
		t.Errorf("asked for a half-width of 0.1, offered %v with %d labels", w, a.Offers[0].Labels)
	}
	if !slices.IsSortedFunc(
		a.Others,
		func(x, y Offer) int { return int(math.Copysign(1, y.HalfWidth-x.HalfWidth)) },
	) ||
		len(a.Others) < 4 {
		t.Errorf("offers do not shrink: %+v", a.Others)
	}
	both := answer(t, view, Question{Communities: []string{"a", "b"}, Count: 100})
	if x, y := both.Offers[0].HalfWidth, both.Offers[1].HalfWidth; math.Abs(x-y) > 0.15*max(x, y) {
		t.Errorf("one interval is %v wide, the other %v", x, y)
	}
	if sum := both.Offers[0].Labels + both.Offers[1].Labels; sum <= 100 {
		t.Errorf("100 labels count %d times in two communities that overlap", sum)
	}
}

// Audited vertices are in the next draw, with their class and a new pi, and are not asked
// about again.
func TestAuditedMembersAreTakenOver(t *testing.T) {
	store := world(t, 400)
	first := answer(t, store.View(), Question{Communities: []string{"a"}, Count: 30, Seed: 1})
	var b event.Batch
	for _, d := range first.Drawn {
		b.Labels = append(
			b.Labels,
			event.Label{Vertex: d.ID, Class: 1, Role: event.Audit, Pi: uint32(d.Pi * event.One)},
		)
	}
	store.Apply(&b)
	second := answer(
		t,
		store.View(),
		Question{Communities: []string{"a"}, Count: 30, Seed: 1, Position: 9},
	)
	known, sum := 0, 0.0
	for _, d := range second.Drawn {
		if d.Label != nil {
			known++
		}
		sum += 1 / d.Pi
	}
	fresh := len(second.Drawn) - known
	if known != 30 || fresh < 28 || fresh > 32 {
		t.Errorf("%d are taken over and %d drawn, want 30 and about 30", known, fresh)
	}
	if n := float64(400*6/10) * 0.9; math.Abs(sum-n) > 0.2*n {
		t.Errorf("the labels stand for %v members of %v", sum, n)
	}
}

// A question without an answer is refused with the reason.
func TestQuestionsWithoutAnswer(t *testing.T) {
	view := world(t, 100).View()
	for _, q := range []Question{
		{},
		{Communities: []string{"a"}},
		{Communities: []string{"nobody"}, Count: 5},
		{Communities: []string{"a"}, Count: -1},
		{Communities: []string{"a"}, TargetWidth: 2},
		{Communities: []string{"a"}, Count: 3, TargetWidth: 0.1},
		{Communities: []string{"a"}, Count: 3, Confidence: 1},
	} {
		if _, err := Ask(view, event.ClassSet{Count: 3}, q); err == nil {
			t.Errorf("%+v has an answer", q)
		}
	}
}

func ExampleAsk() {
	store, _ := graphstore.New(graphstore.Config{Classes: 2})
	defer store.Release()
	var b event.Batch
	for v := range 100 {
		b.Members = append(
			b.Members,
			event.Member{Community: "berlin", Vertex: event.NumberID(uint64(v)), Multiplicity: 1},
		)
	}
	store.Apply(&b)
	a, _ := Ask(
		store.View(),
		event.ClassSet{Count: 2},
		Question{Communities: []string{"berlin"}, Count: 20},
	)
	fmt.Printf("%d members, each with pi %.2f\n", len(a.Drawn), a.Drawn[0].Pi)
	// Output: 20 members, each with pi 0.20
}
