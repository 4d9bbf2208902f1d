package bench

import (
	"testing"
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
func newField(tb testing.TB, g *graph, members int) *diffusion.Field {
	tb.Helper()
	f, err := diffusion.NewField(diffusion.Config{Alpha: alpha, Tolerance: tolerance})
	check(tb, err)
	f.Solve(g.store.View(), g.sources(members), tolerance/3)
	return f
}

// steadyField returns a graph and a field in its steady state. A field leaves residuals where
// they are until its certificate reaches the tolerance, so that one just solved has nothing to do.
func steadyField(tb testing.TB, s size, batch int) (*graph, *diffusion.Field) {
	tb.Helper()
	g := grownGraph(tb, s)
	f := newField(tb, g, sourcesFew)
	view := g.store.View()
	fill := int(
		tolerance * (view.WeightSum() + float64(view.Vertices())),
	) // events, and more than it takes
	for left := fill; left > 0; left -= batch {
		view, delta := g.change(tb, batch)
		if f.Update(view, delta, nil); f.Certificate() > 0.95*tolerance {
			left = min(left, warmEvents)
		}
	}
	return g, f
}

// keep updates a field by batches and returns the processor time of that, without the store's
// own work, and the mean certificate.
func keep(
	tb testing.TB, g *graph, f *diffusion.Field, batches, events int,
) (spent time.Duration, certificate float64) {
	tb.Helper()
	for range batches {
		view, delta := g.change(tb, events)
		begun := processTime()
		f.Update(view, delta, nil)
		spent += processTime() - begun
		certificate += f.Certificate() / float64(batches)
	}
	return spent, certificate
}

// measureUpdate measures a field while as many edges are made as dropped.
func measureUpdate(tb testing.TB, s size) map[string]float64 {
	g, f := steadyField(tb, s, updateBatch)
	batches := s.pick(105, 21)
	spent, certificate := keep(tb, g, f, batches, updateBatch)
	return map[string]float64{
		"us-cpu/edge": micros(spent, batches*updateBatch),
		"certificate": certificate,
	}
}

// measureRecompute takes turns: batches of 100 kept current, one computation from
// nothing to the certificate that they left. The two sides slow alike on a busy machine, so
// the ratio of their medians is the figure to compare.
func measureRecompute(tb testing.TB, s size) map[string]float64 {
	g, f := steadyField(tb, s, smallBatch)
	var kept, anew []float64
	for range s.pick(9, 3) {
		batches := s.pick(50, 10)
		spent, certificate := keep(tb, g, f, batches, smallBatch)
		kept = append(kept, micros(spent, batches))
		view := g.store.View()
		var changes []diffusion.SourceChange
		for v, m := range sourceOf(f, view) {
			if m > 0 {
				changes = append(
					changes,
					diffusion.SourceChange{V: graphstore.Vertex(v), Change: m},
				)
			}
		}
		fresh, err := diffusion.NewField(diffusion.Config{Alpha: alpha, Tolerance: tolerance})
		check(tb, err)
		begun := processTime()
		fresh.Solve(view, changes, certificate)
		anew = append(anew, micros(processTime()-begun, 1))
	}
	a, b := median(kept), median(anew)
	return map[string]float64{"us-cpu/batch": a, "us-cpu/recompute": b, "times": b / a}
}

// sourceOf returns the source of a field, by vertex.
func sourceOf(f *diffusion.Field, view graphstore.View) []float64 {
	source := make([]float64, view.Vertices())
	for v := range source {
		source[v] = f.Source(graphstore.Vertex(v))
	}
	return source
}
