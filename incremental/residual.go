package incremental

import (
	"maps"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/quant/stats"
)

// slopeLabelsMax bounds the labels that the derivatives of posteriors are computed of; of more,
// every n-th stands for n.
const slopeLabelsMax = 512

// countResiduals sums the residuals of the labels: over all, by class, and by community over its
// labelled members.
func (p *posteriors) countResiduals(view graphstore.View) {
	p.byClass, p.labels, p.own = nil, nil, map[graphstore.Community]*stats.Residuals{}
	p.between = nil
	if p.state.Epoch() == nil {
		return
	}
	k := p.core.config.Classes
	p.labels = stats.NewLabelResiduals(k)
	byClass := make([]*stats.Residuals, k)
	for i := range byClass {
		byClass[i] = stats.NewResiduals(k)
	}
	weights, byShare := p.core.tallies.LabelWeights(view), p.state.Epoch().LabelWeights()
	for _, v := range p.core.tallies.Rows() {
		class, pi := int(view.Label(v).Class), p.state.LabelPosterior(v)
		g := float64(weights(v) * byShare[class])
		byClass[class].Add(class, g, pi)
		if p.core.engine() == EnginePrimal {
			p.labels.Add(class, g, pi)
		}
		if !(g > 0) {
			continue
		}
		for _, m := range view.MemberOf(v) {
			own := p.own[m.Community]
			if own == nil {
				own = stats.NewResiduals(k)
				p.own[m.Community] = own
			}
			own.Add(class, float64(g*float64(m.Multiplicity)), pi)
		}
	}
	p.byClass = stats.NewClassResiduals(byClass)
	own := make([]*stats.Residuals, 0, len(p.own))
	for _, id := range slices.Sorted(maps.Keys(p.own)) {
		own = append(own, p.own[id])
	}
	p.between = p.byClass.Between(own)
}

// posteriorSection has one row: posterior.Epoch.
const posteriorSection = "posterior.arrow"

// featuresSection has the rows of posterior.Feature of the epoch, if there is one.
const featuresSection = "features.arrow"

// save adds the epoch as a section.
func (p *posteriors) save(add addSection) {
	if p != nil {
		if e := p.state.Epoch(); e != nil {
			add(featuresSection, false, rowsOf(e.Features))
		}
		add(posteriorSection, false, rowsOf(p.state.Epochs()))
	}
}

// drawnLeast is the number of labels of a class that are drawn at most where there are many
// classes; see draw.
const drawnLeast = 16

// draw returns labels of each class, every n-th where there are more than its part of
// slopeLabelsMax.
func (p *posteriors) draw(view graphstore.View) *stats.LabelSample {
	k := p.core.config.Classes
	most, labels := max(slopeLabelsMax/k, drawnLeast), make([][]graphstore.Vertex, k)
	for _, v := range p.core.tallies.Rows() {
		class := view.Label(v).Class
		labels[class] = append(labels[class], v)
	}
	sample := stats.NewLabelSample(k)
	views := make([]float64, len(p.state.Epoch().Theta)*k)
	reader := p.state.Reader(view, p.core.sums)
	weights := p.core.tallies.LabelWeights(view)
	for class, labels := range labels {
		every := (len(labels)-1)/most + 1
		for i, v := range labels {
			g := weights(v)
			if sample.Count(class, g); g > 0 && i%every == 0 && reader.LabelViews(views, v) {
				sample.Draw(class, g, float64(every), p.state.LabelPosterior(v), views)
			}
		}
	}
	return sample
}
