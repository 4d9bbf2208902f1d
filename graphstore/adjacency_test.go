package graphstore

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"gqlstream/ingest/event"
)

// A hub that grows to thousands of neighbours, churns and shrinks to none must
// agree with a map at every step, its index included.
func TestHubAgreesWithMapWhileItGrowsAndShrinks(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g := newAdjacency([]int{4, 16, 128, 256}[seed])
		const n = 4000
		g.runs = make([]run, n+2)
		twin := map[Vertex]float64{}
		for step := range 60_000 {
			u := Vertex(1 + rng.IntN(n))
			growing := step < 20_000 || step > 30_000 && step < 40_000
			before := twin[u]
			if got := g.weight(0, u); got != before {
				t.Fatalf("seed %d step %d: weight to %d is %v, want %v", seed, step, u, got, before)
			}
			after := 0.0
			if growing && rng.IntN(4) > 0 || !growing && rng.IntN(8) == 0 {
				after = float64(1 + rng.IntN(2)*int(seed%2))
			}
			if before == after {
				continue
			}
			g.set(0, u, before, after)
			twin[u] = after
			if after == 0 {
				delete(twin, u)
			}
			if len(twin) != len(g.Neighbors(0)) {
				t.Fatalf(
					"seed %d step %d: %d neighbours, want %d", seed, step, len(g.Neighbors(0)),
					len(twin),
				)
			}
			if step%1000 == 0 {
				if err := g.check(); err != nil {
					t.Fatalf("seed %d step %d: %v", seed, step, err)
				}
			}
		}
		for u, weight := range twin {
			g.set(0, u, weight, 0)
		}
		g.compact()
		if err := g.check(); err != nil {
			t.Fatal(err)
		}
		if g.heavy != 0 || len(g.hubs) != 0 {
			t.Fatalf(
				"seed %d: an empty graph has %d heavy entries and %d hubs", seed, g.heavy,
				len(g.hubs),
			)
		}
	}
}

// A compaction must need one copy of the graph at most, like a checkpoint.
func TestCompactionTakesOneMoreGraph(t *testing.T) {
	g := newBenchGraph(hubDegreeDefault)
	insertAll(g, arrivals(benchArrivals/4))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	g.compact()
	runtime.ReadMemStats(&after)
	if took, graph := after.TotalAlloc-before.TotalAlloc, uint64(g.bytes()); took > graph+1<<20 {
		t.Errorf(
			"the compaction of %d edges took %d bytes beside the graph, want %d at most", g.edges,
			took, graph,
		)
	}
	if err := g.check(); err != nil {
		t.Fatal(err)
	}
}

// A compaction must give back the memory of edges that are gone.
func TestIdleMemoryIsGivenBack(t *testing.T) {
	const leaves = 1 << 19
	s := newTestStore(t, Config{})
	var b event.Batch
	for remove := range 2 {
		for from := uint64(0); from < leaves; from += 1 << 15 {
			b.Reset()
			for i := range uint64(1 << 15) {
				b.Edges = append(b.Edges, event.Edge{
					Src: event.NumberID(
						0,
					), Dst: event.NumberID(1 + from + i), Weight: 1, Remove: remove == 1,
				})
			}
			s.Apply(&b)
		}
	}
	s.Compact()
	for v, r := range s.edges.runs {
		if r.neighbors != nil {
			t.Fatalf("vertex %d still holds %d elements", v, cap(r.neighbors))
		}
	}
	if err := s.edges.adjacency.check(); err != nil {
		t.Fatal(err)
	}
}

// Weights that all return to one must stop costing memory after a compaction.
func TestCompactionDropsWeightsThatAreAllOne(t *testing.T) {
	s := newTestStore(t, Config{})
	edge := event.Edge{Src: event.NumberID(1), Dst: event.NumberID(2), Weight: 2.5}
	s.Apply(&event.Batch{Edges: []event.Edge{edge}})
	if w := s.View().Weights(0); len(w) != 1 || w[0] != 2.5 || s.View().WeightSum() != 5 {
		t.Fatalf("weights %v, sum %v", w, s.View().WeightSum())
	}
	edge.Weight = 1
	s.Apply(&event.Batch{Edges: []event.Edge{edge}})
	if s.View().Weights(0) != nil {
		t.Fatal("weights are not nil though all are one")
	}
	s.Compact()
	if s.edges.weights != nil {
		t.Fatal("weights are kept")
	}
}
