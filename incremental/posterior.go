package incremental

import (
	"cmp"
	"math"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/posterior"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// slopeLabelsMax bounds the labels whose posteriors' derivatives are computed; of more, every n-th stands for n.
const slopeLabelsMax = 512

// posteriors keeps all that auto reads beside the tallies: posteriors, and beside a dual the residuals of the
// labels. It is nil, and does nothing, if no estimate reads it.
type posteriors struct {
	core  *Core
	state *posterior.State

	gamma *float64                  // of every community, nil where edges decide; see Hold
	drawn func() *quant.LabelSample // as of the last emission; see draw

	labels func() *quant.Residuals // as of the last emission, beside fields
	within func() []float64        // as of the last emission

	byClass *quant.ClassResiduals // of the labels of each class, as of the last emission, beside a dual; see residual.go
	crowds  []*quant.CrowdReading // by community; see crowd
	told    [2][]float64          // the mean residual of all labels and its errors, as communities know it
}

// toldShare is the part of Emit.Threshold by which the mean residual of all labels may move, in its
// standard errors, before communities that nothing else happened to are asked about it.
const toldShare = 0.25

// toldRounding is what sums of residuals may be off by the order in which they were made.
const toldRounding = 1e-12

// readsPosterior reports whether an estimate reads posteriors.
func (c Config) readsPosterior() bool {
	for _, o := range c.Estimates {
		if o.Method == quant.Auto {
			return true
		}
	}
	return false
}

// newPosteriors computes those of a core that gets warm.
func newPosteriors(c *Core, view graphstore.View) *posteriors {
	if !c.config.readsPosterior() {
		return nil
	}
	p := &posteriors{core: c, state: posterior.New(c.config.Classes, c.tallies.Rows)}
	p.state.Rebuild(view, c.sums, c.tallies.LabelWeights(view), c.time)
	return p
}

// Reading holds the choices of auto about the graph as a whole and about one community.
type Reading struct {
	Epoch *posterior.Epoch // the coefficients; nil: fitted at the next emission
	Gamma *float64         // how far the community was selected by class; nil: edges decide
}

// Hold makes auto use these coefficients for the graph, and this gamma for each community,
// whatever the log says, until the next call. The core must have emitted before.
func (c *Core) Hold(r Reading) {
	c.posteriors.gamma = r.Gamma
	c.posteriors.state.Hold(c.View(), r.Epoch)
	c.republishAll()
}

// Coefficients returns the epoch of the last emission, nil if auto read none.
func (c *Core) Coefficients() *posterior.Epoch {
	if c.posteriors == nil {
		return nil
	}
	return c.posteriors.state.Epoch()
}

// follow lets the posteriors follow a change of the graph.
func (p *posteriors) follow(view graphstore.View, delta *graphstore.Delta, votes []graphstore.Vertex) {
	if p != nil {
		p.state.Update(view, delta, p.core.sums, votes)
	}
}

// ready makes current what an emission reads, and marks the communities that it moves. If it publishes all that moved,
// communities are told of everything.
func (p *posteriors) ready(view graphstore.View, all bool) {
	if p == nil {
		return
	}
	touched, began := p.state.Ready(view, p.core.sums, p.core.tallies.LabelWeights(view), p.core.time)
	if began {
		p.core.republishAll()
	}
	p.within = sync.OnceValue(func() []float64 { return p.state.Within(view) })
	p.markMoved(view, touched)
	if p.core.engine() == EnginePrimal {
		p.drawn = sync.OnceValue(func() *quant.LabelSample { return p.draw(view) })
		p.labels = sync.OnceValue(func() *quant.Residuals { return p.readLabels(view) })
		return
	}
	most := toldShare * p.core.config.Emit.Threshold
	if all {
		most = 0
	}
	p.countByClass(view)
	p.tellAll(most)
}

// markMoved marks the communities whose members or labels these are. Fields give every label a mass in
// every community; beside a dual tellAll says what its residual does.
func (p *posteriors) markMoved(view graphstore.View, touched []graphstore.Vertex) {
	moves, shared := p.state.Moves(), p.core.engine() == EngineDual
	for i, v := range touched {
		if l := view.Label(v); !shared && l.Class != event.NoClass && l.Role == event.Calibrate {
			p.core.tallies.MoveAll()
		}
		p.core.tallies.MovePosterior(view, v, moves[i])
	}
}

// tellAll marks every community as moved once the mean residual of all labels, which all read, is another
// one than they know, by more than so many of its standard errors.
func (p *posteriors) tellAll(most float64) {
	mean, errors := p.byClass.Mean()
	if len(mean) != len(p.told[0]) {
		p.told = [2][]float64{mean, errors}
		p.core.tallies.MoveAll()
		return
	}
	moved, by := false, 0.0
	for i := range mean {
		change := max(math.Abs(mean[i]-p.told[0][i]), math.Abs(errors[i]-p.told[1][i]))
		moved, by = moved || change > max(most*errors[i], toldRounding), max(by, change)
	}
	if moved {
		p.core.tallies.MoveShared(by)
	}
	if moved || most == 0 {
		p.told = [2][]float64{mean, errors} // also what was rounded in another way, as a restart knows it
	}
}

// flush computes exactly what was missed, before all that moved is published and for a
// checkpoint, which holds no posteriors: a core that is restored from it computes them from the
// graph.
func (p *posteriors) flush(view graphstore.View) {
	if p != nil {
		p.markMoved(view, p.state.Flush(view, p.core.sums))
		if p.core.engine() == EngineDual {
			p.countByClass(view)
			p.tellAll(0)
		}
	}
}

// of returns the input of auto for one community beside s, nil while there is no label. It may be called for several
// communities side by side; what only variances read is computed when it is asked for.
func (p *posteriors) of(id graphstore.Community, view graphstore.View, s *quant.Statistics) *quant.Posterior {
	if p == nil || p.state.Epoch() == nil {
		return nil
	}
	e := p.state.Epoch()
	reader := sync.OnceValue(func() *posterior.Reader { return p.state.Reader(view, p.core.sums) })
	edges, distinct, degrees := p.state.Inside(id)
	out := &quant.Posterior{
		Selected: p.core.selectedBy[view.CommunityName(id)], Version: e.Version, Prior: e.Prior, LabelGate: e.LabelGate,
		Gamma:  p.gamma,
		Inside: float64(edges), Distinct: float64(distinct), Degrees: float64(degrees), Agreement: e.Agreement, Vertices: e.Vertices, Expected: e.Expected,
		Mass: e.Mass, Tops: e.Tops, Predicted: func(v uint32) int { return int(neighborhood.HardClass(view.Prediction(graphstore.Vertex(v)))) },
		Within: p.within(), Coefficients: e.Covariance, Shared: posterior.Views, Labels: p.drawn,
		Views: func(dst []float64, v uint32) { reader().Views(dst, graphstore.Vertex(v)) },
	}
	out.Members = func(visit func(uint32, float64, []float64)) {
		view.ForMembers(id, func(v graphstore.Vertex, multiplicity uint32) {
			if pi := p.state.Posterior(v); pi != nil && view.Label(v).Class == event.NoClass {
				visit(uint32(v), float64(multiplicity), pi)
			}
		})
	}
	out.Crowd = p.crowd(id, distinct)
	out.Own = p.ownResiduals(id, view, reader)
	switch masses := p.core.masses.(type) {
	case *fields:
		out.Residuals = p.weighLabels(&masses.each[id], view, reader)
	case *sharedDual:
		out.Residuals = p.byClass.Weigh(s.ClassA1, s.ClassA2, masses.residuals(id, view))
	}
	return out
}

// grow makes room for new communities.
func (p *posteriors) grow(view graphstore.View) {
	for p != nil && len(p.crowds) < view.Communities() {
		p.crowds = append(p.crowds, nil)
	}
}

// crowdMembers is the number of members above which a community has a crowd.
const crowdMembers = 200

func (c Config) crowdMost() int { return cmp.Or(c.crowdMembers, crowdMembers) }

// crowds lists the communities of more members, of whichever shard, in order.
func (c *Core) crowds(view graphstore.View) (list []graphstore.Community) {
	for id := range graphstore.Community(view.Communities()) {
		if c.tallies.Vertices(id, view) > c.config.crowdMost() {
			list = append(list, id)
		}
	}
	return list
}

// crowd returns the sums over the members of a community of so many, nil where all are to be read.
func (p *posteriors) crowd(id graphstore.Community, distinct int) *quant.Crowd {
	if distinct <= p.core.config.crowdMost() || p.gamma != nil || p.state.Held() {
		return nil
	}
	c := &quant.Crowd{}
	if sums := p.state.Crowd(id); sums != nil {
		c.Read = p.crowds[id]
		c.Mean, c.All, c.Squares, c.Turned = sums.Means()
	}
	return c
}

// keepCrowd has the sums over the members of a community be those that an estimate that has read all asks for.
func (p *posteriors) keepCrowd(id graphstore.Community, view graphstore.View, read *quant.Posterior) {
	if read != nil && read.Crowd != nil && read.Crowd.Fresh != nil {
		p.crowds[id] = read.Crowd.Fresh
		p.state.Keep(id, view, read.Crowd.Fresh.Factors)
	}
}

// weighLabels returns the sums of the residuals of all labels at the masses of a field.
func (p *posteriors) weighLabels(kernel *kernel, view graphstore.View, reader func() *posterior.Reader) *quant.Residuals {
	labels := p.core.tallies.Rows()
	masses := make([]float64, len(labels))
	for i, v := range labels {
		masses[i] = kernel.mass(v)
	}
	r := p.labels().Weigh(masses)
	r.Visit(func(visit func(a, g float64, pi, views []float64)) {
		weights := p.core.tallies.LabelWeights(view)
		p.visitLabels(reader(), labels, func(i int) (a, g float64) { return masses[i], weights(labels[i]) }, visit)
	})
	return r
}

// readLabels returns the residuals of all labels.
func (p *posteriors) readLabels(view graphstore.View) *quant.Residuals {
	residuals, weights := quant.NewResiduals(p.core.config.Classes), p.core.tallies.LabelWeights(view)
	for _, v := range p.core.tallies.Rows() {
		residuals.Add(int(view.Label(v).Class), weights(v), p.state.Posterior(v))
	}
	return residuals
}

// ownResiduals returns those of the members' calibration labels, nil for none.
func (p *posteriors) ownResiduals(id graphstore.Community, view graphstore.View, reader func() *posterior.Reader) *quant.Residuals {
	r := p.keptResiduals(id)
	labels, gains := []graphstore.Vertex(nil), []float64(nil)
	if r == nil {
		if labels, gains = p.ownLabels(id, view); len(labels) == 0 {
			return nil // as of most communities, which are asked at every emission
		}
		r = quant.NewResiduals(p.core.config.Classes)
		for i, v := range labels {
			r.Add(int(view.Label(v).Class), gains[i], p.state.Posterior(v))
		}
	}
	if !(r.Sum > 0) {
		return nil
	}
	r.Visit(func(visit func(a, g float64, pi, views []float64)) {
		if labels == nil {
			labels, gains = p.ownLabels(id, view)
		}
		p.visitLabels(reader(), labels, func(i int) (a, g float64) { return 0, gains[i] }, visit)
	})
	return r
}

// keptResiduals returns them from the sums over the members of many, nil where there are none: those do not
// know how old a label is.
func (p *posteriors) keptResiduals(id graphstore.Community) *quant.Residuals {
	c := p.state.Crowd(id)
	if c == nil || p.core.config.HalfLife > 0 {
		return nil
	}
	r, ok := quant.NewResiduals(p.core.config.Classes), false
	if r.Sum, r.Squares[0], r.First[0], r.FirstSquare, r.Second, ok = c.Own(); !ok {
		return nil
	}
	return r
}

// ownLabels lists the members that are calibration labels, and their weights.
func (p *posteriors) ownLabels(id graphstore.Community, view graphstore.View) (labels []graphstore.Vertex, gains []float64) {
	weights := p.core.tallies.LabelWeights(view)
	view.ForMembers(id, func(v graphstore.Vertex, multiplicity uint32) {
		label := view.Label(v)
		if label.Class != event.NoClass && label.Role == event.Calibrate && p.state.Posterior(v) != nil {
			labels, gains = append(labels, v), append(gains, float64(weights(v)*float64(multiplicity)))
		}
	})
	return labels, gains
}

// visitLabels visits labels, or every n-th with the weight of n, with their masses and what the coefficients multiply.
func (p *posteriors) visitLabels(reader *posterior.Reader, labels []graphstore.Vertex, of func(i int) (a, g float64),
	visit func(a, g float64, pi, views []float64),
) {
	views := make([]float64, posterior.Views*p.core.config.Classes)
	every := (len(labels)-1)/slopeLabelsMax + 1
	for i := 0; i < len(labels); i += every {
		if v := labels[i]; reader.Views(views, v) {
			a, g := of(i)
			visit(a, float64(every)*g, p.state.Posterior(v), views)
		}
	}
}
