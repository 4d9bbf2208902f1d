package incremental

import (
	"math"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant/stats"
)

// live holds the parts that a warm core keeps current with every step; a cold core has none. A core
// gets warm in warmUp, at its first emission, or in restoreLive, and cold again when a configure,
// recompute or clock event is applied.
type live struct {
	tallies    *tally.Tallies
	kernels    kernels
	walks      *classifier.Diffusion // where a classifier is configured
	posteriors *posteriors           // where an estimate reads them
	published  []publication         // by community
	loading    bool                  // whether a history is being read; see loadsHistory
	labelAge   func() float64        // seconds, as of the last emission; see quant.Estimate
}

// warm reports whether the core follows every step.
func (l *live) warm() bool { return l.kernels != nil }

// openStep allocates the new vertices and communities and clears the lists of the last step's
// changes.
func (c *Core) openStep(view graphstore.View) {
	if c.warm() {
		c.tallies.Begin(view)
	}
}

// count updates the neighbours' sums and the pairs, and in a warm core the tallies, to view, the
// graph after delta. A step does so twice where a built-in classifier changes predictions.
func (c *Core) count(view graphstore.View, delta *graphstore.Delta) {
	votes := c.sums.Update(view, delta)
	c.pairs.Update(view, delta, c.sums)
	if c.warm() {
		c.tallies.Update(view, delta, c.sums, votes)
		c.posteriors.applyChange(view, delta, votes)
	}
}

// followMasses updates the kernel masses to the graph of view, after all predictions of the step.
func (c *Core) followMasses(view graphstore.View, delta *graphstore.Delta) {
	if c.warm() {
		c.kernels.Follow(view, delta)
	}
}

// prepareEmission makes everything current that estimates read, and a cold core warm. Where all
// that moved is published, nothing is late that a checkpoint would compute.
func (c *Core) prepareEmission(view graphstore.View, all bool) {
	if !c.warm() {
		c.warmUp(view)
	}
	if all {
		c.flush(view)
	}
	c.posteriors.ready(view, all)
	c.kernels.Ready(view)
	c.labelAge = sync.OnceValue(func() float64 {
		return c.tallies.LabelAge(view, c.time).Seconds()
	})
	for len(c.published) < view.Communities() {
		c.published = append(c.published, publication{})
	}
}

// warmUp computes the state of a warm core from the graph.
func (c *Core) warmUp(view graphstore.View) {
	c.startClassifier(view)
	c.tallies = tally.New(c.config.Classes, c.config.families(), view, c.sums, c.pairs)
	c.posteriors = newPosteriors(c, view)
	if c.config.sharesKernels() {
		c.kernels = newShared(c, view)
	} else {
		c.kernels = &fields{core: c}
	}
}

// flush completes the pending computations and makes the state equal to that of a restored core. It
// runs before a checkpoint and before every movement is published.
func (c *Core) flush(view graphstore.View) {
	c.posteriors.flush(view)
	if d, is := c.kernels.(*sharedDual); is {
		d.flush(view)
	}
}

// republishAll has every community solved and published again, as if its record were old.
func (c *Core) republishAll() {
	if !c.warm() {
		return
	}
	c.tallies.TouchAll()
	for id := range c.published {
		if last := &c.published[id]; last.exists() {
			last.Solved, last.Published = longAgo, longAgo
		}
	}
}

const longAgo = event.Time(math.MinInt64 / 2) // also where the log has no times, and all is at 0

// The structures that keep kernel masses, by name.
const (
	EnginePrimal = "primal" // fields: one for each community
	EngineDual   = "dual"   // one dual for all of them
)

// kernels keeps the kernel masses of all communities current and hands out the statistics that rest
// on them. There are two implementations: fields, one for each community, and sharedDual, one
// structure for all. Step does not know which of them it has.
type kernels interface {
	// Follow updates the masses to view, the graph after delta. The tallies are at the end of the
	// step already.
	Follow(view graphstore.View, delta *graphstore.Delta)
	// Ready updates the masses for an emission; the following methods are valid until Follow.
	Ready(view graphstore.View)
	// Statistics returns the statistics of one community. It may be called for several communities
	// side by side.
	Statistics(id graphstore.Community, view graphstore.View) reading
	// Certificate bounds the error of a tally of the community, A1 over M.
	Certificate(id graphstore.Community) float64
	// State adds all that a restart needs of the masses as sections.
	State(add addSection)
}

// addSection adds a section of the state that encode returns, later if that reads a copy.
type addSection func(name string, copied bool, encode func() ([]byte, error))

// reading is the answer of masses about one community.
type reading struct {
	*stats.Statistics
	engine string // EngineDual, or nothing
	// of a dual: the second moments that it rests on; nil: a bound replaces them
	spread *tally.Spread
}

// reachMin is the mean mass of a community's labels, in mean masses of all vertices, that counts
// as none: hardly a walk ends there.
const reachMin = 0.001

// fieldBytes is about how much memory a field takes for each vertex.
const fieldBytes = 44

// engine returns the name of the masses' implementation in a warm core.
func (c *Core) engine() string {
	if _, is := c.kernels.(*sharedDual); is {
		return EngineDual
	}
	return EnginePrimal
}

// FieldBytes returns about how much memory the fields of communities take, which nothing bounds
// where methods weigh cells.
func (c *Core) FieldBytes() (bytes int) {
	if f, are := c.kernels.(*fields); are {
		for i := range f.each {
			if f.each[i].field != nil {
				bytes += fieldBytes * c.View().Vertices()
			}
		}
	}
	return bytes
}

// reach returns the factor of the tolerance for a community, given the mean mass at the labels from
// its sources: 1 while that is near the share of labels.
func (c *Core) reach(mean float64, view graphstore.View) float64 {
	labels := c.tallies.LabelMass()
	if labels == 0 {
		return 1
	}
	usual := reachUsual * labels / float64(view.Vertices())
	return min(1, max(mean/usual, reachLeast, dualToleranceMin/c.config.Tolerance))
}

// exactTermsMax bounds the terms of the passes over calibration labels and members that exact
// variances take, summed over one community, and exactTermsShared where a dual serves many of them;
// above it the diagonal stand-in from the tallies is used, and the record reports it.
const exactTermsMax, exactTermsShared = 50_000_000, 4_000_000

// affordsExact reports whether the exact variances of one community are affordable. It
// depends on the state alone, so a replay decides the same.
func (c *Core) affordsExact(id graphstore.Community, view graphstore.View, most float64) bool {
	k := c.config.Classes
	vertices := len(c.tallies.Rows()) + c.tallies.Vertices(id, view)
	return float64(vertices)*float64(k*k*k) <= most
}
