package incremental

import (
	"slices"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/posterior"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Where a dual keeps the masses of all communities, a second one of K functions gives the
// sums of the labels' residuals, weighted by the kernel of each community: function i is
// g r_i = g (y_i - pi_i) at calibration labels, g the weight of the label's age, and zero
// elsewhere. It follows the graph with every step, and the posteriors at emissions.

// followResidual brings the residuals' dual to the graph of view, as sharedDual.Follow does.
// Where the landmark of the labels' ages moved back, the next emission begins it anew.
func (p *posteriors) followResidual(view graphstore.View, delta *graphstore.Delta) {
	if p == nil || p.residual == nil {
		return
	}
	halvings := p.core.tallies.Halvings()
	if halvings < 0 {
		p.residual = nil
		return
	}
	p.residual.Halve(halvings)
	p.residual.Follow(view, delta, nil)
}

// readyResidual brings the residuals to the posteriors of this emission. If it publishes all that moved,
// communities are told of everything.
func (p *posteriors) readyResidual(view graphstore.View, all bool) {
	if p == nil {
		return
	}
	c := p.core
	shared, are := c.masses.(*sharedDual)
	if !are {
		return
	}
	if p.residual == nil {
		p.residual = c.newDual(c.config.Classes, shared.residualTolerance(view))
		p.residual.Solve(view, p.changes(p.residual, view, p.state.Labels()), p.residual.Tolerance()/dualStartShare)
		c.tallies.MoveAll()
	} else {
		retune(p.residual, shared.residualTolerance(view))
		c.settle(p.residual, view, p.changes(p.residual, view, p.compared()))
	}
	p.residual.SumResiduals(view, c.crowds(view))
	p.countByClass(view)
	if most := toldShare * c.config.Emit.Threshold; all {
		p.tellAll(0)
	} else {
		p.tellAll(most)
	}
}

// findFunctions notes all vertices at which the residuals' dual has a function.
func (p *posteriors) findFunctions(view graphstore.View) {
	p.left = p.left[:0]
	for v := range graphstore.Vertex(view.Vertices()) {
		if p.residual.Function(v) != nil {
			p.left = append(p.left, v)
		}
	}
}

// compared lists the vertices at which the residuals' dual and the posteriors may differ: labels, and those that were.
func (p *posteriors) compared() []graphstore.Vertex {
	list := slices.Concat(p.state.Labels(), p.left)
	p.left = p.left[:0]
	slices.Sort(list)
	return slices.Compact(list)
}

// changes returns the changes of the functions at these vertices since the dual had them.
func (p *posteriors) changes(residual *diffusion.Dual, view graphstore.View, vertices []graphstore.Vertex) (list []diffusion.ValueChange) {
	gain, _ := p.core.tallies.LabelGains(view)
	for _, v := range vertices {
		held, pi := residual.Function(v), p.state.Posterior(v)
		label := view.Label(v)
		calibrates := pi != nil && label.Class != event.NoClass && label.Role == event.Calibrate
		if !calibrates && held == nil {
			continue // as most vertices
		}
		for i := range p.core.config.Classes {
			want, have := 0.0, 0.0
			if calibrates {
				want = -pi[i]
				if event.Class(i) == label.Class {
					want++
				}
				want = float64(want * gain(v))
			}
			if held != nil {
				have = held[i]
			}
			if want != have {
				list = append(list, diffusion.ValueChange{V: v, Function: i, Change: want - have})
			}
		}
	}
	return list
}

// countByClass sums the residuals of the labels of each class.
func (p *posteriors) countByClass(view graphstore.View) {
	if p.state.Epoch() == nil {
		return
	}
	p.drawn = sync.OnceValue(func() *quant.LabelSample { return p.draw(view) })
	byClass := make([]*quant.Residuals, p.core.config.Classes)
	for i := range byClass {
		byClass[i] = quant.NewResiduals(p.core.config.Classes)
	}
	weights := p.core.tallies.LabelWeights(view)
	for _, v := range p.state.Labels() {
		class := int(view.Label(v).Class)
		byClass[class].Add(class, weights(v), p.state.Posterior(v))
	}
	p.byClass = quant.NewClassResiduals(byClass, p.drawn)
}

// firstResidual returns the sum of g a r over the labels for one community.
func (p *posteriors) firstResidual(id graphstore.Community, view graphstore.View) []float64 {
	sums, _ := p.residual.Estimate(id, view)
	_, scale := p.core.tallies.LabelGains(view)
	for i := range sums {
		sums[i] *= scale
	}
	return sums
}

const (
	posteriorSection = "posterior.arrow" // posterior.Epoch: one row
	residualSection  = "residual.arrow"  // diffusion.DualState of the residuals: none without a dual
)

// save adds the epoch and the dual of the residuals as sections.
func (p *posteriors) save(add addSection) {
	if p == nil {
		return
	}
	add(posteriorSection, false, rowsOf(p.state.Epochs()))
	var parts []diffusion.DualState
	if p.residual != nil {
		parts = p.residual.State()
	}
	add(residualSection, false, rowsOf(parts))
}

// drawnLeast is the number of labels of a class that are drawn at most where there are many classes; see draw.
const drawnLeast = 16

// draw returns labels of each class, every n-th where there are more than its part of slopeLabelsMax.
func (p *posteriors) draw(view graphstore.View) *quant.LabelSample {
	k := p.core.config.Classes
	most, labels := max(slopeLabelsMax/k, drawnLeast), make([][]graphstore.Vertex, k)
	for _, v := range p.state.Labels() {
		class := view.Label(v).Class
		labels[class] = append(labels[class], v)
	}
	sample, views, reader := quant.NewLabelSample(k), make([]float64, posterior.Views*k), p.state.Reader(view, p.core.sums)
	weights := p.core.tallies.LabelWeights(view)
	for class, labels := range labels {
		every := (len(labels)-1)/most + 1
		for i, v := range labels {
			g := weights(v)
			if sample.Count(class, g); g > 0 && i%every == 0 && reader.Views(views, v) {
				sample.Draw(class, g, float64(every), p.state.Posterior(v), views)
			}
		}
	}
	return sample
}
