package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

const (
	alpha       = diffusion.AlphaDefault
	tolerance   = diffusion.ToleranceDefault
	updateBatch = 1000
	smallBatch  = 100
	warmEvents  = 20_000 // until a field is in its steady state, once it is full
	sourcesFew  = 100
	sourcesMany = 9000
)

// newField returns a field of members drawn evenly, solved.
func newField(g *Graph, members int) (*diffusion.Field, error) {
	f, err := diffusion.NewField(diffusion.Config{Alpha: alpha, Tolerance: tolerance})
	if err != nil {
		return nil, err
	}
	f.Solve(g.store.View(), g.sources(min(members, g.n/2)), tolerance/3)
	return f, nil
}

// steady brings fields to their steady state. A field leaves residuals where they are
// until its certificate reaches the tolerance, so that one just solved has nothing to do.
func steady(ctx context.Context, g *Graph, batch int, fields ...*diffusion.Field) error {
	full := make([]bool, len(fields))
	fill := int(tolerance * (g.store.View().WeightSum() + float64(g.n))) // events, and more than it takes
	for left := fill; left > 0; left -= batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		view, delta := g.change(batch)
		for i, f := range fields {
			f.Update(view, delta, nil)
			full[i] = full[i] || f.Certificate() > 0.95*tolerance
		}
		if !slices.Contains(full, false) {
			left = min(left, warmEvents)
		}
	}
	return nil
}

// measureUpdate measures fields under 80 % insertions and 20 % deletions, without
// the store's own work.
func measureUpdate(ctx context.Context, w *World) ([]Row, error) {
	g, err := w.shared()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	names := []string{"update", "update/one-member", "update/many-members"}
	members := []int{sourcesFew, 1, sourcesMany}
	fields := make([]*diffusion.Field, len(names))
	for i := range fields {
		if fields[i], err = newField(g, members[i]); err != nil {
			return nil, err
		}
	}
	each := func(watches []*stopwatch) (net int) {
		view, delta := g.change(updateBatch)
		for i, f := range fields {
			watches[i].time(func() { f.Update(view, delta, nil) })
		}
		return len(delta.Edges)
	}
	watches := []*stopwatch{newStopwatch(), newStopwatch(), newStopwatch()}
	if err := steady(ctx, g, updateBatch, fields...); err != nil {
		return nil, err
	}
	rounds, batches := w.pick(21, 7), w.pick(5, 3)
	spent, net := make([][]float64, len(fields)), 0
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for range batches {
			net += each(watches)
		}
		for i := range fields {
			spent[i] = append(spent[i], micros(watches[i].take(), batches*updateBatch))
		}
	}
	rows := make([]Row, 0, len(fields)+1)
	for i, name := range names {
		rows = append(rows, Row{
			Name: name, Value: stat.Mean(spent[i], nil), Unit: "us cpu/event",
			Reference: "DynamicPPE (KDD 2021) beside one field, insertions only: at least 12 times as much at equal guarantee, see docs/notes/2026-11-25-field-kernel.md",
			Note: fmt.Sprintf("%d vertices, %d edges, %d sources, batch %d (%d net changes), 20 %% deletions, tolerance %g",
				g.n, g.store.View().Edges(), int(fields[i].SourceSum()), updateBatch, net/(rounds*batches), tolerance),
		}.atMost(10))
	}
	return append(rows, Row{
		Name: "update/certificate", Value: fields[0].Certificate(), Unit: "L1 bound",
		Note: "what the updates above left",
	}.atMost(tolerance)), nil
}

// measureRecompute takes turns: batches of 100 kept current, one computation from
// nothing to the certificate that they left.
func measureRecompute(ctx context.Context, w *World) ([]Row, error) {
	g, err := w.shared()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := newField(g, sourcesFew)
	if err != nil {
		return nil, err
	}
	if err := steady(ctx, g, smallBatch, f); err != nil {
		return nil, err
	}
	rounds, batches := w.pick(9, 3), w.pick(200, 40)
	watch := newStopwatch()
	var kept, ours, theirs []float64
	passes, iteration := 0, plain{alpha: alpha}
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		certificate := 0.0
		for range batches {
			view, delta := g.change(smallBatch)
			watch.time(func() { f.Update(view, delta, nil) })
			certificate += f.Certificate() / float64(batches)
		}
		kept = append(kept, micros(watch.take(), batches))
		view := g.store.View()
		changes, source := sourceOf(f, view)
		fresh, err := diffusion.NewField(diffusion.Config{Alpha: alpha, Tolerance: tolerance})
		if err != nil {
			return nil, err
		}
		watch.time(func() { fresh.Solve(view, changes, certificate) })
		ours = append(ours, micros(watch.take(), 1))
		watch.time(func() { passes = iteration.solve(view, source, certificate) })
		theirs = append(theirs, micros(watch.take(), 1))
	}
	a, b, c := stat.Mean(kept, nil), stat.Mean(ours, nil), stat.Mean(theirs, nil)
	return []Row{
		Row{
			Name: "recompute", Value: b / a, Unit: "x", Reference: "our own conjugate gradients from nothing, to the same certificate",
			Note: fmt.Sprintf("batch %d: %.0f us kept current, %.0f us computed anew (cpu)", smallBatch, a, b),
		}.atLeast(1000).atSize(w),
		Row{
			Name: "recompute/plain", Value: c / a, Unit: "x", Reference: "x <- (1-a) P x + a m, as libraries run it, to the same certificate",
			Note: fmt.Sprintf("%.0f us in %d passes (cpu)", c, passes),
		}.atLeast(1000).atSize(w),
	}, nil
}

// sourceOf returns the source of a field in both forms.
func sourceOf(f *diffusion.Field, view graphstore.View) (changes []diffusion.SourceChange, source []float64) {
	source = make([]float64, view.Vertices())
	for v := range source {
		if source[v] = f.Source(graphstore.Vertex(v)); source[v] > 0 {
			changes = append(changes, diffusion.SourceChange{V: graphstore.Vertex(v), Change: source[v]})
		}
	}
	return changes, source
}

// stopwatch adds up processor time and takes out what reading the clock costs.
type stopwatch struct {
	spent time.Duration
	cost  time.Duration // of one start and stop
}

// newStopwatch measures what the clock costs. The thread must be locked.
func newStopwatch() *stopwatch {
	const reads = 1000
	s := &stopwatch{}
	for range reads {
		s.time(func() {})
	}
	s.cost, s.spent = s.spent/reads, 0
	return s
}

// time adds the time of f.
func (s *stopwatch) time(f func()) {
	began := cpuTime()
	f()
	s.spent += cpuTime() - began - s.cost
}

// take returns the time so far and starts anew.
func (s *stopwatch) take() time.Duration {
	spent := max(s.spent, 1)
	s.spent = 0
	return spent
}

// micros returns d in microseconds for each of n.
func micros(d time.Duration, n int) float64 { return d.Seconds() * 1e6 / float64(n) }
