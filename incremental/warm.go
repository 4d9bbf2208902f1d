package incremental

import (
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/audit"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
)

// live holds the parts that a warm core keeps current with every step; a cold core has none.
// A core gets warm in warmUp, at its first emission, or in restoreLive, and cold again when a
// configure event is carried out. There are no other transitions.
type live struct {
	tallies    *tally.Tallies
	audits     *audit.Tallies
	masses     masses
	walks      *classifier.Diffusion  // where a classifier is configured
	posteriors *posteriors            // where an estimate reads them
	published  []publication          // by community
	flagged    []graphstore.Community // with a record that says that coefficients are new, and some others
	loading    bool                   // whether a history is being read; see waits
}

// warm reports whether the core follows every step.
func (l *live) warm() bool { return l.masses != nil }

// openStep makes room for what the step brings and forgets what the last one changed.
func (c *Core) openStep(view graphstore.View) {
	if c.warm() {
		c.tallies.Begin(view)
	}
}

// count brings the neighbours' sums, and in a warm core the tallies, to the graph of view,
// which delta led to. A step does so twice where a built-in classifier changes predictions.
func (c *Core) count(view graphstore.View, delta *graphstore.Delta) {
	votes := c.sums.Update(view, delta)
	if c.warm() {
		c.audits.Update(view, delta, c.tallies.Move)
		c.tallies.Update(view, delta, c.sums, votes)
		c.posteriors.follow(view, delta, votes)
	}
}

// followMasses brings the kernel masses to the graph of view, once all predictions of the
// step are known.
func (c *Core) followMasses(view graphstore.View, delta *graphstore.Delta) {
	if c.warm() {
		c.masses.Follow(view, delta)
	}
}

// prepareEmission makes everything current that estimates read, and a cold core warm. Where all
// that moved is published, nothing is missed that a checkpoint would compute.
func (c *Core) prepareEmission(view graphstore.View, all bool) {
	if !c.warm() {
		c.warmUp(view)
	}
	if all {
		c.flush(view)
	}
	c.posteriors.ready(view)
	c.masses.Ready(view)
	c.posteriors.readyResiduals(view, all)
	for len(c.published) < view.Communities() {
		c.published = append(c.published, publication{})
	}
	c.posteriors.grow(view)
}

// warmUp counts from nothing what a warm core keeps. Here alone it is decided who keeps the masses.
func (c *Core) warmUp(view graphstore.View) {
	c.startClassifier(view)
	c.tallies = tally.New(c.config.Classes, c.config.families(), view, c.sums)
	c.audits = audit.New(c.config.Classes, view)
	c.posteriors = newPosteriors(c, view)
	if c.config.sharesMasses() {
		c.masses = newShared(c, view)
	} else {
		c.masses = &fields{core: c}
	}
}

// flush computes what was missed, and makes the rest that of a core that is restored, before a checkpoint and before all
// that moved is published.
func (c *Core) flush(view graphstore.View) {
	c.posteriors.flush(view)
	if d, is := c.masses.(*sharedDual); is {
		d.flush(view)
	}
}

// republishAll has every community solved and published again, as if its record were old.
func (c *Core) republishAll() {
	if !c.warm() {
		return
	}
	c.tallies.MoveAll()
	for id := range c.published {
		if last := &c.published[id]; last.exists() {
			last.Solved = longAgo
		}
	}
}

const longAgo = event.Time(math.MinInt64 / 2) // also where the log has no times, and all is at 0
