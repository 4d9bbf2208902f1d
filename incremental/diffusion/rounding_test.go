package diffusion

import (
	"errors"
	"math"
	"testing"

	"gqlstream/graphstore"
)

// The bound on rounding must cover the rounding between two rebuilds, and not be so wide
// that it means nothing.
func TestRoundingStaysWithinItsBound(t *testing.T) {
	w := newWorld(t, 1, 12, true)
	var view graphstore.View
	for range 10 {
		view, _ = w.next()
	}
	f, g := newField(t, 0.1, 3e-3), newDual(t, 0.1, 3e-2, 1)
	n := view.Vertices()
	worst, accumulated := 0.0, 0.0
	for step := range 100_000 {
		v := Vertex(w.r.IntN(n))
		move := 1 + 0.02*w.r.Float64() - f.Source(v)
		f.Update(view, nil, []SourceChange{{v, move}})
		g.Update(view, nil, []ValueChange{{v, 0, move}})
		if step%1000 != 999 {
			continue
		}
		if err := errors.Join(f.Check(view), g.Check(view)); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		apart := 0.0
		for v := range f.z {
			r, _ := f.residualAt(view, Vertex(v), f.d[v])
			apart += math.Abs(r - f.r[v])
		}
		if apart > f.rounding*unitRoundoff {
			t.Fatalf(
				"step %d: R is %v from its definition, bound %v", step, apart,
				f.rounding*unitRoundoff,
			)
		}
		worst = max(worst, apart/(f.rounding*unitRoundoff))
		accumulated = max(accumulated, apart/(f.floor*unitRoundoff))
	}
	if accumulated < 1.2 || worst < 1e-3 {
		t.Errorf(
			"rounding reached %v of the floor and %v of its bound: this tests nothing",
			accumulated,
			worst,
		)
	}
	t.Logf(
		"rounding reached %.3g of the floor and %.3g of its bound, %+v", accumulated, worst,
		f.Work(),
	)
}

// The same for pushes alone, from the source to the last digit.
func TestRoundingOfPushesStaysWithinItsBound(t *testing.T) {
	for seed := range uint64(20) {
		_, _, weighted := settings(seed)
		w := newWorld(t, seed, 40, weighted)
		var view graphstore.View
		for range 10 {
			view, _ = w.next()
		}
		f := newField(t, 0.1, 1e-12)
		f.Solve(view, nil, 0)
		f.addSources([]SourceChange{{0, 1}, {Vertex(w.r.IntN(view.Vertices())), 3}})
		limit := f.alpha * leastShare * f.config.Tolerance * f.sourceSum / f.degreeSum
		for f.queueAbove(limit); len(f.queue) > 0; f.queueAbove(limit) {
			if f.sweep(view, limit, math.MaxInt) < 0 {
				t.Fatalf("seed %d: out of budget", seed)
			}
		}
		apart, least := 0.0, 0.0
		for v := range f.z {
			r, _ := f.residualAt(view, Vertex(v), f.d[v])
			apart += math.Abs(r - f.r[v])
			least += 0.1 * f.d[v] * math.Abs(f.z[v])
		}
		if bound := f.rounding * unitRoundoff; apart > bound || bound < least*unitRoundoff {
			t.Fatalf("seed %d: R is %v from its definition, bound %v", seed, apart, bound)
		}
		checkField(t, f, view, seed, 0)
	}
}
