package diffusion

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"gqlstream/graphstore"
)

func newDual(t testing.TB, alpha, tolerance float64, functions int) *Dual {
	g, err := NewDual(Config{Alpha: alpha, Tolerance: tolerance, Functions: functions})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// values returns some labels coming, going and changing, as one-hot or fractional
// functions of a vertex.
func (w *world) values(g *Dual, view graphstore.View) []ValueChange {
	var changes []ValueChange
	now := map[[2]int]float64{}
	for range w.r.IntN(5) {
		if view.Vertices() == 0 {
			break
		}
		v, i := Vertex(w.r.IntN(view.Vertices())), w.r.IntN(g.l)
		key := [2]int{int(v), i}
		have, ok := now[key]
		if f := []float64(nil); !ok && int(v) < len(g.rows) {
			if f = g.Function(v); f != nil {
				have = f[i]
			}
		}
		want := float64(w.r.IntN(3)) / 2
		now[key] = want
		changes = append(changes, ValueChange{v, i, want - have})
	}
	return changes
}

// Check recomputes the state of the dual from y, f and view, and reports differences beyond
// the rounding in its account.
func (g *Dual) Check(view graphstore.View) error {
	if g.stale {
		return nil
	}
	if len(g.rows) != view.Vertices() {
		return fmt.Errorf(
			"diffusion: dual of %d vertices, graph of %d",
			len(g.rows),
			view.Vertices(),
		)
	}
	var errs []error
	exact := make([]float64, g.l)
	for i := range g.rows {
		v := Vertex(i)
		d, r := g.residuals(v)
		if want := view.Degree(v) + 1; d != want {
			errs = append(errs, fmt.Errorf("degree of %d is %v, graph says %v", v, d, want))
		}
		g.residualsAt(view, v, 0, exact)
		allowed := shrinkMax*g.rounding + float64(len(view.Neighbors(v))+8)*g.scale()
		allowed *= unitRoundoff * g.alpha * d
		for j, x := range r {
			if !(math.Abs(x-exact[j]) <= allowed) {
				errs = append(
					errs,
					fmt.Errorf("residual %d of %d is %v, recomputed %v, allowed difference %v",
						j, v, x, exact[j], allowed),
				)
			}
			if math.Abs(x) > g.alpha*d*g.bound*(1+4*unitRoundoff) {
				errs = append(errs, fmt.Errorf("residual %d of %d is %v, above the bound", j, v, x))
			}
		}
	}
	if want := view.WeightSum() + float64(len(g.rows)); g.degreeSum != want {
		errs = append(errs, fmt.Errorf("sum of degrees is %v, graph says %v", g.degreeSum, want))
	}
	if len(errs) > 0 {
		return fmt.Errorf("diffusion: %w", errors.Join(errs...))
	}
	return nil
}

// checkDual compares g with Gaussian elimination.
func checkDual(t *testing.T, g *Dual, view graphstore.View, seed uint64, step int) {
	t.Helper()
	if err := g.Check(view); err != nil {
		t.Fatalf("seed %d step %d: %v", seed, step, err)
	}
	n := view.Vertices()
	if n == 0 {
		return
	}
	b := mat.NewDense(n, g.l, nil)
	for v := range n {
		for i, f := range g.Function(Vertex(v)) {
			b.Set(v, i, g.config.Alpha*(view.Degree(Vertex(v))+1)*f)
		}
	}
	var y mat.Dense
	if err := y.Solve(system(view, g.config.Alpha), b); err != nil {
		t.Fatal(err)
	}
	g.Prepare(view)
	for v := range n {
		e := &newEstimates(g.l, 1)[0]
		g.add(e, Vertex(v), 1)
		estimates := g.corrected(e)
		for i, have := range g.Values(Vertex(v)) {
			if e := math.Abs(have - y.At(v, i)); e > g.Certificate()+1e-11 {
				t.Fatalf("seed %d step %d: value %d of %d is %v, want %v, certificate %v",
					seed, step, i, v, have, y.At(v, i), g.Certificate())
			}
			if e := math.Abs(estimates[i] - y.At(v, i)); e > 2*g.Certificate()+1e-11 {
				t.Fatalf(
					"seed %d step %d: value %d of %d is estimated as %v, want %v, certificate %v",
					seed, step, i, v, estimates[i], y.At(v, i), g.Certificate(),
				)
			}
		}
	}
}

// After every batch of any history every value must be as near to the dense
// solution as the certificate says.
func TestDualStaysWithinCertificate(t *testing.T) {
	for seed := range uint64(96) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 4+int(seed%50), weighted)
		g := newDual(t, alpha, tolerance, []int{1, 4, 5, 8, 3}[seed%5])
		for step := range 25 {
			view, delta := w.next()
			before := slices.Clone(g.y)
			seen := len(g.rows)
			values := w.values(g, view)
			if w.r.IntN(10) == 0 {
				if c := g.Solve(view, values, 1e-9); c > 1e-9 {
					t.Fatalf("seed %d step %d: solved to %v", seed, step, c)
				}
			} else {
				g.Update(view, delta, values)
			}
			checkDual(t, g, view, seed, step)
			if c := g.Certificate(); c > tolerance*(1+2*roundingShare) {
				t.Fatalf("seed %d step %d: certificate %v, tolerance %v", seed, step, c, tolerance)
			}
			for v := range seen {
				same := slices.Equal(before[v*g.l:(v+1)*g.l], g.Values(Vertex(v)))
				if !same && !slices.Contains(g.Touched(), Vertex(v)) {
					t.Fatalf("seed %d step %d: values of %d changed untouched", seed, step, v)
				}
			}
		}
	}
}

// The dual of f, summed over a source, must equal the field of the source, summed over f.
func TestDualAgreesWithField(t *testing.T) {
	for seed := range uint64(24) {
		alpha, _, weighted := settings(seed)
		w := newWorld(t, seed, 150, weighted)
		f, g := newField(t, alpha, 1e-4), newDual(t, alpha, 1e-4, 4)
		for step := range 10 {
			view, delta := w.next()
			f.Update(view, delta, w.moves(view))
			g.Update(view, delta, w.values(g, view))
			if f.SourceSum() == 0 {
				continue
			}
			want, have := make([]float64, 4), make([]float64, 4)
			for v := range view.Vertices() {
				for i, y := range g.Values(Vertex(v)) {
					have[i] += f.Source(Vertex(v)) * y
				}
				for i, x := range g.Function(Vertex(v)) {
					want[i] += x * f.Mass(Vertex(v))
				}
			}
			allowed := f.SourceSum() * (f.Certificate()*g.peak + g.Certificate())
			for i := range want {
				if math.Abs(want[i]-have[i]) > allowed+1e-11 {
					t.Fatalf("seed %d step %d: function %d: field %v, dual %v, allowed %v",
						seed, step, i, want[i], have[i], allowed)
				}
			}
		}
	}
}

func TestSteadyDualUpdatesDoNotAllocate(t *testing.T) {
	r := newRandomGraph(t, rand.New(rand.NewPCG(6, 6)), 1000, 8000)
	g := newDual(t, 0.1, 1e-2, 4)
	g.Solve(r.store.View(), []ValueChange{{1, 0, 1}, {2, 1, 1}, {3, 2, 1}}, 1e-2)
	for range 200 {
		view, delta := r.change(10)
		g.Update(view, delta, nil)
	}
	view := r.store.View()
	values := []ValueChange{{1, 0, 1}, {1, 0, -1}}
	if n := testing.AllocsPerRun(50, func() { g.Update(view, nil, values) }); n != 0 {
		t.Fatalf("%v allocations an update", n)
	}
}

func TestDualConfigReportsEveryViolation(t *testing.T) {
	for _, c := range []Config{
		{},
		{Functions: -1},
		{Functions: 1, Alpha: 3},
		{Functions: 1, Tolerance: -1},
	} {
		if _, err := NewDual(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// BenchmarkDual measures K = 2 classes through K and through K^2 cells, with a
// tenth of the vertices labelled: the cost of an edge for all communities at once.
func BenchmarkDual(b *testing.B) {
	for _, functions := range []int{4, 8} {
		for _, tolerance := range []float64{1e-2, 1e-3} {
			for _, batch := range []int{1, 100, 1000, 10000} {
				b.Run(
					fmt.Sprintf("functions=%d/tau=%g/batch=%d", functions, tolerance, batch),
					func(b *testing.B) {
						benchmarkDual(b, functions, tolerance, batch)
					},
				)
			}
		}
	}
}

func benchmarkDual(b *testing.B, functions int, tolerance float64, batch int) {
	lockThread(b)
	r := benchmarkGraph(b)
	g := newDual(b, 0.1, tolerance, functions)
	draw := rand.New(rand.NewPCG(3, 3))
	var values []ValueChange
	for v := range r.store.View().Vertices() {
		if draw.IntN(10) == 0 {
			for i := range functions {
				values = append(values, ValueChange{Vertex(v), i, draw.Float64()})
			}
		}
	}
	start := cpuTime()
	g.Solve(r.store.View(), values, tolerance/3)
	solve := cpuTime() - start
	for range 20_000/batch + 1 {
		view, delta := r.change(batch)
		g.Update(view, delta, nil)
	}
	spent, before, n, touched := time.Duration(0), g.Work(), 0, 0
	for b.Loop() {
		view, delta := r.change(batch)
		start := cpuTime()
		g.Update(view, delta, nil)
		spent += cpuTime() - start
		touched += len(g.Touched())
		n++
	}
	events, after := float64(n*batch), g.Work()
	b.ReportMetric(float64(spent)/float64(n), "ns/op")
	b.ReportMetric(float64(spent)/events, "ns/event")
	b.ReportMetric(events/spent.Seconds(), "events/s")
	b.ReportMetric(float64(after.Traversals-before.Traversals)/events, "visits/event")
	b.ReportMetric(float64(touched)/events, "touched/event")
	b.ReportMetric(float64(after.Solves-before.Solves), "solves")
	b.ReportMetric(solve.Seconds()*1e3, "solve-ms")
}
