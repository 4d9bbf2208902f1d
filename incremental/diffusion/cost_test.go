package diffusion

import (
	"math/rand/v2"
	"testing"

	"gqlstream/graphstore"
)

// cost is the work between two counts, in neighbours visited.
func cost(view graphstore.View, before, after Work) float64 {
	passes := after.Iterations + after.Rebuilds - before.Iterations - before.Rebuilds
	return float64(after.Traversals-before.Traversals) + pushCost*float64(
		after.Pushes-before.Pushes,
	) +
		float64(passes)*passCost(view, passGain)
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
					t.Errorf(
						"%+v tolerance %v, %d events: %.2f times a recompute", shape, tolerance,
						events, ratio,
					)
				}
			}
			t.Logf("%+v tolerance %v: at most %.2f times a recompute", shape, tolerance, worst)
		}
	}
}

// Residuals must wait while the certificate allows it, and no longer: a field with room
// pushes nothing, and in the long run it stands just below its tolerance.
func TestResidualsWaitForTheTolerance(t *testing.T) {
	for _, members := range []int{1, 40, 900} {
		const tolerance = 1e-2
		g := newRandomGraph(t, rand.New(rand.NewPCG(4, 4)), 2000, 20000)
		f := newField(t, 0.1, tolerance)
		sources := benchmarkSources(g, members)
		f.Solve(g.store.View(), sources, tolerance/10)
		early := true
		field, n := 0.0, 0.0
		for step := range 1500 {
			view, delta := g.change(4)
			f.Update(view, delta, nil)
			if c := f.Certificate(); c > tolerance {
				t.Fatalf("%d members, step %d: certificate %v", members, step, c)
			}
			if early = early && f.Certificate() < tolerance/2; early && f.Work().Pushes > 0 {
				t.Fatalf(
					"%d members, step %d: pushed at a certificate of %v", members, step,
					f.Certificate(),
				)
			}
			if step >= 500 {
				field, n = field+f.Certificate(), n+1
			}
		}
		if field/n < 0.8*tolerance {
			t.Errorf("%d members: the certificate stands at %v of %v", members, field/n, tolerance)
		}
		t.Logf("%d members: the certificate stands at %.3g, %+v", members, field/n, f.Work())
	}
}
