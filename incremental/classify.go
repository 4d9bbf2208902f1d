package incremental

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/prequential"
	"gqlstream/ingest/event"
)

// classify lets the built-in classifier of a warm core follow a step, and at an emission counts the
// predictions that it changes as a second change of the same step. The masses need not know: they
// follow sources and edges only.
func (c *Core) classify(view graphstore.View, delta *graphstore.Delta, emit bool) {
	if c.walks == nil {
		return
	}
	c.walks.Update(view, delta)
	if emit {
		c.count(view, c.store.Derive(c.walks.Derive(view), classifier.Name))
	}
}

// startClassifier lets the configured classifier predict a graph that it sees for the
// first time. The core is still cold.
func (c *Core) startClassifier(view graphstore.View) {
	if c.config.Classifier == "" {
		return
	}
	c.walks = classifier.New(c.config.Classes, view)
	c.count(view, c.store.Derive(c.walks.Derive(view), classifier.Name))
}

// noVersion is the index of no model version.
const noVersion = ^uint32(0)

// noticeAt is the share of the vertices that an incoming model version must cover
// before records speak of it: a few strays of an old one are no roll-out.
const noticeAt = 0.01

// incomingVersion returns the model version of the roll-out that records report, or noVersion.
func incomingVersion(view graphstore.View) uint32 {
	r, ok := view.RollOut()
	if !ok || float64(r.VerticesCovered) < noticeAt*float64(r.Vertices) {
		return noVersion
	}
	return r.Version
}

// modelVersion returns the model version of most members of a community, and whether there are
// others: a built-in classifier next to the version in use. A community without predictions has the
// version in use.
func (c *Core) modelVersion(
	id graphstore.Community,
	view graphstore.View,
) (version uint32, mixed bool) {
	active, known := view.ActiveVersion()
	if !known {
		active = 0
	}
	return c.tallies.ModelVersion(id, active)
}

// scorePredictions holds every calibration label that arrived in a step against the prediction that
// it is paired with, if its vertex had one before the step: a label that came before every
// prediction may have influenced them. It reports whether that shows that a model version has
// become worse, or is well again.
func (c *Core) scorePredictions(view graphstore.View, delta *graphstore.Delta) (degraded bool) {
	for _, l := range delta.Labels {
		if l.Before.Class != event.NoClass || l.After.Class == event.NoClass ||
			l.After.Role != event.Calibrate {
			continue
		}
		before, _ := neighborhood.PredictionBefore(view, delta, l.V)
		if units := c.pairs.Prediction(view, l.V); before != nil && units != nil {
			degraded = c.scores.Judge(c.pairs.Version(view, l.V), units, l.After.Class) || degraded
		}
	}
	return degraded
}

// Judged returns the accuracy of the model versions: the core's own, read-only,
// until the next Step.
func (c *Core) Judged() []prequential.Version { return c.scores.Versions() }
