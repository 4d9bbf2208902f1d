package diffusion

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// checkSums compares the sums that pushes and changes have kept with a recount.
func (g *Dual) checkSums(view graphstore.View) error {
	kept := g.sums
	defer func() { g.sums = kept }()
	g.sums = sums{}
	g.sums.recount(g, view)
	scale := g.scale() * float64(1+len(g.rows)) * (1 + g.degreeSum)
	near := func(what string, have, want []float64) error {
		for i, x := range want {
			if math.Abs(have[i]-x) > 1e-13*scale {
				return fmt.Errorf("%s %d is %v, a recount gives %v", what, i, have[i], x)
			}
		}
		return nil
	}
	if err := near("sum of residuals", kept.residuals, g.sums.residuals); err != nil {
		return err
	}
	if err := near("sum of degrees", kept.degrees, g.sums.degrees); err != nil {
		return err
	}
	for i := range kept.each {
		have, want := kept.each[i], g.sums.each[i]
		have.some = slices.Clone(have.some)
		for f := range have.some {
			have.some[f] += have.whole - want.whole // both are members reached
		}
		err := near("sum over members of function", have.near, want.near)
		if err == nil {
			err = near("members reached by function", have.some, want.some)
		}
		if err == nil {
			err = near("members reached", []float64{have.sources}, []float64{want.sources})
		}
		if err != nil {
			return fmt.Errorf("community %d: %w", i, err)
		}
	}
	return nil
}

// After any history of edges, weights, values, members, labels and erasures the sums that estimates
// read must equal a recount, which reads every member, up to rounding.
func TestSumsFollowRandomHistories(t *testing.T) {
	followed, pushed := 0, uint64(0)
	for seed := range uint64(96) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 4+int(seed%50), weighted)
		store, err := graphstore.New(
			graphstore.Config{
				Classes:     2,
				Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		w.store = store
		g := newDual(t, alpha, tolerance, []int{1, 4, 5, 8, 3}[seed%5])
		for step := range 40 {
			crowdEvents(w)
			view, delta := w.next()
			values, current, before := w.values(g, view), g.sums.current, g.work.Pushes
			g.Update(view, delta, values)
			if current && g.sums.current {
				followed, pushed = followed+1, pushed+g.work.Pushes-before
				if err := g.checkSums(view); err != nil {
					t.Fatalf("seed %d step %d: %v", seed, step, err)
				}
			}
			g.Prepare(view)
		}
	}
	if followed < 1000 || pushed < 10_000 {
		t.Errorf("sums followed only %d steps with %d pushes", followed, pushed)
	}
}

// crowdEvents has members come and go, labels, and now and then an erasure.
func crowdEvents(w *world) {
	for range w.r.IntN(6) {
		v := event.NumberID(uint64(w.r.IntN(w.known)))
		switch w.r.IntN(8) {
		case 0:
			class := event.Class(w.r.IntN(2))
			if w.r.IntN(3) == 0 {
				class = event.NoClass
			}
			w.batch.Labels = append(w.batch.Labels, event.Label{Vertex: v, Class: class})
		case 1:
			if w.r.IntN(4) == 0 {
				w.batch.Vertices = append(w.batch.Vertices, event.Vertex{Vertex: v, Erase: true})
			}
		default:
			w.batch.Members = append(w.batch.Members, event.Member{
				Community: []string{"a", "b"}[w.r.IntN(2)], Vertex: v,
				Multiplicity: uint32(w.r.IntN(4)),
			})
		}
	}
}

// BenchmarkSums compares a dual that keeps the sums over forty communities with a dual of a graph
// without communities. It measures the time per neighbour that a push visits, and per edge that
// Follow takes in.
func BenchmarkSums(b *testing.B) {
	for _, functions := range []int{2, 20} {
		for _, kept := range []bool{true, false} {
			b.Run(fmt.Sprintf("functions=%d/kept=%v", functions, kept), func(b *testing.B) {
				lockThread(b)
				r := newRandomGraph(b, rand.New(rand.NewPCG(6, 6)), 60_000, 300_000)
				for v := range 60_000 {
					if c := v * 7 % 100; kept && c < 40 {
						r.batch.Members = append(
							r.batch.Members,
							event.Member{
								Community:    fmt.Sprint(c),
								Vertex:       event.NumberID(uint64(v)),
								Multiplicity: 1,
							},
						)
					}
				}
				view, _ := r.apply()
				g := newDual(b, 0.1, 1e-3, functions)
				var values []ValueChange
				for v := range 3000 {
					values = append(values, ValueChange{Vertex(v * 20), v % functions, 1})
				}
				g.Solve(view, values, 1e-4)
				following, pushing, visited := time.Duration(0), time.Duration(0), uint64(0)
				for b.Loop() {
					g.Prepare(r.store.View())
					view, delta := r.change(500)
					before, start := g.work.Traversals, cpuTime()
					g.Follow(view, delta, nil)
					followed := cpuTime()
					g.Update(view, nil, nil)
					following, pushing, visited = following+followed-start,
						pushing+cpuTime()-followed, visited+g.work.Traversals-before
				}
				b.ReportMetric(float64(pushing)/float64(visited), "ns/visit")
				b.ReportMetric(float64(following)/float64(b.N)/500, "ns/edge")
			})
		}
	}
}
