package diffusion

import (
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"

	"gqlstream/graphstore"
)

// A relaxation is divided at random, saved and restored now and then, and its graph changes
// meanwhile. It must exceed its limit of visits by at most the visits of one vertex. While the
// graph does not change, it must have the bits of a relaxation that was neither divided nor saved.
// At the end it must give the dense solution for the final graph.
func TestRelaxationsAreDivided(t *testing.T) {
	divided := 0
	for seed := range uint64(48) {
		alpha, _, weighted := settings(seed)
		w := newWorld(t, seed, 10+int(seed%50), weighted)
		view, _ := w.next()
		var at []Vertex
		var f []float64
		for v := range Vertex(view.Vertices()) {
			if w.r.IntN(2) == 0 {
				at = append(at, v)
				for range 8 {
					f = append(f, float64(w.r.IntN(5))-2)
				}
			}
		}
		config := Config{Alpha: alpha, Tolerance: 1e-12, Functions: 8}
		x, whole := NewRelaxation(config, at, f), NewRelaxation(config, at, f)
		work := 0.0
		finish := func() {
			for done := false; !done; {
				visits, visited := float64(1+w.r.IntN(200)), 0.0
				visited, done = x.Relax(view, visits)
				divided++
				if work += visited; visited >= visits+maxWork(view) {
					t.Fatalf(
						"seed %d: %v visits were made, allowed were %v and those of a vertex", seed,
						visited, visits,
					)
				}
				restored, err := RestoreRelaxation(alpha, view, x.State())
				if err != nil || !reflect.DeepEqual(restored.State(), x.State()) {
					t.Fatalf("seed %d: a state changed in saving it: %v", seed, err)
				}
				x = restored
			}
		}
		if visited, _ := whole.Relax(view, math.Inf(1)); visited > 0 {
			finish()
			if !reflect.DeepEqual(whole.State(), x.State()) || visited != work {
				t.Fatalf(
					"seed %d: divided and whole are not the same; %v and %v visits", seed, work,
					visited,
				)
			}
		}
		passes := NewRelaxation(config, at, f).left
		x.left = passes
		for range 5 {
			x.Relax(view, float64(w.r.IntN(500)))
			view, _ = w.next()
		}
		x.left = passes
		finish()
		checkRelaxation(t, x, view, alpha, seed)
	}
	if divided < 1000 {
		t.Errorf("only %d steps", divided)
	}
}

// maxWork returns the most visits that a vertex takes.
func maxWork(view graphstore.View) (most float64) {
	for v := range Vertex(view.Vertices()) {
		most = max(most, float64(2*(vertexCost+len(view.Neighbors(v)))))
	}
	return most
}

func checkRelaxation(
	t *testing.T, x *Relaxation, view graphstore.View, alpha float64, seed uint64,
) {
	t.Helper()
	n := view.Vertices()
	for i, b := range x.blocks {
		rhs := mat.NewDense(n, lanes, nil)
		for k, v := range b.at {
			for j, f := range b.f[k] {
				rhs.Set(int(v), j, alpha*(view.Degree(v)+1)*f)
			}
		}
		var y mat.Dense
		if err := y.Solve(system(view, alpha), rhs); err != nil {
			t.Fatal(err)
		}
		for v := range n {
			for j, have := range b.y[v] {
				if off := math.Abs(have - y.At(v, j)); off > 1e-8 {
					t.Fatalf("seed %d: value %d of vertex %d is off by %g", seed, i*lanes+j, v, off)
				}
			}
		}
	}
}
