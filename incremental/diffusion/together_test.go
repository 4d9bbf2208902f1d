package diffusion

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Sources that are solved for together must stand as near to the dense solution, each
// of them, as the tolerance says.
func TestSolveTogetherIsWithinTheTolerance(t *testing.T) {
	for seed := range uint64(64) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 4+int(seed%56), weighted)
		for range 6 {
			w.next()
		}
		view, _ := w.next()
		sources := make([][]SourceChange, 1+w.r.IntN(TogetherMax))
		exact := make([][]float64, len(sources))
		for i := range sources {
			exact[i] = make([]float64, view.Vertices())
			for range w.r.IntN(5) {
				v := w.r.IntN(view.Vertices())
				if exact[i][v] == 0 {
					exact[i][v] = float64(1 + w.r.IntN(3))
					sources[i] = append(sources[i], SourceChange{Vertex(v), exact[i][v]})
				}
			}
		}
		s, err := SolveTogether(view, Config{Alpha: alpha, Tolerance: tolerance}, sources)
		if err != nil {
			t.Fatal(err)
		}
		for i, source := range exact {
			a := make([]float64, view.Vertices())
			for v := range a {
				a[v] = s.Mass(i, Vertex(v))
			}
			if e, m := distance(a, dense(t, view, alpha, source)), total(source); e > tolerance*m+1e-11*m {
				t.Fatalf("seed %d source %d of %d: error %v of %v, tolerance %v", seed, i, len(sources), e, m, tolerance)
			}
		}
	}
}

// BenchmarkSolveTogether measures four sources of 50 members, one after the other as
// fields and together.
func BenchmarkSolveTogether(b *testing.B) {
	g := benchmarkGraph(b)
	view := g.store.View()
	r := rand.New(rand.NewPCG(2, 2))
	sources := make([][]SourceChange, TogetherMax)
	for i := range sources {
		for _, v := range r.Perm(view.Vertices())[:50] {
			sources[i] = append(sources[i], SourceChange{Vertex(v), 1})
		}
	}
	for _, together := range []bool{false, true} {
		b.Run(fmt.Sprintf("together=%v", together), func(b *testing.B) {
			lockThread(b)
			spent, n := time.Duration(0), 0
			for b.Loop() {
				start := cpuTime()
				if together {
					if _, err := SolveTogether(view, Config{}, sources); err != nil {
						b.Fatal(err)
					}
				} else {
					for _, s := range sources {
						newField(b, 0, 0).Solve(view, s, 0)
					}
				}
				spent += cpuTime() - start
				n++
			}
			b.ReportMetric(float64(spent)/float64(n), "ns/op")
		})
	}
}
