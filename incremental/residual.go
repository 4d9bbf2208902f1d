package incremental

import (
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/posterior"
	"gqlstream/quant"
)

// countByClass sums the residuals of the labels of each class.
func (p *posteriors) countByClass(view graphstore.View) {
	if p.byClass = nil; p.state.Epoch() == nil {
		return
	}
	p.drawn = sync.OnceValue(func() *quant.LabelSample { return p.draw(view) })
	byClass := make([]*quant.Residuals, p.core.config.Classes)
	for i := range byClass {
		byClass[i] = quant.NewResiduals(p.core.config.Classes)
	}
	weights := p.core.tallies.LabelWeights(view)
	for _, v := range p.core.tallies.Rows() {
		class := int(view.Label(v).Class)
		byClass[class].Add(class, weights(v), p.state.Posterior(v))
	}
	p.byClass = quant.NewClassResiduals(byClass, p.drawn)
}

// posteriorSection has one row: posterior.Epoch.
const posteriorSection = "posterior.arrow"

// save adds the epoch as a section.
func (p *posteriors) save(add addSection) {
	if p != nil {
		add(posteriorSection, false, rowsOf(p.state.Epochs()))
	}
}

// drawnLeast is the number of labels of a class that are drawn at most where there are many classes; see draw.
const drawnLeast = 16

// draw returns labels of each class, every n-th where there are more than its part of slopeLabelsMax.
func (p *posteriors) draw(view graphstore.View) *quant.LabelSample {
	k := p.core.config.Classes
	most, labels := max(slopeLabelsMax/k, drawnLeast), make([][]graphstore.Vertex, k)
	for _, v := range p.core.tallies.Rows() {
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
