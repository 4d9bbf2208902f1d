package incremental

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

// How ppr kernels are kept.
const (
	EngineAuto   = "auto"   // the planner chooses, from the costs so far
	EnginePrimal = "primal" // one field for each community
	EngineDual   = "dual"   // one dual for all of them
)

// EngineDefault is the engine of a configuration that names none.
const EngineDefault = EngineAuto

// EngineNames lists them.
var EngineNames = []string{EngineAuto, EnginePrimal, EngineDual}

// With a dual, the first moments A1 of every community are sums of its values over
// the members, current at every emission. The second moments A2 are not linear in the
// source: they are counted from a primal solve, some communities at a time, as far as the
// work that emissions earn allows; see tally.Tallies.Refresh for what holds in between.
const (
	// refreshEarned is the work an emission earns, in neighbours visited by a pass over
	// the graph for one source: some four milliseconds of one core.
	refreshEarned = 1 << 22
	// refreshSaved is how many emissions can be saved up, so that a quiet log is
	// not followed by a long stop.
	refreshSaved = 4
	// refreshFirst is the share at which the first solve of a community is charged: until
	// then its intervals are those of a bound.
	refreshFirst = 0.5
	// refreshCold bounds the first emission of a cold core: some minutes of one core.
	refreshCold = 1 << 36
	// churnedShare is the share of a community's sources that joined or left after which
	// its refresh comes before those that are merely old.
	churnedShare = 0.5
)

// settleShort is how far below the tolerance a dual starts, so that the first batches
// have room.
const settleShort = 4

// engine returns the engine in use.
func (c *Core) engine() string {
	if c.dual != nil {
		return EngineDual
	}
	return EnginePrimal
}

// startDual makes the dual of a core that has none.
func (c *Core) startDual(view graphstore.View) {
	var err error
	c.dual, err = diffusion.NewDual(c.dualConfig(c.dualTolerance(view)))
	if err != nil {
		panic(err) // the configuration was validated
	}
	// The list is as large as all rows: nothing holds it while the dual is solved for.
	c.dual.Solve(view, c.tallies.AppendAll(nil, view, c.sums), c.dual.Tolerance()/settleShort)
	for _, k := range c.kernels {
		k.field = nil
	}
}

func (c *Core) dualConfig(tolerance float64) diffusion.DualConfig {
	return diffusion.DualConfig{Alpha: c.config.Alpha, Tolerance: tolerance, Functions: c.tallies.Functions()}
}

// dualToleranceMin is where rounding begins to decide.
const dualToleranceMin = 1e-11

// dualTolerance returns the tolerance of a value for the share of vertices that are
// calibration labels now, a power of two below eta times that share. The values sum to
// about that share, so this keeps the tallies to eta of what they are; measured, that
// makes them as good as those of a field of the tolerance eta.
func (c *Core) dualTolerance(view graphstore.View) float64 {
	share := float64(c.tallies.Rows()) / float64(max(view.Vertices(), 1))
	if share == 0 {
		return c.config.Tolerance
	}
	_, exponent := math.Frexp(share) // share < 2^exponent
	return max(math.Ldexp(c.config.Tolerance, exponent-1), min(dualToleranceMin, c.config.Tolerance))
}

// followDual brings the dual to the graph of view, which delta led to and for which the
// tallies have been updated.
func (c *Core) followDual(view graphstore.View, delta *graphstore.Delta) {
	c.planner.note(len(delta.Edges), c.tallies.Restless())
	c.changes = c.tallies.AppendChanges(c.changes[:0], view, c.sums, c.dual.Function)
	c.dual.Update(view, delta, c.changes)
	c.tallies.MarkMoved(view, c.dual.Touched())
}

// readyDual prepares an emission: the tolerance follows the share of labels, and some
// second moments are refreshed.
func (c *Core) readyDual(view graphstore.View, cold bool) {
	if now, want := c.dual.Tolerance(), c.dualTolerance(view); now > 2*want || now < want/2 {
		c.dual.Retune(want)
		c.dual.Update(view, nil, nil)
		c.tallies.MarkMoved(view, c.dual.Touched())
	}
	earned := cmp.Or(c.config.refreshEarned, refreshEarned)
	c.credit = min(c.credit+earned, refreshSaved*earned)
	if cold {
		c.credit = refreshCold
	}
	due := c.dueRefreshes(view)
	for len(due) > 0 && c.credit > 0 {
		n := min(len(due), together(view))
		c.credit -= c.refresh(due[:n], view)
		due = due[n:]
	}
	c.credit = min(c.credit, refreshSaved*earned)
}

// A block of communities is solved for at once, and two blocks side by side, while that takes
// no more than refreshBytesMax; on a graph so large that it would, a community is alone.
const (
	refreshBlocks   = 2
	refreshBytesMax = 1 << 30
	refreshBytes    = 136 // a vertex, of one block
	refreshPass     = 2   // what a pass for a block costs, in passes for one source
)

// together returns how many communities are solved for at once.
func together(view graphstore.View) int {
	switch block := refreshBytes * view.Vertices(); {
	case refreshBlocks*block <= refreshBytesMax:
		return refreshBlocks * diffusion.TogetherMax
	case block <= refreshBytesMax:
		return diffusion.TogetherMax
	}
	return 1
}

// refresh solves for communities, a block at a time, and counts their second moments. It
// returns the work to be charged.
func (c *Core) refresh(due []dueRefresh, view graphstore.View) float64 {
	const each = diffusion.TogetherMax
	work := make([]float64, (len(due)+each-1)/each)
	c.share(len(work), func(i, _ int) {
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
	mass, passes := c.masses(due, view)
	each := passes * float64(2*view.Edges()+view.Vertices()) / float64(len(due))
	for i, d := range due {
		c.tallies.Refresh(d.id, view, c.sums, func(v graphstore.Vertex) float64 { return max(mass(i, v), 0) }, c.position, c.time)
		progress := c.tallies.Progress(d.id)
		progress.Moved = true
		c.tallies.SetProgress(d.id, progress)
		if d.rank == rankFirst {
			work += refreshFirst * each
		} else {
			work += each
		}
	}
	return work
}

// masses solves for the kernels of some communities, and returns their masses and what that
// cost in passes for one source. One alone is a field, which takes half the memory.
func (c *Core) masses(due []dueRefresh, view graphstore.View) (mass func(i int, v graphstore.Vertex) float64, passes float64) {
	if len(due) == 1 {
		field, err := diffusion.NewField(c.config.diffusion())
		if err != nil {
			panic(err) // the configuration was validated
		}
		field.Solve(view, c.sources(due[0].id, view), c.config.Tolerance)
		work := field.Work()
		return func(_ int, v graphstore.Vertex) float64 { return field.Mass(v) }, float64(work.Iterations + work.Rebuilds)
	}
	sources := make([][]diffusion.SourceChange, len(due))
	for i := range due {
		sources[i] = c.sources(due[i].id, view)
	}
	solved, err := diffusion.SolveTogether(view, c.config.diffusion(), sources)
	if err != nil {
		panic(err)
	}
	return solved.Mass, refreshPass * float64(solved.Passes())
}

func (c *Core) sources(id graphstore.Community, view graphstore.View) (list []diffusion.SourceChange) {
	c.forUnlabelled(id, view, func(v graphstore.Vertex, m float64) {
		list = append(list, diffusion.SourceChange{V: v, Change: m})
	})
	return list
}

// The order of refreshes: who has none, who has changed, who has the oldest.
const (
	rankFirst = iota
	rankChurned
	rankOld
)

type dueRefresh struct {
	id   graphstore.Community
	rank int
}

// dueRefreshes lists the communities whose second moments are not those of their present
// kernel, most urgent first.
func (c *Core) dueRefreshes(view graphstore.View) (due []dueRefresh) {
	for i := range c.kernels {
		id := graphstore.Community(i)
		spread := c.tallies.Spread(id)
		sources := c.tallies.KernelSum(id)
		switch {
		case sources == 0 || view.Retired(id) || c.belowFloor(id, view):
		case spread == nil:
			due = append(due, dueRefresh{id, rankFirst})
		case !c.tallies.Progress(id).Moved:
		case spread.Churn > churnedShare*sources:
			due = append(due, dueRefresh{id, rankChurned})
		default:
			due = append(due, dueRefresh{id, rankOld})
		}
	}
	slices.SortStableFunc(due, func(a, b dueRefresh) int {
		if a.rank != b.rank || a.rank == rankFirst {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Compare(c.tallies.Spread(a.id).Position, c.tallies.Spread(b.id).Position)
	})
	return due
}

// saveDual adds the dual and the second moments as sections.
func (c *Core) saveDual(add func(string, func(*bytes.Buffer) error) error) error {
	err := add(dualSection, func(w *bytes.Buffer) error { return writeParts(w, c.dual) })
	if err != nil {
		return err
	}
	var rows []spreadRow
	for id := range c.kernels {
		if spread := c.tallies.Spread(graphstore.Community(id)); spread != nil {
			rows = append(rows, spreadRow{uint32(id), *spread})
		}
	}
	return add(spreadsSection, func(w *bytes.Buffer) error { return graphstore.WriteRows(w, rows) })
}

// restoreDual reads them; the tallies have been counted anew.
func (c *Core) restoreDual(state coreRow, view graphstore.View, sections map[string][]byte) error {
	data, err := readParts(sections, dualSection)
	if err != nil {
		return err
	}
	if c.dual, err = diffusion.RestoreDual(c.dualConfig(state.Tolerance), view, data); err != nil {
		return err
	}
	rows, err := readRows[spreadRow](sections, spreadsSection)
	if err != nil {
		return err
	}
	for i := range rows {
		id := graphstore.Community(rows[i].Community)
		if int(id) >= view.Communities() || !c.tallies.SetSpread(id, &rows[i].Spread) {
			return fmt.Errorf("section %s: second moments of community %d do not fit", spreadsSection, id)
		}
	}
	return nil
}
