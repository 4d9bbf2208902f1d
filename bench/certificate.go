package bench

import (
	"context"
	"fmt"
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
)

// measureCertificate runs a field through edges, deletions, new weights, joins and
// leaves and compares it with plain iteration, which shares no code with it.
func measureCertificate(ctx context.Context, w *World) ([]Row, error) {
	g, err := w.shared()
	if err != nil {
		return nil, err
	}
	f, err := newField(g, sourcesMany) // of so many, a few may come and go without a recompute
	if err != nil {
		return nil, err
	}
	events, looks := w.pick(1_000_000, 100_000), w.pick(5, 2)
	worst, atError, atBound, moves, solves := 0.0, 0.0, 0.0, mover{}, f.Work().Solves
	iteration := plain{alpha: alpha}
	for look := range looks {
		for range events / looks / updateBatch {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			g.draw(updateBatch - movesEach)
			g.reweigh(updateBatch / 10)
			view, delta := g.apply()
			f.Update(view, delta, moves.draw(g))
		}
		bound := f.Certificate()
		truth := trueError(f, &iteration, g.store.View(), bound*1e-3)
		w.say("        look %d of %d: error %.3g, certificate %.3g", look+1, looks, truth, bound)
		if math.IsNaN(truth) || truth/bound > worst {
			worst, atError, atBound = truth/bound, truth, bound
		}
	}
	return []Row{
		Row{
			Name: "certificate", Value: worst, Unit: "error/certificate", Reference: "nobody publishes one",
			Note: fmt.Sprintf("%d events: 80 %% insertions and 20 %% deletions, a tenth of them given new weights, %d joins or leaves a batch of %d, %d recomputes on the way; largest of %d looks",
				events, movesEach, updateBatch, f.Work().Solves-solves, looks),
		}.atMost(1),
		{Name: "certificate/error", Value: atError, Unit: "L1", Note: "against plain iteration, at that look"},
		Row{Name: "certificate/bound", Value: atBound, Unit: "L1", Note: "the certificate, at that look"}.atMost(tolerance),
	}, nil
}

// trueError returns the L1 distance of the normalised field to the solution, which
// is known to within the given bound.
func trueError(f *diffusion.Field, iteration *plain, view graphstore.View, within float64) float64 {
	_, source := sourceOf(f, view)
	iteration.solve(view, source, within)
	sum := 0.0
	for v, x := range iteration.x {
		sum += math.Abs(x - f.Mass(graphstore.Vertex(v)))
	}
	return sum / f.SourceSum()
}

// reweigh gives new weights to so many of the edges that the batch inserts.
func (g *Graph) reweigh(n int) {
	for i := range g.batch.Edges {
		if e := &g.batch.Edges[i]; !e.Remove && n > 0 {
			e.Weight = event.RoundWeight(0.25 + 3*g.rand.Float64())
			n--
		}
	}
}

// movesEach is the number of members that join or leave with a batch.
const movesEach = 2

// mover remembers who joined, so that they can leave.
type mover struct{ joined []graphstore.Vertex }

func (m *mover) draw(g *Graph) (changes []diffusion.SourceChange) {
	for range movesEach {
		if n := len(m.joined); n > 0 && g.rand.IntN(2) == 0 {
			at := g.rand.IntN(n)
			changes = append(changes, diffusion.SourceChange{V: m.joined[at], Change: -1})
			m.joined[at] = m.joined[n-1]
			m.joined = m.joined[:n-1]
			continue
		}
		v := graphstore.Vertex(g.rand.IntN(g.n))
		m.joined = append(m.joined, v)
		changes = append(changes, diffusion.SourceChange{V: v, Change: 1})
	}
	return changes
}

// plain is the recursion x <- (1-a) P x + a m that libraries run for personalised
// PageRank, with P of the graph with self-loops, until the L1 distance to the
// solution, in units of M, is at most the certificate: the next step moves x by
// the residual, and the error is at most 1/a times that.
type plain struct {
	alpha float64
	x     []float64 // the mass of each vertex
	next  []float64
}

// plainStepsMax bounds the passes; 0.9^400 is 1e-18.
const plainStepsMax = 400

// solve iterates from the source and returns how many passes it took.
func (p *plain) solve(view graphstore.View, source []float64, certificate float64) (passes int) {
	n, sum := view.Vertices(), 0.0
	if len(p.x) != n {
		p.x, p.next = make([]float64, n), make([]float64, n)
	}
	for v, m := range source {
		p.x[v] = m
		sum += m
	}
	for passes < plainStepsMax {
		moved := p.step(view, source)
		p.x, p.next = p.next, p.x
		passes++
		// What moved x is the residual before the step; (1-a) of it at most is left.
		if moved*(1-p.alpha) <= certificate*p.alpha*sum {
			break
		}
	}
	return passes
}

// step fills next and returns by how much it differs.
func (p *plain) step(view graphstore.View, source []float64) (moved float64) {
	clear(p.next)
	for i, x := range p.x {
		v := graphstore.Vertex(i)
		if x == 0 {
			continue
		}
		share := (1 - p.alpha) * x / (view.Degree(v) + 1)
		p.next[v] += share // the self-loop
		for u, weight := range view.EdgesOf(v) {
			p.next[u] += share * weight
		}
	}
	for v, m := range source {
		p.next[v] += p.alpha * m
		moved += math.Abs(p.next[v] - p.x[v])
	}
	return moved
}
