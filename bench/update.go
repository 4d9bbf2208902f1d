package bench

import (
	"context"
	"fmt"
	"syscall"
	"time"

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
)

// newField returns a field of members at equal distances, solved.
func newField(g *graph, members int) (*diffusion.Field, error) {
	f, err := diffusion.NewField(diffusion.Config{Alpha: alpha, Tolerance: tolerance})
	if err != nil {
		return nil, err
	}
	f.Solve(g.store.View(), g.sources(members), tolerance/3)
	return f, nil
}

// steadyField returns the shared graph and a field in its steady state. A field leaves residuals
// where they are until its certificate reaches the tolerance, so that one just solved has nothing to do.
func (w *World) steadyField(ctx context.Context, batch int) (*graph, *diffusion.Field, error) {
	g, err := w.shared(ctx)
	if err != nil {
		return nil, nil, err
	}
	f, err := newField(g, sourcesFew)
	if err != nil {
		return nil, nil, err
	}
	view := g.store.View()
	fill := int(tolerance * (view.WeightSum() + float64(view.Vertices()))) // events, and more than it takes
	for left := fill; left > 0; left -= batch {
		view, delta, err := g.change(ctx, batch)
		if err != nil {
			return nil, nil, err
		}
		if f.Update(view, delta, nil); f.Certificate() > 0.95*tolerance {
			left = min(left, warmEvents)
		}
	}
	return g, f, nil
}

// keep takes a field through batches and returns the processor time that took, without the
// store's own work, and the mean certificate.
func keep(ctx context.Context, g *graph, f *diffusion.Field, batches, events int) (spent time.Duration, certificate float64, err error) {
	for range batches {
		view, delta, err := g.change(ctx, events)
		if err != nil {
			return 0, 0, err
		}
		begun := processTime()
		f.Update(view, delta, nil)
		spent += processTime() - begun
		certificate += f.Certificate() / float64(batches)
	}
	return spent, certificate, nil
}

// measureUpdate measures a field while edges are made and dropped.
func measureUpdate(ctx context.Context, w *World) ([]Row, error) {
	g, f, err := w.steadyField(ctx, updateBatch)
	if err != nil {
		return nil, err
	}
	batches := w.pick(105, 21)
	spent, certificate, err := keep(ctx, g, f, batches, updateBatch)
	if err != nil {
		return nil, err
	}
	view := g.store.View()
	return []Row{Row{
		Name: "update", Value: micros(spent, batches*updateBatch), Unit: "us cpu/event",
		Reference: "DynamicPPE (KDD 2021) beside one field, insertions only: at least 12 times as much at equal guarantee, see docs/notes/2026-11-25-field-kernel.md",
		Note: fmt.Sprintf("%d vertices, %d edges, %.0f sources, batch %d, as many insertions as deletions, tolerance %g, mean certificate %.3g",
			view.Vertices(), view.Edges(), f.SourceSum(), updateBatch, tolerance, certificate),
	}.atMost(10)}, nil
}

// measureRecompute takes turns: batches of 100 kept current, one computation from
// nothing to the certificate that they left.
func measureRecompute(ctx context.Context, w *World) ([]Row, error) {
	g, f, err := w.steadyField(ctx, smallBatch)
	if err != nil {
		return nil, err
	}
	var kept, anew []float64
	for range w.pick(9, 3) {
		batches := w.pick(50, 10)
		spent, certificate, err := keep(ctx, g, f, batches, smallBatch)
		if err != nil {
			return nil, err
		}
		kept = append(kept, micros(spent, batches))
		view := g.store.View()
		var changes []diffusion.SourceChange
		for v, m := range sourceOf(f, view) {
			if m > 0 {
				changes = append(changes, diffusion.SourceChange{V: graphstore.Vertex(v), Change: m})
			}
		}
		fresh, err := diffusion.NewField(diffusion.Config{Alpha: alpha, Tolerance: tolerance})
		if err != nil {
			return nil, err
		}
		begun := processTime()
		fresh.Solve(view, changes, certificate)
		anew = append(anew, micros(processTime()-begun, 1))
	}
	a, b := median(kept), median(anew)
	return []Row{Row{
		Name: "recompute", Value: b / a, Unit: "x", Reference: "our own conjugate gradients from nothing, to the same certificate",
		Note: fmt.Sprintf("batch %d: %.0f us kept current, %.0f us computed anew (cpu)", smallBatch, a, b),
	}.atLeast(1000).atSize(w)}, nil
}

// sourceOf returns the source of a field, by vertex.
func sourceOf(f *diffusion.Field, view graphstore.View) []float64 {
	source := make([]float64, view.Vertices())
	for v := range source {
		source[v] = f.Source(graphstore.Vertex(v))
	}
	return source
}

// processTime returns the processor time of all threads of the process.
func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // every system that we build for has it
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// micros returns d in microseconds for each of n.
func micros(d time.Duration, n int) float64 { return max(d, 1).Seconds() * 1e6 / float64(n) }
