package incremental

import (
	"cmp"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

// The planner chooses between fields and a dual where the configuration leaves it open. It
// adds up, from one emission to the next, what the engine in use has cost and what the
// other one would have cost, in neighbours visited by a push, and changes over once it
// has lost as much as the change costs. It reads counters that the log alone decides, so
// a replay changes at the same positions. Products that are no whole numbers are rounded
// before they are added, so that no architecture fuses them. Whether a field or the dual sweeps a batch or
// iterates is decided inside, batch by batch; see package diffusion.
type plan struct {
	Edges, Rows float64 // changed since the last emission
	Pushed      float64 // neighbours that the engine in use has visited, at the last emission
	Passes      float64 // and its passes over the graph
	FieldRate   float64 // what a field has cost a change of an edge, as last seen
	DualRate    float64 // what a dual has cost a change of an edge or a row, by its weight
	Regret      float64 // what the engine in use has cost more than the other would have
	Patience    float64 // regret it takes, in costs of a change; doubles with every change
	Changes     uint64
}

// Costs in neighbours visited by a push, measured; see package diffusion.
const (
	solvePass  = 9    // passes of a solve
	edgeVisits = 100  // of a field or a dual, after a change of an edge
	rowCost    = 30   // of a changed row in the tallies of one community
	readCost   = 0.25 // of one value of the dual, read for a member

	dualFixed, dualEach = 0.5, 0.15 // a visit of a dual of L functions costs 0.5 + 0.15 L

	patienceMin, patienceMax = 2, 1 << 10
	changeMin                = 1 << 22 // what a change costs at least: small graphs need no choice

	// stallMax is how much work a step may spend on the fields of new communities: a second
	// of one core, at most.
	stallMax = 1 << 26

	// fieldsBytesMax is what the fields of a cold core may take before a dual that takes
	// less is chosen at once.
	fieldsBytesMax = 1 << 30
	fieldBytes     = 44 // a vertex
)

// planned reports whether the planner has a choice.
func (c *Core) planned() bool {
	return c.config.Engine == "" && c.config.Kernel == diffusion.PPR && !c.config.primalOnly()
}

// coldDual reports whether a core that becomes warm starts with a dual.
func (c *Core) coldDual(view graphstore.View) bool {
	if !c.planned() {
		return c.config.Engine == EngineDual
	}
	fields := fieldsBytes(view.Communities(), view)
	return fields > fieldsBytesMax && c.dualBytes(view) < fields
}

// crowded reports whether fields for the new communities of a step would stop the log for long,
// or take more memory than is good, where a dual would not: then the planner does not wait
// for an emission.
func (c *Core) crowded(view graphstore.View) bool {
	fresh := view.Communities() - len(c.kernels)
	if fresh == 0 {
		return false
	}
	fields := fieldsBytes(view.Communities(), view)
	stall := float64(fresh) * solvePass * diffusion.PassCost(view)
	crowd := stall > cmp.Or(c.config.stallMax, stallMax) || fields > fieldsBytesMax
	return crowd && c.dualBytes(view) < max(fields, fieldsBytesMax)
}

// fieldsBytes returns what the fields of so many communities take.
func fieldsBytes(communities int, view graphstore.View) float64 {
	return float64(communities) * float64(view.Vertices()) * fieldBytes
}

// dualBytes returns what a dual of the tallies takes.
func (c *Core) dualBytes(view graphstore.View) float64 {
	return float64(view.Vertices()) * (16*float64(c.tallies.Functions()) + 20)
}

// bound keeps the patience within its bounds.
func (p *plan) bound() { p.Patience = min(max(p.Patience, patienceMin), patienceMax) }

// note counts what a step changed.
func (p *plan) note(edges, rows int) {
	p.Edges += float64(edges)
	p.Rows += float64(rows)
}

// plan changes the engine if the other one is cheaper by enough.
func (c *Core) plan(view graphstore.View) {
	p := &c.planner
	own, other, change := c.costs(view)
	change = max(change, cmp.Or(c.config.changeMin, changeMin))
	p.bound()
	p.Regret = max(0, p.Regret+own-other)
	outgrown := c.dual == nil && !c.fits(view, false)
	if outgrown || p.Regret > p.Patience*change && c.fits(view, c.dual == nil) {
		c.change(view)
	}
	p.Edges, p.Rows = 0, 0
	p.Pushed, p.Passes = c.work()
}

// costs returns what the engine in use has cost since the last emission, what the other
// would have, and what a change costs.
func (c *Core) costs(view graphstore.View) (own, other, change float64) {
	p := &c.planner
	pushed, passes := c.work()
	communities, sources := c.load(view)
	pass := diffusion.PassCost(view)
	spent := pushed - p.Pushed + float64(pass*(passes-p.Passes))
	functions := float64(c.tallies.Functions())
	weight := dualFixed + float64(dualEach*functions)
	rows := rowCost * p.Rows * communities
	beside := 0.0 // what a dual costs beside itself: refreshes and reading
	if p.Edges+p.Rows > 0 {
		earned := cmp.Or(c.config.refreshEarned, refreshEarned)
		beside = min(earned/diffusion.PassGain, communities*solvePass*pass) + float64(readCost*sources*functions)
	}
	if c.dual != nil {
		learn(&p.DualRate, spent, p.Edges+p.Rows)
		other = float64(cmp.Or(p.FieldRate, edgeVisits) * p.Edges * communities)
		return float64(weight*spent) + beside, other + rows, communities * solvePass * pass
	}
	learn(&p.FieldRate, spent, p.Edges*communities)
	other = float64(weight * cmp.Or(p.DualRate, edgeVisits) * (p.Edges + p.Rows))
	return spent + rows, other + beside, weight * solvePass * pass
}

// learn moves a rate towards what was just spent on so many changes.
func learn(rate *float64, spent, changes float64) {
	switch {
	case changes == 0:
	case *rate == 0:
		*rate = spent / changes
	default:
		*rate += float64((spent/changes - *rate) / 8)
	}
}

// fits reports whether the memory of an engine is within bounds, or no more than that of
// the other.
func (c *Core) fits(view graphstore.View, dual bool) bool {
	fields, shared := fieldsBytes(len(c.kernels), view), c.dualBytes(view)
	if dual {
		return shared < max(fields, fieldsBytesMax)
	}
	return fields < max(shared, fieldsBytesMax)
}

// work returns what the engine in use has done since it began.
func (c *Core) work() (pushed, passes float64) {
	add := func(w diffusion.Work) {
		pushed += float64(w.Traversals) + diffusion.PushCost*float64(w.Pushes)
		passes += float64(w.Iterations + w.Rebuilds)
	}
	if c.dual != nil {
		add(c.dual.Work())
		return pushed, passes
	}
	for _, k := range c.kernels {
		if k.field != nil {
			add(k.field.Work())
		}
	}
	return pushed, passes
}

// load returns how many communities have a kernel, and their members.
func (c *Core) load(view graphstore.View) (communities, sources float64) {
	for id := range c.kernels {
		if m := c.tallies.KernelSum(graphstore.Community(id)); m > 0 && !view.Retired(graphstore.Community(id)) {
			communities++
			sources += m
		}
	}
	return communities, sources
}

// change takes the core from fields to a dual or back. Both sides are solved for the
// present graph.
func (c *Core) change(view graphstore.View) {
	p := &c.planner
	p.bound()
	p.Patience, p.Regret = 2*p.Patience, 0
	p.Changes++
	if c.dual != nil {
		c.dual = nil
		for id := range c.kernels {
			k := c.newKernel()
			k.published, k.version = c.kernels[id].published, c.kernels[id].version
			c.kernels[id] = k
		}
		c.forCommunities(func(id graphstore.Community, _ int) {
			c.kernels[id].field.Solve(view, c.sources(id, view), c.config.Tolerance)
			c.tallies.SetSpread(id, nil)
			c.tallies.RebuildKernel(id, view, c.sums, c.kernels[id].mass)
		})
		p.Pushed, p.Passes = c.work()
		return
	}
	c.forCommunities(func(id graphstore.Community, _ int) {
		k := c.kernels[id]
		c.tallies.Refresh(id, view, c.sums, k.mass, c.position, c.time)
		c.tallies.DropKernel(id)
		k.field = nil // before the dual takes its memory
	})
	c.startDual(view)
	c.tallies.MarkMoved(view, c.dual.Touched())
	p.Pushed, p.Passes = c.work()
}
