package incremental

import (
	"math"
	"slices"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/posterior"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/auto"
	"gqlstream/quant/stats"
)

// posteriors keeps the inputs of auto that the tallies lack: how many members of each community are
// in each cell, and the residuals of the labels. It is nil, and does nothing, if no estimate reads
// it.
type posteriors struct {
	core  *Core
	state *posterior.State
	gamma *float64 // of every community, nil where edges decide; see Hold

	// As of the last emission:
	labels  *stats.LabelResiduals                     // for a field of each community
	byClass *stats.ClassResiduals                     // for a dual, and the mean of all labels
	own     map[graphstore.Community]*stats.Residuals // of the members' calibration labels
	between []float64                                 // see stats.Posterior
	sample  func() *stats.LabelSample
	within  func() []float64

	// the mean residual of all labels and its errors when all communities were touched last
	touchedAt [2][]float64
}

// residualMoveMax bounds how far the mean residual of all labels may move, in its standard errors
// and as a part of Emit.Threshold. Beyond it every community is solved again.
const residualMoveMax = 0.25

// residualRounding bounds the rounding of sums of residuals, which depends on the order of the
// terms.
const residualRounding = 1e-12

// readsPosterior reports whether an estimate reads posteriors.
func (c Config) readsPosterior() bool {
	if c.Classes > pairClassesMax { // posteriors work on pairs of classes
		return false
	}
	return slices.ContainsFunc(c.Estimates, func(o quant.Options) bool {
		return o.Method.ReadsPosterior()
	})
}

// newPosteriors computes those of a core that gets warm.
func newPosteriors(c *Core, view graphstore.View) *posteriors {
	if !c.config.readsPosterior() {
		return nil
	}
	p := &posteriors{
		core:  c,
		state: posterior.New(c.config.Classes, c.config.LabelsDrawn, c.pairs, c.tallies.Rows),
	}
	p.state.Rebuild(view, c.sums, c.tallies.LabelWeights(view), c.time)
	return p
}

// Choices holds the choices of auto about the graph as a whole and about one community.
type Choices struct {
	Epoch *posterior.Epoch // the coefficients; nil: fitted at the next emission
	Gamma *float64         // how far the community was selected by class; nil: edges decide
}

// Hold makes auto use these coefficients for the graph, and this gamma for each community, until
// the next call. Events of the log do not change them. The core must have emitted before.
func (c *Core) Hold(r Choices) {
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

// applyChange updates the posteriors after a change of the graph.
func (p *posteriors) applyChange(
	view graphstore.View,
	delta *graphstore.Delta,
	votes []graphstore.Vertex,
) {
	if p != nil {
		p.state.Update(view, delta, p.core.sums, votes)
	}
}

// ready updates the inputs of an emission, and touches the communities that they change. If the
// emission publishes every change, the least change of the labels' residuals touches all.
func (p *posteriors) ready(view graphstore.View, all bool) {
	if p == nil {
		return
	}
	weights := p.core.tallies.LabelWeights(view)
	computed, began := p.state.Ready(view, p.core.sums, weights, p.core.time,
		func(computed []graphstore.Vertex) {
			p.touch(view, computed)
			p.learn(view)
			p.carry(view)
		})
	if began {
		p.core.republishAll()
	}
	p.within = sync.OnceValue(func() []float64 { return p.state.Within(view) })
	p.sample = sync.OnceValue(func() *stats.LabelSample { return p.draw(view) })
	p.touch(view, computed)
	p.learn(view)
	p.countResiduals(view)
	most := residualMoveMax * p.core.config.Emit.Threshold
	if all {
		most = 0
	}
	p.touchByResidual(most)
}

// touch touches the communities of vertices that have another posterior, and all where a field
// gives a label a mass in each.
func (p *posteriors) touch(view graphstore.View, computed []graphstore.Vertex) {
	moves, shared := p.state.Moves(), p.core.engine() == EngineDual
	p.state.Hubs(view, computed, moves, p.core.tallies.TouchTogether)
	for i, v := range computed {
		if l := view.Label(v); !shared && l.Class != event.NoClass && l.Role == event.Calibrate {
			p.core.tallies.TouchAll()
		}
		p.core.tallies.TouchPosterior(view, v, moves[i])
	}
}

// touchByResidual touches every community once the mean residual of all labels, which all read, has
// moved by more than most of its standard errors.
func (p *posteriors) touchByResidual(most float64) {
	mean, errors := p.byClass.Mean()
	if len(mean) != len(p.touchedAt[0]) {
		p.touchedAt = [2][]float64{mean, errors}
		p.core.tallies.TouchAll()
		return
	}
	moved := false
	for i := range mean {
		change := max(math.Abs(mean[i]-p.touchedAt[0][i]), math.Abs(errors[i]-p.touchedAt[1][i]))
		moved = moved || change > max(most*errors[i], residualRounding)
	}
	if moved {
		p.core.tallies.TouchAll()
	}
	if moved || most == 0 {
		p.touchedAt = [2][]float64{mean, errors} // also a change by rounding, as after a restart
	}
}

// flush computes the posteriors that are late, before all that moved is published and for a
// checkpoint, which holds none: a core that is restored from it computes them from the graph.
func (p *posteriors) flush(view graphstore.View) {
	if p != nil {
		p.touch(view, p.state.Flush(view, p.core.sums))
		p.learn(view)
		p.countResiduals(view)
		p.touchByResidual(0)
	}
}

// carry keeps, before an epoch ends, how far the shares of every community have moved since its
// last record: its cells are about to be others.
func (p *posteriors) carry(view graphstore.View) {
	var reader auto.Quantifier
	followed := p.state.Followed(view, p.core.sums)
	for id := range p.core.published {
		last, c := &p.core.published[id], graphstore.Community(id)
		last.snapshots = slices.Clone(last.snapshots) // a checkpoint may be reading them
		for i, before := range last.snapshots {
			if before == nil || before.Memory.Posterior != uint64(p.state.Epoch().Version) {
				continue
			}
			counts, then, now := p.counts(c, view), *p.counts(c, view), *before
			counts.Means, counts.Prior = followed.Means, followed.Shares
			counts.LabelWeights, counts.Atypical = followed.LabelWeights(), followed.Atypical
			members := p.core.tallies.Members(c)
			now.Memory.Carried = reader.CarryCorrection(&then, counts, members, &before.Memory)
			last.snapshots[i] = &now
		}
	}
}

// learn takes out of the movement since the last record of every community by how much labels alone
// have changed how its members are read.
func (p *posteriors) learn(view graphstore.View) {
	var reader auto.Quantifier
	p.state.Learned(func(id graphstore.Community, without []float64) {
		if int(id) >= len(p.core.published) || len(p.core.published[id].snapshots) == 0 {
			return
		}
		last, counts := &p.core.published[id], p.counts(id, view)
		last.snapshots = slices.Clone(last.snapshots) // a checkpoint may be reading them
		for i, before := range last.snapshots {
			if before != nil {
				now := *before
				now.Memory = reader.Learn(counts, without, before.Memory)
				last.snapshots[i] = &now
			}
		}
	})
}

// counts returns the part of the input of auto that comes from the cells and edges of a community.
func (p *posteriors) counts(id graphstore.Community, view graphstore.View) *stats.Posterior {
	e, h := p.state.Epoch(), p.state.Histogram(id)
	edges, distinct, degrees := p.state.Inside(id)
	var apart func(members float64) float64
	if means := h.Features(); means != nil {
		apart = func(members float64) float64 { return e.Apart(means, members) }
	}
	return &stats.Posterior{
		Version: e.Version, Prior: e.Shares, LabelGate: e.LabelGate, Gamma: p.gamma,
		LabelWeights: e.LabelWeights(), Atypical: e.Atypical, PriorNoise: e.SharesNoise,
		Selected: p.core.selectedBy[view.CommunityName(id)],
		Means:    e.Means, Views: e.Views, Counts: h.Cells(), All: h.All(), Squares: h.Squares(),
		Predicted: h.Tops(), Apart: apart,
		Inside: float64(edges), Distinct: float64(distinct), Degrees: float64(degrees),
		Vertices: e.Vertices, Sizes: e.Sizes, Mass: e.Mass, Tops: e.Tops, Expected: e.Expected,
		Agreement: e.Agreement, Stale: 1 - p.core.pairs.Freshness(),
		Coefficients: e.Covariance, Shared: len(e.Theta),
	}
}

// of returns the input of auto for one community in addition to s, nil while there is no label. It
// may be called for several communities at the same time.
func (p *posteriors) of(
	id graphstore.Community, view graphstore.View, s *stats.Statistics,
) *stats.Posterior {
	if p == nil || p.state.Epoch() == nil {
		return nil
	}
	out := p.counts(id, view)
	out.Within, out.Labels = p.within(), p.sample
	out.Own, out.Between = p.own[id], p.between
	switch kernels := p.core.kernels.(type) {
	case *fields:
		out.Residuals = p.labels.Weigh(kernels.labelMasses(id))
	case *sharedDual:
		a1, a2 := slices.Clone(s.ClassA1), slices.Clone(s.ClassA2)
		for i, w := range out.LabelWeights {
			a1[i], a2[i] = w*a1[i], w*w*a2[i]
		}
		out.Residuals = p.byClass.Weigh(a1, a2, kernels.labelResiduals(id, view))
	}
	return out
}
