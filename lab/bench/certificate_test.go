package bench

import (
	"math"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
)

// sourcesMany is so many that a few may come and go without a recompute.
const sourcesMany = 9000

// measureCertificate runs a field through edges, deletions, new weights, joins and leaves and
// compares it with plain iteration, which shares no code with it. The figures are those of the
// largest ratio of some looks.
func measureCertificate(tb testing.TB, s size) map[string]float64 {
	g := grownGraph(tb, s)
	f := newField(tb, g, sourcesMany)
	events, looks := s.pick(1_000_000, 100_000), s.pick(5, 2)
	worst, atError, atBound := 0.0, 0.0, 0.0
	for range looks {
		for batch := range events / looks / updateBatch {
			g.draw(tb, updateBatch)
			g.reweigh(updateBatch / 10)
			view, delta := g.apply()
			one, other := graphstore.Vertex(batch%view.Vertices()), graphstore.Vertex(
				batch*7%view.Vertices(),
			)
			moves := []diffusion.SourceChange{{V: one, Change: 1}}
			if f.Source(other) > 0 && one != other {
				moves = append(moves, diffusion.SourceChange{V: other, Change: -1})
			}
			f.Update(view, delta, moves)
		}
		bound := f.Certificate()
		truth := trueError(f, g.store.View(), bound*1e-3)
		if math.IsNaN(truth) || truth/bound > worst {
			worst, atError, atBound = truth/bound, truth, bound
		}
	}
	return map[string]float64{"error/certificate": worst, "error": atError, "certificate": atBound}
}

// reweigh gives new weights to so many of the edges that the batch inserts.
func (g *graph) reweigh(n int) {
	for i := range g.batch.Edges {
		if e := &g.batch.Edges[i]; !e.Remove && n > 0 {
			e.Weight = event.RoundWeight(0.25 + 3*float64(i)/float64(len(g.batch.Edges)))
			n--
		}
	}
}

// plainStepsMax bounds the passes; 0.9^400 is 1e-18.
const plainStepsMax = 400

// trueError returns the L1 distance of the normalised field to the solution, which plain
// iteration finds to within a bound: the recursion x <- (1-a) P x + a m that libraries run for
// personalised PageRank, with P of the graph with self-loops.
func trueError(f *diffusion.Field, view graphstore.View, within float64) (distance float64) {
	n := view.Vertices()
	x, next, source := make([]float64, n), make([]float64, n), sourceOf(f, view)
	copy(x, source)
	for range plainStepsMax {
		moved := plainStep(view, source, x, next)
		x, next = next, x
		// The last step moved x by the residual before it. At most (1-a) of the residual is
		// left, and the error is at most 1/a times that.
		if moved*(1-alpha) <= within*alpha*f.SourceSum() {
			break
		}
	}
	for v := range x {
		distance += math.Abs(x[v] - f.Mass(graphstore.Vertex(v)))
	}
	return distance / f.SourceSum()
}

// plainStep fills next from x and returns by how much it differs.
func plainStep(view graphstore.View, source, x, next []float64) (moved float64) {
	clear(next)
	for i, mass := range x {
		v := graphstore.Vertex(i)
		if mass == 0 {
			continue
		}
		share := (1 - alpha) * mass / (view.Degree(v) + 1)
		next[v] += share // the self-loop
		for u, weight := range view.EdgesOf(v) {
			next[u] += share * weight
		}
	}
	for v, m := range source {
		next[v] += alpha * m
		moved += math.Abs(next[v] - x[v])
	}
	return moved
}
