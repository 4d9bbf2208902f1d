package graphstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

func number(n uint64) event.ID { return event.NumberID(n) }

func link(a, b uint64, weight float64) event.Edge {
	return event.Edge{Src: number(a), Dst: number(b), Weight: weight}
}

// The Delta must leave out changes that the same batch undoes.
func TestDeltaIsNet(t *testing.T) {
	s := newTestStore(t, Config{Communities: testRules})
	s.Apply(
		&event.Batch{
			Edges:  []event.Edge{link(1, 2, 1), link(2, 3, 4)},
			Labels: []event.Label{{Vertex: number(1), Class: 2}},
		},
	)
	gone := link(4, 5, 1)
	gone.Remove = true
	back := link(3, 2, 1)
	back.Remove = true
	german := event.Attribute{
		Key:   "language",
		Value: event.Value{Kind: event.StringValue, Text: "de"},
	}
	delta, refused := s.Apply(&event.Batch{
		Edges:  []event.Edge{link(4, 5, 1), gone, back, link(2, 1, 1), link(2, 3, 4)},
		Labels: []event.Label{{Vertex: number(1), Class: 0}, {Vertex: number(1), Class: 2}},
		Vertices: []event.Vertex{
			{Vertex: number(1), Attributes: []event.Attribute{german}},
			{Vertex: number(1), Attributes: []event.Attribute{{Key: "language"}}},
		},
		Members: []event.Member{
			{
				Community:    "listed",
				Vertex:       number(2),
				Multiplicity: 2,
			}, {Community: "listed", Vertex: number(2)},
		},
	})
	joins := []MemberChange{
		{V: 3, After: 1},
		{V: 4, After: 1},
	} // of new vertices to the community of everyone
	if n := len(delta.Edges) + len(delta.Endpoints) + len(delta.Labels); n > 0 ||
		!slices.Equal(delta.Members, joins) ||
		len(refused) > 0 {
		t.Fatalf("delta is %+v, refused %v", delta, refused)
	}
	if s.View().Vertices() != 5 || delta.FirstVertex != 3 {
		t.Fatalf("%d vertices, new from %d on", s.View().Vertices(), delta.FirstVertex)
	}
}

// Assertions of absence must not create the vertex or the community that they name.
func TestAbsenceCreatesNothing(t *testing.T) {
	s := newTestStore(t, Config{})
	remove := link(1, 2, 0)
	remove.Remove = true
	s.Apply(&event.Batch{
		Edges: []event.Edge{
			remove,
		}, Labels: []event.Label{{Vertex: number(3), Class: event.NoClass}},
		Members:  []event.Member{{Community: "c", Vertex: number(4)}},
		Vertices: []event.Vertex{{Vertex: number(5), Erase: true}},
	})
	if w := s.View(); w.Vertices() != 0 || w.Communities() != 0 {
		t.Fatalf("%d vertices and %d communities, want none", w.Vertices(), w.Communities())
	}
}

// Each refusal must name its reason, its message and its place in it, and change
// nothing.
func TestRefusals(t *testing.T) {
	s := newTestStore(
		t,
		Config{
			Communities:   testRules,
			Limits:        event.Limits{Vertices: 4, Edges: 2, Communities: 6},
			versionsMax:   1,
			attributesMax: 1,
		},
	)
	one := []uint32{event.One, 0, 0}
	long := event.ParseID(strings.Repeat("x", IDBytesMax+1))
	nan := event.Value{Kind: event.NumberValue, Number: math.NaN()}
	b := event.Batch{
		Edges: []event.Edge{
			link(1, 1, 1), link(1, 2, 0), link(1, 2, math.NaN()), link(1, 2, 2*event.WeightMax),
			link(1, 2, event.WeightUnit/2),
			link(1, 2, 1), link(2, 3, 1), link(1, 3, 1),
			{Src: number(1), Dst: long, Weight: 1},
			link(8, 9, 1),
		},
		Labels: []event.Label{
			{Vertex: number(1), Class: testClasses},
			{Vertex: number(1), Class: -2},
			{Vertex: number(1), Role: 2},
			{Vertex: long},
			{Vertex: number(4)},
			{Vertex: number(5)},
		},
		Predictions: []event.Prediction{
			{Vertex: number(1), Units: one[:2]},
			{Vertex: number(1), Units: []uint32{1, 2, 3}},
			{Vertex: number(1), Units: one, Version: "a"},
			{Vertex: number(1), Units: one, Version: "b"},
		},
		Members: []event.Member{
			{Community: "german", Vertex: number(1), Multiplicity: 1},
			{Community: "", Vertex: number(1), Multiplicity: 1},
			{Community: "sixth", Vertex: number(1), Multiplicity: 1},
			{Community: "seventh", Vertex: number(1), Multiplicity: 1},
		},
		Vertices: []event.Vertex{
			{Vertex: number(1), Attributes: []event.Attribute{{Key: "a", Value: nan}}},
			{Vertex: number(1), Attributes: []event.Attribute{{Key: "a"}}},
			{Vertex: number(1), Attributes: []event.Attribute{{Key: "a"}, {Key: "b"}}},
		},
	}
	for kind := range event.Kind(event.Kinds) {
		for i := range b.Count(kind) {
			_, index, _ := b.At(kind, i)
			*index = uint32(i)
		}
	}
	for i := range b.Edges { // of the second message the first event was refused
		b.Edges[i].Position, b.Edges[i].Index = event.Position(7+i/5), uint32(i%5+i/5)
	}
	_, refused := s.Apply(&b)
	var got []string
	for _, r := range refused {
		got = append(got, fmt.Sprintf("%v %d/%d %s", r.Kind, r.Position, r.Index, r.Reason))
		if !json.Valid(r.Original) {
			t.Errorf(
				"the original of %v %d/%d is not JSON: %q", r.Kind, r.Position, r.Index, r.Original,
			)
		}
	}
	want := []string{
		"vertex 0/0 bad-value", "vertex 0/2 limit-exceeded",
		"edge 7/0 self-loop", "edge 7/1 bad-weight", "edge 7/2 bad-weight", "edge 7/3 bad-weight",
		"edge 7/4 bad-weight",
		"edge 8/4 bad-id", "edge 8/5 limit-exceeded",
		"label 0/0 unknown-class", "label 0/1 unknown-class", "label 0/2 bad-value",
		"label 0/3 bad-id", "label 0/5 limit-exceeded",
		"prediction 0/0 wrong-classes", "prediction 0/1 not-normal",
		"prediction 0/3 limit-exceeded",
		"edge 8/2 limit-exceeded",
		"member 0/0 bad-value", "member 0/1 missing-field", "member 0/3 limit-exceeded",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("refused\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if w := s.View(); w.Vertices() != 4 || w.Edges() != 2 || w.Communities() != 6 {
		t.Fatalf("%d vertices, %d edges, %d communities", w.Vertices(), w.Edges(), w.Communities())
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// The sum of all weights must stay where every sum of weights is exact.
func TestWeightSumIsBounded(t *testing.T) {
	s := newTestStore(t, Config{})
	var b event.Batch
	for i := range uint64(300) {
		b.Edges = append(b.Edges, link(0, i+1, event.WeightMax))
	}
	_, refused := s.Apply(&b)
	if sum := s.View().WeightSum(); sum != weightSumMax ||
		len(refused) != 300-weightSumMax/event.WeightMax/2 {
		t.Fatalf("weight sum %v, %d refused", sum, len(refused))
	}
}

// The multiplicities of a community must stay small enough that every sum over its members
// is exact, in one batch and over several. A member that leaves makes room for others.
func TestMultiplicitiesOfACommunityAreBounded(t *testing.T) {
	s := newTestStore(t, Config{})
	join := func(from, to uint64, multiplicity uint32) (refused int) {
		var b event.Batch
		for v := from; v < to; v++ {
			b.Members = append(
				b.Members,
				event.Member{Community: "many", Vertex: number(v), Multiplicity: multiplicity},
			)
		}
		_, list := s.Apply(&b)
		return len(list)
	}
	const most = multiplicitiesMax / math.MaxUint32
	if refused := join(0, most+1, math.MaxUint32); refused != 1 {
		t.Fatalf("%d were refused in one batch, want 1", refused)
	}
	if refused := join(most+1, most+3, math.MaxUint32); refused != 2 {
		t.Fatalf("%d were refused in another, want 2", refused)
	}
	if refused := join(0, 2, 0) + join(most+1, most+3, math.MaxUint32); refused != 0 {
		t.Fatalf("%d were refused where two had left", refused)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// An edge must end when the log's time reaches its time plus its time to live,
// and the last assertion alone must decide when that is.
func TestExpiry(t *testing.T) {
	s := newTestStore(t, Config{})
	at := func(now event.Time, edges ...event.Edge) string {
		delta, _ := s.Apply(&event.Batch{Edges: edges, Time: now})
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		var changes []string
		for _, e := range delta.Edges {
			changes = append(changes, fmt.Sprint(e.U, "-", e.V, ":", e.Before, ">", e.After))
		}
		return strings.Join(changes, " ")
	}
	timed := func(a, b uint64, from event.Time, ttl time.Duration) event.Edge {
		e := link(a, b, 1)
		e.Time, e.TTL = from, ttl
		return e
	}
	steps := []struct {
		now   event.Time
		edges []event.Edge
		want  string
	}{
		{
			100,
			[]event.Edge{
				timed(1, 2, 100, 10),
				timed(1, 3, 100, 20),
				timed(1, 4, 100, 10),
				timed(1, 5, 50, 10),
			},
			"0-1:0>1 0-2:0>1 0-3:0>1",
		},
		{109, nil, ""},
		{110, []event.Edge{timed(1, 2, 109, 30), link(2, 3, 1)}, "0-3:1>0 1-2:0>1"},
		{119, []event.Edge{link(1, 3, 1)}, ""},                    // now without an end
		{130, []event.Edge{timed(1, 2, 130, 1)}, ""},              // sooner than before
		{131, nil, "0-1:1>0"},                                     //
		{131, []event.Edge{timed(1, 2, 131, 1)}, "0-1:0>1"},       //
		{500, []event.Edge{timed(6, 7, 0, 1)}, "0-1:1>0 5-6:0>1"}, // without a time: from now on
		{501, nil, "5-6:1>0"},
		{502, []event.Edge{timed(6, 7, 502, math.MaxInt64)}, "5-6:0>1"},
	}
	for i, step := range steps {
		if got := at(step.now, step.edges...); got != step.want {
			t.Fatalf("step %d at %d: %q, want %q", i, int64(step.now), got, step.want)
		}
	}
}

// Replacing the rules must move members by the new rules and must not move the others.
func TestSetCommunities(t *testing.T) {
	s := newTestStore(t, Config{Communities: testRules})
	h := newHistory(5, 60, false)
	var b event.Batch
	for range 30 {
		h.batch(&b, 150)
		s.Apply(&b)
	}
	w := s.View()
	listed, _ := w.FindCommunity("listed")
	want, _ := w.Members(listed)
	french := Rule{
		Name:  "german",
		Kind:  ByAttribute,
		Key:   "language",
		Value: event.Value{Kind: event.StringValue, Text: "fr"},
	}
	for range 2 { // the second time nothing is new
		if err := s.SetCommunities([]Rule{
			{Name: "listed"},
			french,
			{Name: "late"},
			{Name: "everybody", Kind: Everyone},
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		w = s.View()
		var names []string
		for c := range Community(w.Communities()) {
			names = append(names, w.CommunityName(c))
		}
		if !slices.Equal(names, []string{"listed", "later", "late", "german", "everybody"}) {
			t.Fatalf("communities %q", names)
		}
		if have, _ := w.Members(0); !slices.Equal(have, want) {
			t.Fatalf("members %v of a community that stays, want %v", have, want)
		}
		if list, _ := w.Members(3); len(list) == 0 {
			t.Fatal("a community by attribute has no members")
		}
	}
	if err := s.SetCommunities([]Rule{{Name: "a"}, {Name: "a"}}); err == nil {
		t.Fatal("a rule defined twice was accepted")
	}
	twin := load(t, Config{Classes: testClasses}, save(t, s))
	if part := differ(s, twin); part != "" {
		t.Fatalf("loaded store differs in %s", part)
	}
}

// Apply must not allocate once it has seen as much as it is going to see.
func TestApplyDoesNotAllocateInSteadyState(t *testing.T) {
	s := newTestStore(t, Config{Communities: allRules, hubDegree: 16})
	h := newHistory(11, 200, true)
	batches := make([]event.Batch, 12)
	for i := range batches {
		h.batch(&batches[i], 400)
		for j := range batches[i].Edges {
			batches[i].Edges[j].TTL = 0
		}
		if v := batches[i].Vertices; len(v) > 0 && v[0].Erase {
			batches[i].Vertices = nil
		}
	}
	round := func() {
		for i := range batches {
			s.Apply(&batches[i])
		}
	}
	for range 10 {
		round()
	}
	for i := range batches { // refused events are encoded as JSON, which allocates
		_, refused := s.Apply(&batches[i])
		keep := batches[i].Predictions[:0]
		for j, p := range batches[i].Predictions {
			is := func(r event.Refusal) bool {
				return r.Kind == event.KindPrediction &&
					bytes.Equal(
						r.Original,
						wire.AppendJSON(nil, &batches[i], event.KindPrediction, j),
					)
			}
			if !slices.ContainsFunc(refused, is) {
				keep = append(keep, p)
			}
		}
		batches[i].Predictions = keep
	}
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Fatalf("%v allocations in %d batches", n, len(batches))
	}
	id, w := event.ParseID("vertex-7"), s.View()
	if n := testing.AllocsPerRun(100, func() {
		w.Lookup(id)
		w.Attribute(3,
			"language")
		w.MemberOf(3)
	}); n > 0 {
		t.Fatalf("look-ups allocate %v times", n)
	}
}

// Every violation of a configuration must be reported at once.
func TestValidateReportsEveryViolation(t *testing.T) {
	_, err := New(Config{Classes: 0, Limits: event.Limits{Edges: -1}, Communities: []Rule{
		{
			Name: "",
		},
		{Name: "a"},
		{Name: "a"},
		{Name: "b", Kind: 9},
		{Name: "c", Kind: ByAttribute},
		{Name: "d", Key: "k"},
	}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"classes", "edges max", "no name", "twice", "unknown rule",
		"needs an attribute", "not defined by it",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
