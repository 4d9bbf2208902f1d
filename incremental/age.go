package incremental

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// massesAt returns the time of the masses of predictions when the log is at now: the start of the
// present step of age, 0 if predictions do not age. Masses are computed again once in each step, so
// they follow from the graph and the log's time.
func massesAt(view graphstore.View, now event.Time) event.Time {
	step := view.AgeStep()
	if step == 0 {
		return 0
	}
	return now - now%step
}

// setClock follows the store to an earlier log time: no pair is later than that, and neighbours
// count with the masses of that time. The changes of the step have been counted.
func (c *Core) setClock(view graphstore.View, now event.Time) {
	hard := c.config.families().HardPair
	c.sums = neighborhood.Recount(view, c.config.Classes, hard, massesAt(view, now))
	c.pairs.SetClock(now)
}

// age gives predictions the masses and labels the freshness that they have at the log's time, if
// another step of age has begun.
func (c *Core) age(view graphstore.View) {
	if c.agesHeld {
		return
	}
	labels := c.pairs.Age(c.time)
	if at := massesAt(view, c.time); labels || at != c.sums.At() {
		c.ageTo(view, at, labels)
	}
}

// ageTo gives predictions the masses that they have at a time: in the means of neighbours, and in
// the counts of communities. It also follows labels, if they have another age.
func (c *Core) ageTo(view graphstore.View, at event.Time, labels bool) {
	var nothing graphstore.Delta
	votes := c.sums.Age(view, at)
	c.pairs.Update(view, &nothing, c.sums)
	if c.warm() {
		c.tallies.Update(view, &nothing, c.sums, votes)
		if changed := c.posteriors.age(view, &nothing, votes, at); changed || labels ||
			len(votes) > 0 {
			c.tallies.TouchAll()
		}
	}
}

// age counts members with the masses of a time, and follows the means of their neighbours. It
// returns whether a mass changed.
func (p *posteriors) age(
	view graphstore.View, nothing *graphstore.Delta, votes []graphstore.Vertex, at event.Time,
) (changed bool) {
	if p == nil {
		return false
	}
	changed = p.state.Age(view, at)
	p.applyChange(view, nothing, votes)
	return changed
}

// addAges adds to a record of auto how recent the predictions of the members and the labels are.
func (c *Core) addAges(
	record *quant.Estimate, id graphstore.Community, view graphstore.View, options quant.Options,
) {
	if c.posteriors == nil || options.Method != quant.Auto || c.posteriors.state.Epoch() == nil {
		return
	}
	if view.AgeStep() > 0 {
		record.Recent = c.posteriors.state.Histogram(id).Recent()
	}
	record.LabelFreshness = c.pairs.Freshness()
}

// Ages are the log times as of which predictions and labels have their ages; 0: they have none.
type Ages struct{ Predictions, Labels event.Time }

// Ages returns the times of the present ages.
func (c *Core) Ages() Ages { return Ages{c.sums.At(), c.pairs.At()} }

// HoldAges gives predictions and labels the ages of these times, whether the log goes on or not.
func (c *Core) HoldAges(at Ages) {
	c.agesHeld = true
	c.ageTo(c.View(), at.Predictions, c.pairs.Age(at.Labels))
	c.republishAll()
}
