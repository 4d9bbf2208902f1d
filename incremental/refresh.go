package incremental

import (
	"cmp"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

// refreshes decides whose second moments are counted anew at an emission, as far as the
// work that emissions earn allows; see tally.Tallies.Refresh for what holds in between.
// Who is next hangs on the state alone, so a replay decides the same.
type refreshes struct {
	credit      []float64              // work that refreshes may do, in neighbours visited, by shard
	unrefreshed []graphstore.Community // those that had no second moments yet, in order
}

const (
	// refreshEarned is the work an emission earns, in neighbours visited by a pass over
	// the graph for one source: about a millisecond of one core.
	refreshEarned = 1 << 20
	// refreshArriving multiplies it at an emission with arrivingShare more labels than the last one:
	// second moments of half a second ago took one share in a hundred .07 to .14 standard errors off.
	refreshArriving, arrivingShare = 8, 0.01
	// refreshSaved bounds the emissions whose work can be saved up, so that a quiet log is
	// not followed by a long stop.
	refreshSaved = 4
	// refreshFirst multiplies the charge for the first solve of a community, whose intervals are bounds until then, and
	// refreshAgain that for a later one: where few labels come, second moments change little in a minute.
	refreshFirst, refreshAgain = 0.5, 2
	// refreshTolerance multiplies the tolerance of a kernel for these solves. It makes standard errors a
	// thousandth larger in the middle, and eight hundredths in one of a hundred.
	refreshTolerance = 3
	// The first emission of a cold core may do the work of refreshCold emissions, about half a second of
	// one core, or of refreshPatient, some minutes, in a core that makes a single emission.
	refreshCold, refreshPatient = 1 << 7, 1 << 16
	// churnedShare is the share of a community's sources that must have joined or left
	// for its second moments to be counted anew.
	churnedShare = 0.1
	// refreshAge is the log time after which those of a community that moved are.
	refreshAge = 30 * time.Second
)

// A block of communities is solved for at once, and two blocks side by side, while that takes
// no more than refreshBytesMax; on a graph so large that it would, a community is alone.
const (
	refreshBlocks   = 2
	refreshBytesMax = 1 << 30
	refreshBytes    = 136 // a vertex, of one block
	refreshPass     = 2   // what a pass for a block costs, in passes for one source
)

// refreshDue refreshes the communities of each shard that are due, most urgent first, while the credit of the
// shard lasts. A budget for all communities would let the shards that a worker has decide what
// it publishes.
func (r *refreshes) refreshDue(c *Core, earned float64, view graphstore.View) {
	byShard := make([][]dueRefresh, c.shards())
	for _, d := range r.due(c, view) {
		shard := c.shardOf(d.id, view)
		byShard[shard] = append(byShard[shard], d)
	}
	for shard, due := range byShard {
		credit := r.credit[shard]
		if credit > 0 {
			if work := r.sketchDue(c, shard, due, view); work > 0 {
				credit, due = credit-work, nil
			}
		}
		r.credit[shard] = c.refreshShard(due, credit, earned, view)
	}
}

// saveUp keeps the work of an emission for later ones, up to most.
func (r *refreshes) saveUp(earned, most float64) {
	for shard, credit := range r.credit {
		r.credit[shard] = max(credit, min(credit+earned, most))
	}
}

// refreshShard refreshes the communities of one shard that are due and returns the credit that is left.
func (c *Core) refreshShard(due []dueRefresh, credit, earned float64, view graphstore.View) float64 {
	if credit < refreshSaved*earned {
		credit = min(credit+earned, refreshSaved*earned)
	}
	for len(due) > 0 && credit > 0 {
		n := min(len(due), refreshedTogether(view))
		credit -= c.refresh(due[:n], view)
		due = due[n:]
	}
	return min(credit, refreshSaved*earned)
}

// refreshedTogether returns the number of communities that are solved for at once.
func refreshedTogether(view graphstore.View) int {
	switch block := refreshBytes * view.Vertices(); {
	case refreshBlocks*block <= refreshBytesMax:
		return refreshBlocks * diffusion.TogetherMax
	case block <= refreshBytesMax:
		return diffusion.TogetherMax
	}
	return 1
}

// refresh solves for communities, a block at a time, and counts their second moments. It returns its work.
func (c *Core) refresh(due []dueRefresh, view graphstore.View) float64 {
	const each = diffusion.TogetherMax
	work := make([]float64, (len(due)+each-1)/each)
	parallel.Each(len(work), func(i, _ int) {
		work[i] = c.refreshBlock(due[i*each:min((i+1)*each, len(due))], view)
	})
	sum := 0.0
	for _, w := range work {
		sum += w
	}
	return sum
}

// refreshBlock is refresh for communities that are solved for together.
func (c *Core) refreshBlock(due []dueRefresh, view graphstore.View) (work float64) {
	mass, passes := c.solveMasses(due, view)
	each := passes * float64(2*view.Edges()+view.Vertices()) / float64(len(due))
	for i, d := range due {
		c.tallies.Refresh(d.id, view, func(v graphstore.Vertex) float64 { return max(mass(i, v), 0) }, c.position, c.time)
		c.tallies.Move(d.id)
		if d.first {
			work += refreshFirst * each
		} else {
			work += refreshAgain * each
		}
	}
	return work
}

// solveMasses solves for the kernels of some communities, and returns their masses and what
// that cost in passes for one source. One alone is a field, which takes half the memory.
func (c *Core) solveMasses(due []dueRefresh, view graphstore.View) (mass func(i int, v graphstore.Vertex) float64, passes float64) {
	config := c.config.diffusion()
	config.Tolerance = min(refreshTolerance*config.Tolerance, 1)
	if len(due) == 1 {
		field := c.newField()
		field.Solve(view, diffusion.Sources(due[0].id, view), config.Tolerance)
		work := field.Work()
		return func(_ int, v graphstore.Vertex) float64 { return field.Mass(v) }, float64(work.Iterations + work.Rebuilds)
	}
	sources := make([][]diffusion.SourceChange, len(due))
	for i := range due {
		sources[i] = diffusion.Sources(due[i].id, view)
	}
	solved, err := diffusion.SolveTogether(view, config, sources)
	if err != nil {
		panic(err) // the configuration was validated
	}
	return solved.Mass, refreshPass * float64(solved.Passes())
}

type dueRefresh struct {
	id    graphstore.Community
	first bool // there are none yet
}

// due lists the communities whose second moments are out of date, most urgent first: those
// that never had any, and, oldest first, those that moved and whose labels, masses or members
// are a tenth others than they were, or whose second moments are old.
func (r *refreshes) due(c *Core, view graphstore.View) (due []dueRefresh) {
	r.unrefreshed = slices.DeleteFunc(r.unrefreshed, func(id graphstore.Community) bool {
		return c.tallies.Spread(id) != nil || !c.owns(id, view)
	})
	for _, id := range r.unrefreshed {
		if c.refreshable(id, view) {
			due = append(due, dueRefresh{id, true})
		}
	}
	first, age := len(due), event.Time(cmp.Or(c.config.refreshAge, refreshAge))
	for _, id := range c.tallies.Moved(nil) {
		s := c.tallies.Spread(id)
		if s != nil && (s.Stale || s.Churn > churnedShare*c.tallies.KernelSum(id) || c.time-s.Time >= age) &&
			c.refreshable(id, view) {
			due = append(due, dueRefresh{id, false})
		}
	}
	slices.SortStableFunc(due[first:], func(a, b dueRefresh) int {
		return cmp.Compare(c.tallies.Spread(a.id).Position, c.tallies.Spread(b.id).Position)
	})
	return due
}

// refreshable reports whether a community has a kernel that its records show.
func (c *Core) refreshable(id graphstore.Community, view graphstore.View) bool {
	return c.tallies.KernelSum(id) > 0 && !view.Retired(id) && !c.belowFloor(id, view)
}

// withoutSpread lists the communities without second moments.
func (c *Core) withoutSpread(view graphstore.View) (list []graphstore.Community) {
	for id := range graphstore.Community(view.Communities()) {
		if c.tallies.Spread(id) == nil {
			list = append(list, id)
		}
	}
	return list
}
