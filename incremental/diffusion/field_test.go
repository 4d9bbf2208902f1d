package diffusion

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gqlstream/graphstore"
)

// settings are the parameters that seeds run through.
func settings(seed uint64) (alpha, tolerance float64, weighted bool) {
	alphas := []float64{0.1, 0.3, 0.05, 0.85}
	tolerances := []float64{1e-2, 1e-1, 1e-4, 1e-7}
	return alphas[seed%4], tolerances[seed/4%4], seed/16%2 == 1
}

// After every batch of any history a field must stand as near to the dense
// solution as its certificate says, within its tolerance, with an exact residual.
func TestFieldStaysWithinCertificate(t *testing.T) {
	for seed := range uint64(192) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 4+int(seed%56), weighted)
		f := newField(t, alpha, tolerance)
		for step := range 30 {
			view, delta := w.next()
			before := masses(f)
			f.Update(view, delta, w.moves(view))
			checkField(t, f, view, seed, step)
			checkTouched(t, f, before, seed, step)
			if c := f.Certificate(); c > tolerance {
				t.Fatalf("seed %d step %d: certificate %v, tolerance %v", seed, step, c, tolerance)
			}
		}
	}
}

// checkField compares f with the dense solution.
func checkField(t *testing.T, f *Field, view graphstore.View, seed uint64, step int) {
	t.Helper()
	if err := f.Check(view); err != nil {
		t.Fatalf("seed %d step %d: %v", seed, step, err)
	}
	m := f.SourceSum()
	if m == 0 {
		if total(masses(f)) != 0 || f.Certificate() != 0 {
			t.Fatalf("seed %d step %d: mass without a source", seed, step)
		}
		return
	}
	a, exact := masses(f), dense(t, view, f.config.Alpha, f.source)
	if e, c := distance(a, exact)/m, f.Certificate(); e > c+1e-12 {
		t.Fatalf("seed %d step %d: error %v above the certificate %v", seed, step, e, c)
	}
	if s, c := total(a)/m, f.Certificate(); s > 1+c+1e-12 {
		t.Fatalf("seed %d step %d: total mass %v, certificate %v", seed, step, s, c)
	}
	if bound := f.rounding * unitRoundoff; bound > 1e-11*m && view.Weights(0) == nil {
		t.Fatalf("seed %d step %d: rounding bound %v of mass %v", seed, step, bound, m)
	}
}

func checkTouched(t *testing.T, f *Field, before []float64, seed uint64, step int) {
	t.Helper()
	seen := map[Vertex]bool{}
	for _, v := range f.Touched() {
		if seen[v] {
			t.Fatalf("seed %d step %d: %d touched twice", seed, step, v)
		}
		seen[v] = true
	}
	for v := range len(f.z) {
		was := 0.0
		if v < len(before) {
			was = before[v]
		}
		if now := f.Mass(Vertex(v)); now != was && !seen[Vertex(v)] {
			t.Fatalf(
				"seed %d step %d: mass of %d went from %v to %v untouched", seed, step, v, was, now,
			)
		}
	}
}

// Equal histories must give equal bits.
func TestEqualHistoriesGiveEqualBits(t *testing.T) {
	for seed := range uint64(24) {
		alpha, tolerance, weighted := settings(seed)
		a, b := newWorld(t, seed, 300, weighted), newWorld(t, seed, 300, weighted)
		f, g := newField(t, alpha, tolerance), newField(t, alpha, tolerance)
		for step := range 20 {
			view, delta := a.next()
			f.Update(view, delta, a.moves(view))
			view, delta = b.next()
			g.Update(view, delta, b.moves(view))
			if !slices.Equal(f.z, g.z) || !slices.Equal(f.r, g.r) ||
				!slices.Equal(f.Touched(), g.Touched()) || f.Certificate() != g.Certificate() {
				t.Fatalf("seed %d step %d: fields of equal histories differ", seed, step)
			}
		}
	}
}

// The residual terms of a batch are a sum: their order may change rounding only.
func TestOrderInABatchDoesNotMatter(t *testing.T) {
	for seed := range uint64(50) {
		_, _, weighted := settings(seed)
		w := newWorld(t, seed, 80, weighted)
		f := newField(t, 0.1, 1e-2)
		for range 10 {
			view, delta := w.next()
			f.Update(view, delta, w.moves(view))
		}
		view, delta := w.next()
		a, b := clone(f), clone(f)
		a.begin(view, delta)
		a.inject(view, delta)
		shuffled := *delta
		shuffled.Edges = slices.Clone(delta.Edges)
		w.r.Shuffle(len(shuffled.Edges), func(i, j int) {
			e := shuffled.Edges
			e[i], e[j] = e[j], e[i]
		})
		b.begin(view, &shuffled)
		b.inject(view, &shuffled)
		for v := range a.r {
			scale := math.Abs(a.r[v]) + a.d[v]*(1+math.Abs(a.z[v]))
			if math.Abs(a.r[v]-b.r[v]) > 1e-13*scale {
				t.Fatalf("seed %d: R(%d) is %v and %v", seed, v, a.r[v], b.r[v])
			}
		}
	}
}

func clone(f *Field) *Field {
	g := *f
	g.z, g.r, g.d, g.source = slices.Clone(f.z), slices.Clone(f.r), slices.Clone(f.d), slices.Clone(
		f.source,
	)
	g.queue, g.touched, g.touchedSet = nil, slices.Clone(f.touched), slices.Clone(f.touchedSet)
	return &g
}

// The field of a union of sources is the sum of the fields of the parts.
func TestFieldIsLinearInTheSource(t *testing.T) {
	for seed := range uint64(32) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 200, weighted)
		f, g, both := newField(t, alpha, tolerance), newField(t, alpha, tolerance), newField(
			t,
			alpha,
			tolerance,
		)
		for step := range 15 {
			view, delta := w.next()
			changes := w.moves(view)
			half := len(changes) / 2
			f.Update(view, delta, unsigned(f, changes[:half]))
			g.Update(view, delta, unsigned(g, changes[half:]))
			both.Update(view, delta, difference(both, f, g))
			a, b := masses(f), masses(g)
			for v := range a {
				a[v] += b[v]
			}
			allowed := f.Certificate()*f.SourceSum() + g.Certificate()*g.SourceSum() +
				both.Certificate()*both.SourceSum() + 1e-12*(1+both.SourceSum())
			if e := distance(a, masses(both)); e > allowed {
				t.Fatalf("seed %d step %d: distance %v, allowed %v", seed, step, e, allowed)
			}
		}
	}
}

// unsigned keeps the joins, and the leaves that f can bear.
func unsigned(f *Field, changes []SourceChange) []SourceChange {
	var kept []SourceChange
	for _, c := range changes {
		known := func(k SourceChange) bool { return k.V == c.V }
		if c.Change > 0 || f.Source(c.V)+c.Change >= 0 && !slices.ContainsFunc(kept, known) {
			kept = append(kept, c)
		}
	}
	return kept
}

// difference takes the source of both to the sum of those of f and g.
func difference(both, f, g *Field) []SourceChange {
	var changes []SourceChange
	for v := range len(f.z) {
		if c := f.Source(Vertex(v)) + g.Source(Vertex(v)) - both.Source(Vertex(v)); c != 0 {
			changes = append(changes, SourceChange{Vertex(v), c})
		}
	}
	return changes
}

// A field that nobody updated for a while, told so or not, recovers.
func TestStaleFieldRecovers(t *testing.T) {
	for seed := range uint64(64) {
		alpha, tolerance, weighted := settings(seed)
		w := newWorld(t, seed, 50, weighted)
		f := newField(t, alpha, tolerance)
		var missed []SourceChange
		for step := range 20 {
			view, delta := w.next()
			changes := append(missed, w.moves(view)...)
			if missed = nil; w.r.IntN(5) == 0 {
				missed = changes // a delta that the field is not told of
				continue
			}
			before := masses(f)
			switch w.r.IntN(4) {
			case 0:
				c := f.Solve(view, changes, 1e-9)
				if c != f.Certificate() || c > 1e-9 {
					t.Fatalf("seed %d step %d: solved to %v", seed, step, c)
				}
			default:
				f.Update(view, delta, changes)
			}
			checkField(t, f, view, seed, step)
			checkTouched(t, f, before, seed, step)
		}
	}
}

// A field made late, on a graph it never saw grow, is as good.
func TestFieldCanStartLate(t *testing.T) {
	w := newWorld(t, 3, 40, true)
	for range 20 {
		w.next()
	}
	f := newField(t, 0.1, 1e-3)
	view, delta := w.next()
	f.Update(view, delta, []SourceChange{{1, 2}, {3, 1}})
	checkField(t, f, view, 3, 0)
	if c := f.Certificate(); c > 1e-3 {
		t.Fatalf("certificate %v", c)
	}
}

var longEvents = flag.Int("events", 8000, "length of the long stream in tests")

// On a larger graph, after a long mixed stream, the certificate still holds and
// the rounding stays accounted for.
func TestCertificateHoldsAfterLongStream(t *testing.T) {
	n := 1500
	g := newRandomGraph(t, rand.New(rand.NewPCG(5, 5)), n, 12000)
	fields := []*Field{newField(t, 0.1, 1e-2), newField(t, 0.1, 1e-1), newField(t, 0.2, 1e-5)}
	joined := make([][]Vertex, len(fields))
	for i, f := range fields {
		var sources []SourceChange
		for range []int{1, 40, 700}[i] {
			sources = append(sources, SourceChange{Vertex(g.r.IntN(n)), 1})
		}
		f.Solve(g.store.View(), sources, 0)
	}
	for step := range *longEvents / 100 {
		view, delta := g.change(100)
		for i, f := range fields {
			v := Vertex(g.r.IntN(n))
			joined[i] = append(joined[i], v)
			moves := []SourceChange{{v, 1}}
			if len(joined[i]) > 20 {
				moves = append(moves, SourceChange{joined[i][0], -1})
				joined[i] = joined[i][1:]
			}
			f.Update(view, delta, moves)
			if step%20 != 19 {
				continue
			}
			if err := f.Check(view); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			e := distance(masses(f), iterated(view, f.config.Alpha, f.source)) / f.SourceSum()
			if c := f.Certificate(); e > c+1e-12 || c > f.config.Tolerance {
				t.Fatalf(
					"step %d: error %v, certificate %v, tolerance %v", step, e, c,
					f.config.Tolerance,
				)
			}
		}
	}
	for _, f := range fields {
		t.Logf(
			"%+v certificate %.3g rounding %.3g", f.Work(), f.Certificate(),
			f.rounding*unitRoundoff,
		)
	}
}

// Fields of one view may be updated side by side, with the bits of one by one.
// The race detector watches.
func TestFieldsShareNothing(t *testing.T) {
	g := newRandomGraph(t, rand.New(rand.NewPCG(9, 9)), 500, 3000)
	apart, together := make([]*Field, 6), make([]*Field, 6)
	for i := range apart {
		apart[i], together[i] = newField(t, 0.1, 1e-3), newField(t, 0.1, 1e-3)
	}
	for step := range 10 {
		view, delta := g.change(30)
		var wait sync.WaitGroup
		for i := range apart {
			sources := []SourceChange{{Vertex(7*step + i), 1}}
			apart[i].Update(view, delta, sources)
			wait.Go(func() { together[i].Update(view, delta, sources) })
		}
		wait.Wait()
		for i := range apart {
			if !slices.Equal(apart[i].z, together[i].z) ||
				!slices.Equal(apart[i].r, together[i].r) {
				t.Fatalf("step %d: field %d differs", step, i)
			}
		}
	}
}

// Steady updates must not allocate.
func TestSteadyUpdatesDoNotAllocate(t *testing.T) {
	g := newRandomGraph(t, rand.New(rand.NewPCG(6, 6)), 1000, 8000)
	f := newField(t, 0.1, 1e-2)
	f.Solve(g.store.View(), []SourceChange{{1, 1}, {2, 1}, {3, 5}}, 0)
	for range 200 {
		view, delta := g.change(10)
		f.Update(view, delta, nil)
	}
	view, delta := g.change(10)
	back := *delta
	back.Edges = slices.Clone(delta.Edges)
	for i, e := range back.Edges {
		back.Edges[i].Before, back.Edges[i].After = e.After, e.Before
	}
	back.FirstVertex = Vertex(view.Vertices())
	sources := []SourceChange{{7, 1}, {7, -1}}
	if n := testing.AllocsPerRun(50, func() { f.Update(view, delta, sources) }); n != 0 {
		t.Fatalf("%v allocations an update", n)
	}
}

func TestConfigReportsEveryViolation(t *testing.T) {
	nan := math.NaN()
	for _, c := range []Config{
		{Alpha: -1}, {Alpha: 1}, {Alpha: nan}, {Tolerance: 2}, {Tolerance: nan}, {Tolerance: 1e-15},
	} {
		if _, err := NewField(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if _, err := NewField(Config{}); err != nil {
		t.Error(err)
	}
}

func TestNegativeMultiplicityPanics(t *testing.T) {
	w := newWorld(t, 1, 10, false)
	view, delta := w.next()
	f := newField(t, 0.1, 1e-2)
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	f.Update(view, delta, []SourceChange{{0, -1}})
}

// Fractions must not leave a crumb of M behind when everyone has left.
func TestLastLeaveLeavesNothing(t *testing.T) {
	w := newWorld(t, 4, 12, true)
	view, delta := w.next()
	f := newField(t, 0.1, 1e-3)
	f.Update(view, delta, []SourceChange{{0, 0.1}, {1, 0.2}})
	f.Update(view, nil, []SourceChange{{0, -0.1}, {1, -0.2}})
	if f.SourceSum() != 0 || total(masses(f)) != 0 || f.Certificate() != 0 {
		t.Fatalf(
			"M = %v, mass %v, certificate %v", f.SourceSum(), total(masses(f)), f.Certificate(),
		)
	}
}

// Check recomputes the state of the field from z, the source and view, and reports
// differences: R beyond the rounding in its account, degrees or sums.
func (f *Field) Check(view graphstore.View) error {
	if f.stale {
		return nil
	}
	if len(f.z) != view.Vertices() {
		return fmt.Errorf("diffusion: field of %d vertices, graph of %d", len(f.z), view.Vertices())
	}
	var errs []error
	var apart, allowed, residual, signed, sources float64
	for i := range f.z {
		v := Vertex(i)
		if d := view.Degree(v) + 1; d != f.d[v] {
			errs = append(errs, fmt.Errorf("degree of %d is %v, graph says %v", v, f.d[v], d))
		}
		r, rounding := f.residualAt(view, v, f.d[v])
		apart += math.Abs(r - f.r[v])
		allowed += rounding * unitRoundoff
		residual += math.Abs(f.r[v])
		signed += f.r[v]
		sources += f.source[v]
	}
	allowed += f.rounding * unitRoundoff
	differ := func(what string, have, want, bound float64) {
		if !(math.Abs(have-want) <= bound) {
			errs = append(
				errs,
				fmt.Errorf(
					"%s is %v, recomputed %v, allowed difference %v", what, have, want, bound,
				),
			)
		}
	}
	differ("distance of R from its definition", apart, 0, allowed)
	differ("sum of |R|", f.residual, residual, allowed)
	differ("sum of R", f.signed, signed, allowed)
	differ("sum of sources", f.sourceSum, sources, sources*1e-12)
	differ("sum of degrees", f.degreeSum, view.WeightSum()+float64(len(f.z)), 0)
	if len(errs) > 0 {
		return fmt.Errorf("diffusion: %w", errors.Join(errs...))
	}
	return nil
}
