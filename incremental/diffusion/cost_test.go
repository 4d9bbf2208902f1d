package diffusion

import (
	"math/rand/v2"
	"testing"

	"gqlstream/graphstore"
)

// cost is the work between two counts, in neighbours visited.
func cost(view graphstore.View, before, after Work) float64 {
	passes := after.Iterations + after.Rebuilds - before.Iterations - before.Rebuilds
	return float64(after.Traversals-before.Traversals) + pushCost*float64(after.Pushes-before.Pushes) +
		float64(passes)*passCost(view)
}

// No batch, however large, may cost much more than a recompute to the same
// certificate, and small ones must cost far less.
func TestUpdateCostsNoMoreThanRecompute(t *testing.T) {
	for _, shape := range []struct{ n, edges int }{{2000, 12000}, {2000, 80000}, {4000, 8000}} {
		for _, tolerance := range []float64{1e-1, 1e-2, 1e-4} {
			g := newRandomGraph(t, rand.New(rand.NewPCG(8, 8)), shape.n, shape.edges)
			f := newField(t, 0.1, tolerance)
			sources := benchmarkSources(g, 50)
			f.Solve(g.store.View(), sources, tolerance/3)
			worst := 0.0
			for _, events := range []int{1, 10, 100, 1000, 3000, 300, 5000} {
				before := f.Work()
				view, delta := g.change(events)
				f.Update(view, delta, nil)
				spent := cost(view, before, f.Work())
				fresh := newField(t, 0.1, tolerance)
				fresh.Solve(view, sources, f.Certificate())
				ratio := spent / cost(view, Work{}, fresh.Work())
				worst = max(worst, ratio)
				if ratio > 1.2 || events == 1 && tolerance == 1e-1 && ratio > 0.2 {
					t.Errorf("%+v tolerance %v, %d events: %.2f times a recompute", shape, tolerance, events, ratio)
				}
			}
			t.Logf("%+v tolerance %v: at most %.2f times a recompute", shape, tolerance, worst)
		}
	}
}
