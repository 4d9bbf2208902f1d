package bench

import (
	"math"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

func smallGraph(t *testing.T, seed uint64, n, edges int) *Graph {
	t.Helper()
	w := &World{Config: Config{Vertices: n, Edges: edges, Seed: seed, Progress: t.Output()}}
	g, err := w.shared()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.release)
	return g
}

// exact returns the normalised solution of the source of f.
func exact(t *testing.T, g *Graph, f *diffusion.Field) []float64 {
	t.Helper()
	view := g.store.View()
	changes, _ := sourceOf(f, view)
	solved, err := diffusion.NewField(diffusion.Config{Alpha: alpha})
	if err != nil {
		t.Fatal(err)
	}
	if c := solved.Solve(view, changes, 1e-11); c > 1e-11 {
		t.Fatalf("solved to %v only", c)
	}
	x := make([]float64, view.Vertices())
	for v := range x {
		x[v] = solved.Mass(graphstore.Vertex(v)) / solved.SourceSum()
	}
	return x
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Abs(a[i] - b[i])
	}
	return sum
}

// The published rule must stay within its own bound of what our field solves to,
// after every batch and however often it pushes; else a comparison with it means
// nothing.
func TestPublishedRuleIsCorrect(t *testing.T) {
	for seed := range uint64(8) {
		g := smallGraph(t, seed, 300, 1500)
		f, err := newField(g, 1)
		if err != nil {
			t.Fatal(err)
		}
		r := newRules(g.store.View(), f)
		watch := newStopwatch()
		for batch := range 30 {
			view, delta := g.change(40)
			f.Update(view, delta, nil)
			r.follow(delta.Edges, watch, watch)
			want := exact(t, g, f)
			for name, s := range map[string]*rule{"single": r.single, "batched": r.batched} {
				if e, bound := distance(s.p, want), s.bound(); e > bound+1e-10 || bound > tolerance*1.3 {
					t.Fatalf("seed %d batch %d: %s: error %v, bound %v", seed, batch, name, e, bound)
				}
			}
			for v, neighbors := range r.g.neighbors {
				if len(neighbors) != len(view.Neighbors(graphstore.Vertex(v))) {
					t.Fatalf("seed %d batch %d: the rule walks another graph at %d", seed, batch, v)
				}
			}
		}
	}
}

// Plain iteration must reach the certificate that it is asked for, on weighted
// graphs too.
func TestPlainIterationReachesItsCertificate(t *testing.T) {
	for seed := range uint64(8) {
		g := smallGraph(t, seed, 200, 800)
		f, err := newField(g, 20)
		if err != nil {
			t.Fatal(err)
		}
		for _, certificate := range []float64{1e-1, 1e-3, 1e-8} {
			g.draw(100)
			g.reweigh(50)
			view, delta := g.apply()
			f.Update(view, delta, nil)
			p := plain{alpha: alpha}
			_, source := sourceOf(f, view)
			passes := p.solve(view, source, certificate)
			for v := range p.x {
				p.x[v] /= f.SourceSum()
			}
			if e := distance(p.x, exact(t, g, f)); e > certificate || passes == plainStepsMax {
				t.Errorf("seed %d: error %v after %d passes, asked for %v", seed, e, passes, certificate)
			}
			if e := trueError(f, &p, view, 1e-9); e > f.Certificate()+1e-9 {
				t.Errorf("seed %d: the field errs by %v, its certificate is %v", seed, e, f.Certificate())
			}
		}
	}
}
