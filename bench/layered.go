package bench

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/stat"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

// layeredGoal is what keeping a walk of fixed length must gain over walking anew.
const layeredGoal = 20

// measureLayered takes turns, for both kernels of a fixed number of steps: batches
// of 100 kept current, and the kernel from nothing.
func measureLayered(ctx context.Context, w *World) ([]Row, error) {
	g, err := w.shared()
	if err != nil {
		return nil, err
	}
	defer lockThread()()
	truncated, err := measureLayers(ctx, w, g, diffusion.Truncated)
	if err != nil {
		return nil, err
	}
	lazy, err := measureLayers(ctx, w, g, diffusion.Lazy)
	truncated.Name, lazy.Name = "layered", "layered/lazy"
	return []Row{truncated, lazy}, err
}

// measureLayers measures one of the kernels; the caller names the row.
func measureLayers(ctx context.Context, w *World, g *Graph, name string) (Row, error) {
	l, err := diffusion.NewLayered(diffusion.LayeredConfig{Kernel: name, Alpha: alpha, Tolerance: tolerance})
	if err != nil {
		return Row{}, err
	}
	view, sources := g.store.View(), g.sources(sourcesFew)
	source := make([]float64, view.Vertices())
	for _, s := range sources {
		source[s.V] += s.Change
	}
	l.Solve(view, sources, 0)
	for full := 0; full < w.pick(20, 5) && l.Work().Solves < 10; { // until it has swept some times
		before := l.Work().Pushes
		l.Update(g.changeView(smallBatch))
		if l.Work().Pushes > before {
			full++
		}
	}
	watch, params := newStopwatch(), diffusion.KernelParams{Alpha: alpha}
	var kept, anew []float64
	walks := l.Work().Solves
	for range w.pick(9, 3) {
		if err := ctx.Err(); err != nil {
			return Row{}, err
		}
		const batches = 50
		var view graphstore.View
		for range batches {
			var delta *graphstore.Delta
			view, delta = g.change(smallBatch)
			watch.time(func() { l.Update(view, delta, nil) })
		}
		kept = append(kept, micros(watch.take(), batches))
		watch.time(func() { _, _, err = diffusion.Kernel(view, name, source, params) })
		if err != nil {
			return Row{}, err
		}
		anew = append(anew, micros(watch.take(), 1))
	}
	a, b := stat.Mean(kept, nil), stat.Mean(anew, nil)
	return Row{
		Value: b / a, Unit: "x", Reference: "the ten steps from nothing",
		Note: fmt.Sprintf("%s, batch %d: %.0f us kept current to %.2g (certificate), %.0f us walked anew (cpu), %d fallbacks",
			name, smallBatch, a, l.Certificate(), b, l.Work().Solves-walks),
	}.atLeast(layeredGoal).atSize(w), nil
}
