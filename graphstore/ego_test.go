package graphstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// egoRules are ego networks of every size and bound around hubs and others.
func egoRules() (rules []Rule) {
	for root := range uint64(3) {
		for hops := 1; hops <= egoHopsMax; hops++ {
			for _, most := range []int{1, 20, 120, 0} {
				rules = append(rules, Rule{
					Name: fmt.Sprint(root, hops, most), Kind: Ego,
					Root: fmt.Sprint(root * 7), Hops: hops, MembersMax: most,
				})
			}
		}
	}
	return rules
}

// After every batch of a history, ego networks must equal a search from scratch. The
// history has hubs, edges that come, go and expire, and roots that are erased and come
// back. Check does the search.
func TestEgoNetworksEqualSearch(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := newTestStore(t, Config{Communities: egoRules()})
		vertices := []int{40, 150, 600}[seed%3]
		draw := func() event.ID {
			if rng.IntN(6) == 0 {
				return event.NumberID(rng.Uint64N(4)) // hubs, one of them a root
			}
			return event.NumberID(rng.Uint64N(uint64(vertices)))
		}
		now := event.Time(1)
		for i := range 60 {
			now += 10
			b := event.Batch{Time: now}
			removing := i/10%2 == 1
			for range 1 + rng.IntN(vertices/4) {
				e := event.Edge{Src: draw(), Dst: draw(), Weight: 1, Time: now}
				if e.Remove = rng.IntN(3) == 0 || removing; !e.Remove && rng.IntN(3) == 0 {
					e.TTL = 50
				}
				b.Edges = append(b.Edges, e)
			}
			if removing && rng.IntN(2) == 0 {
				b.Vertices = append(b.Vertices, event.Vertex{Vertex: draw(), Erase: true})
			}
			s.Apply(&b)
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
		}
	}
}

// A network that may hold too many must fall back to fewer hops, say so, and come
// back when edges go.
func TestEgoNetworkFallsBackToFewerHops(t *testing.T) {
	s := newTestStore(
		t,
		Config{Communities: []Rule{{Name: "near", Kind: Ego, Root: "0", Hops: 2, MembersMax: 5}}},
	)
	step := func(remove bool, n uint64) (members, hops int, delta *Delta) {
		var b event.Batch
		for i := range n {
			b.Edges = append(
				b.Edges,
				event.Edge{Src: number(1), Dst: number(2 + i), Weight: 1, Remove: remove},
			)
		}
		delta, _ = s.Apply(&b)
		list, _ := s.View().Members(0)
		return len(list), s.View().Hops(0), delta
	}
	s.Apply(&event.Batch{Edges: []event.Edge{link(0, 1, 1)}})
	for i, want := range []struct {
		remove        bool
		n             uint64
		members, hops int
		changes       int
	}{
		{false, 3, 5, 2, 3},
		{false, 4, 2, 1, 3},
		{true, 0, 2, 1, 0},
		{true, 1, 5, 2, 3},
		{false, 100, 2, 1, 3},
		{true, 97, 5, 2, 3},
	} {
		members, hops, delta := step(want.remove, want.n)
		if members != want.members || hops != want.hops || len(delta.Members) != want.changes {
			t.Fatalf(
				"step %d: %d members in %d hops by %d changes, want %+v", i, members, hops,
				len(delta.Members), want,
			)
		}
	}
	if err := s.SetCommunities(nil); err != nil || s.View().Communities() != 0 ||
		len(s.members.egos) != 0 {
		t.Fatalf("without rules: %v, %d communities", err, s.View().Communities())
	}
}

// New rules must take in their members at once. A vertex that a batch both changes and
// erases must be a member of none.
func TestRulesTakeEffectAtOnce(t *testing.T) {
	s := newTestStore(t, Config{})
	h := newHistory(3, 80, false)
	var b event.Batch
	for range 20 {
		h.batch(&b, 200)
		s.Apply(&b)
	}
	if err := s.SetCommunities(allRules); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	c, _ := s.View().FindCommunity("german adults")
	if list, _ := s.View().Members(c); len(list) == 0 || s.View().Mismatches(c) == 0 {
		t.Fatalf("%d members, %d mismatches", len(list), s.View().Mismatches(c))
	}
	id := event.ParseID("vertex-77")
	german := []event.Attribute{
		{Key: "language", Value: event.Value{Kind: event.StringValue, Text: "de"}},
	}
	s.Apply(
		&event.Batch{
			Vertices: []event.Vertex{{Vertex: id, Attributes: german}, {Vertex: id, Erase: true}},
		},
	)
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// A snapshot with members that do not follow from its edges must not load.
func TestSnapshotWithOtherMembersIsRefused(t *testing.T) {
	rules := []Rule{{Name: "near", Kind: Ego, Root: "0", Hops: 1}}
	s := newTestStore(t, Config{Communities: rules})
	s.Apply(&event.Batch{Edges: []event.Edge{link(0, 1, 1)}})
	files := save(t, s)
	s.Apply(&event.Batch{Edges: []event.Edge{link(0, 2, 1)}})
	files[membersTable] = nil
	for _, section := range s.Sections() {
		file, err := section.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if section.Table == membersTable || section.Table == metaTable ||
			section.Table == verticesTable {
			files[section.Table] = file
		}
	}
	_, err := Load(
		Config{Classes: testClasses},
		func(t Table) ([]byte, error) { return files[t], nil },
	)
	if err == nil || !errors.Is(err, errTable) {
		t.Fatalf("loaded: %v", err)
	}
}

// Definitions that cannot be kept must be refused with the reason.
func TestBadDefinitionsAreRefused(t *testing.T) {
	for want, r := range map[string]Rule{
		"column 17: unexpected token": {Kind: ByExpression, Expression: `language == "de"]`},
		"names no root":               {Kind: Ego, Hops: 1},
		"ego network of 4 hops":       {Kind: Ego, Root: "a", Hops: 4},
		"of 0 hops":                   {Kind: Ego, Root: "a"},
		"at most -1 members":          {Kind: Ego, Root: "a", Hops: 1, MembersMax: -1},
		"has a root":                  {Root: "a"},
		"has an expression":           {Kind: Everyone, Expression: "true"},
		"unknown rule 9":              {Kind: 9},
		"name is longer than 256":     {Kind: Ego, Root: strings.Repeat("x", 257), Hops: 1},
		"raises the members": {
			Kind: Ego, Root: "a", Hops: 1,
			MembersMax: egoMembersLimit,
		},
		"must be true or false":          {Kind: ByExpression, Expression: `age + 1`},
		"is not defined by it":           {Kind: Ego, Root: "a", Hops: 1, Key: "x"},
		"column 1: unexpected token EOF": {Kind: ByExpression},
	} {
		r.Name = "x"
		rules := []Rule{r, {Name: "y", Kind: Ego, Root: "b", Hops: 1}}
		if err := validateRules(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

// BenchmarkEgo measures the cost of an ego network an edge event, over churn in a graph of
// 20,000 vertices and 200,000 edges with hubs.
func BenchmarkEgo(b *testing.B) {
	for _, hops := range []int{0, 1, 2, 3} {
		b.Run(fmt.Sprintf("hops=%d", hops), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 3))
			var rules []Rule
			if hops > 0 {
				rules = []Rule{{Name: "near", Kind: Ego, Root: "5000", Hops: hops}}
			}
			s := newTestStore(b, Config{Communities: rules})
			batches := churn(rng, 20_000, 200_000, 1000)
			for i := range batches {
				s.Apply(&batches[i])
			}
			again := slices.Clone(batches[len(batches)/2:])
			b.ResetTimer()
			for i := range b.N {
				half := &again[i%len(again)]
				for j := range half.Edges {
					half.Edges[j].Remove = i/len(again)%2 == 0
				}
				s.Apply(half)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
			if hops > 0 {
				list, _ := s.View().Members(0)
				b.ReportMetric(float64(len(list)), "members")
			}
		})
	}
}

// churn returns batches of new edges between vertices that are often small numbers.
func churn(rng *rand.Rand, vertices, edges, size int) (batches []event.Batch) {
	draw := func() event.ID {
		x := rng.Float64()
		return event.NumberID(uint64(x * x * float64(vertices)))
	}
	for range edges / size {
		var b event.Batch
		for range size {
			b.Edges = append(b.Edges, event.Edge{Src: draw(), Dst: draw(), Weight: 1})
		}
		batches = append(batches, b)
	}
	return batches
}
