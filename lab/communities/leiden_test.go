package communities

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/community"
	"gonum.org/v1/gonum/graph/simple"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// edge is one weighted edge between numbered vertices.
type edge struct {
	src, dst uint64
	weight   float64
}

// storeOf returns a store with these edges. Sums of weights are exact in it.
func storeOf(t testing.TB, edges []edge) graphstore.View {
	t.Helper()
	store, err := graphstore.New(graphstore.Config{Classes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Release)
	var b event.Batch
	for _, e := range edges {
		b.Edges = append(
			b.Edges,
			event.Edge{Src: event.NumberID(e.src), Dst: event.NumberID(e.dst), Weight: e.weight},
		)
	}
	if _, refused := store.Apply(&b); len(refused) > 0 {
		t.Fatalf("refused %v", refused)
	}
	return store.View()
}

// search runs passes until one gains nothing.
func search(t testing.TB, view graphstore.View, resolution float64, seed uint64) *Search {
	t.Helper()
	s, err := NewSearch(view, resolution, seed)
	if err != nil {
		t.Fatal(err)
	}
	for s.Pass() > 1e-6 {
	}
	return s
}

// gonumGraph is the graph of a view as gonum wants it.
func gonumGraph(view graphstore.View) *simple.WeightedUndirectedGraph {
	g := simple.NewWeightedUndirectedGraph(0, 0)
	for v := range graphstore.Vertex(view.Vertices()) {
		weights := view.Weights(v)
		for i, u := range view.Neighbors(v) {
			weight := 1.0
			if weights != nil {
				weight = weights[i]
			}
			g.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(v), T: simple.Node(u), W: weight})
		}
	}
	return g
}

// compareWithGonum checks that the modularity equals that of gonum for the same partition,
// and is at least .99 of the modularity that gonum's Louvain method reaches.
func compareWithGonum(t *testing.T, name string, view graphstore.View, resolution float64) {
	t.Helper()
	g := gonumGraph(view)
	for seed := range uint64(3) {
		s := search(t, view, resolution, seed)
		ours, theirs := s.Modularity(resolution), community.Q(
			g,
			community.Modularize(g, resolution, rand.NewPCG(seed, 1)).Communities(),
			resolution,
		)
		if checked := community.Q(g, nodes(s), resolution); math.Abs(checked-ours) > 1e-9 {
			t.Errorf("%s, seed %d: modularity %v, by gonum's formula %v", name, seed, ours, checked)
		}
		t.Logf(
			"%s, seed %d: modularity %.4f in %d communities, gonum's %.4f", name, seed, ours,
			s.Count(), theirs,
		)
		if ours < .99*theirs {
			t.Errorf("%s, seed %d: modularity %v, gonum finds %v", name, seed, ours, theirs)
		}
	}
}

// nodes returns the communities of a search as gonum wants them.
func nodes(s *Search) (list [][]graph.Node) {
	for _, members := range s.Communities() {
		var c []graph.Node
		for _, v := range members {
			c = append(c, simple.Node(v))
		}
		list = append(list, c)
	}
	return list
}

// planted returns a graph of groups of equal size, and by inside the number of edges
// that each vertex makes within its group, by outside to anyone.
func planted(seed uint64, groups, size, inside, outside int, weighted bool) (edges []edge) {
	random := rand.New(rand.NewPCG(seed, 7))
	n := groups * size
	for v := range n {
		for i := range inside + outside {
			u := random.IntN(n)
			if i < inside {
				u = v/size*size + random.IntN(size)
			}
			weight := 1.0
			if weighted {
				weight = float64(1+random.IntN(8)) / 4
			}
			if u != v {
				edges = append(edges, edge{uint64(v), uint64(u), weight})
			}
		}
	}
	return edges
}

func TestModularityIsThatOfGonum(t *testing.T) {
	for _, c := range []struct {
		name  string
		edges []edge
	}{
		{"clear groups", planted(1, 10, 40, 5, 1, false)},
		{"blurred groups", planted(2, 12, 30, 3, 3, true)},
		{"no groups", planted(3, 1, 300, 0, 3, false)},
		{"many small groups", planted(4, 80, 8, 3, 1, true)},
	} {
		view := storeOf(t, c.edges)
		for _, resolution := range []float64{1, 3} {
			compareWithGonum(t, c.name, view, resolution)
		}
	}
}

// Groups that are clear must be found as they were planted.
func TestPlantedGroupsAreFound(t *testing.T) {
	const groups, size = 20, 50
	view := storeOf(t, planted(5, groups, size, 8, 1, false))
	s := search(t, view, 1, 1)
	if s.Count() != groups {
		t.Fatalf("%d communities, planted were %d", s.Count(), groups)
	}
	for _, members := range s.Communities() {
		for _, v := range members {
			if view.ID(v).Number/size != view.ID(members[0]).Number/size {
				t.Errorf("%v and %v are together", view.ID(v), view.ID(members[0]))
			}
		}
	}
}

// On random graphs, with isolated vertices and several parts, a partition must cover
// every vertex once, its communities be connected and
// the modularity never fall from one pass to the next.
func TestPartitionsHoldTheirInvariants(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		n := 5 + random.IntN(150)
		var edges []edge
		for range 1 + random.IntN(3*n) {
			if u, v := random.IntN(n), random.IntN(n); u != v {
				edges = append(edges, edge{uint64(u), uint64(v), float64(1+random.IntN(5)) / 8})
			}
		}
		if len(edges) == 0 {
			continue
		}
		view, resolution := storeOf(t, edges), []float64{.3, 1, 4}[seed%3]
		s, err := NewSearch(view, resolution, seed)
		if err != nil {
			t.Fatal(err)
		}
		before := s.Modularity(resolution)
		for range 4 {
			gain, q := s.Pass(), s.Modularity(resolution)
			if q < before-1e-12 || math.Abs(q-before-gain) > 1e-12 {
				t.Fatalf("seed %d: modularity %v, then %v, gain %v", seed, before, q, gain)
			}
			before = q
		}
		covered := 0
		for c, members := range s.Communities() {
			covered += len(members)
			if len(members) == 0 || !connected(view, members) {
				t.Errorf(
					"seed %d: community %d of %d vertices is not connected", seed, c, len(members),
				)
			}
		}
		if covered != view.Vertices() {
			t.Errorf("seed %d: %d of %d vertices", seed, covered, view.Vertices())
		}
		again := search(t, view, resolution, seed)
		if other := search(t, view, resolution, seed); !slices.Equal(again.of, other.of) {
			t.Errorf("seed %d: the same graph and seed gave two partitions", seed)
		}
	}
}

// connected reports whether vertices form one connected part among themselves.
func connected(view graphstore.View, members []graphstore.Vertex) bool {
	reached := []graphstore.Vertex{members[0]}
	for i := 0; i < len(reached); i++ {
		for _, u := range view.Neighbors(reached[i]) {
			if slices.Contains(members, u) && !slices.Contains(reached, u) {
				reached = append(reached, u)
			}
		}
	}
	return len(reached) == len(members)
}

func TestSearchRefusesInvalidQueries(t *testing.T) {
	view := storeOf(t, []edge{{1, 2, 1}})
	for _, resolution := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := NewSearch(view, resolution, 0); err == nil {
			t.Errorf("a resolution of %v is taken", resolution)
		}
	}
	if _, err := NewSearch(storeOf(t, nil), 1, 0); err == nil {
		t.Error("a graph without edges is taken")
	}
}

// BenchmarkPass measures the first pass by directed entry.
func BenchmarkPass(b *testing.B) {
	view := storeOf(b, planted(1, 200, 500, 8, 2, false))
	for b.Loop() {
		s, err := NewSearch(view, 1, 1)
		if err != nil {
			b.Fatal(err)
		}
		s.Pass()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(view.Edges()), "ns/edge")
}
