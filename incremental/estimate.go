package incremental

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/parallel"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// A record is published again when it says something else: when its shares have moved by
// Emit.Threshold of their standard errors, by first order, or its effective labels by a
// tenth; when what it is flagged for has changed, or the model; and in any case once it is
// older than Emit.AtLeastEvery and anything moved at all. What was not published stays
// moved, so that small changes add up.
const (
	emitAtLeastEvery = 10 * time.Second
	emitThresholdMax = 10.0
)

// gate holds all that decides when the next record of a community is due.
type gate struct {
	Version uint32 // model version of the last record
	Solved  event.Time

	// What the last record said beside its shares.
	Suppressed, Mixed, Switching, CutShort, Drift, Refitted bool
}

// publication keeps the parts of a community's last records that its next ones need.
type publication struct {
	gate
	snapshots []*quant.Snapshot // by the estimate's place in the configuration; none before the first record with shares
	inside    insideRoom
}

// says reports whether the last record says what is to be said now. New coefficients are said once.
func (g gate) says(now gate) bool {
	now.Refitted, now.Solved = g.Refitted, g.Solved
	return g == now || g.Suppressed && now.Suppressed
}

// flags appends what a record says beside its shares.
func (g gate) flags(flags []string) []string {
	for _, f := range []struct {
		holds bool
		name  string
	}{
		{g.Mixed, quant.FlagMixedModel}, {g.Switching, quant.FlagModelSwitching}, {g.CutShort, quant.FlagCutShort}, {g.Drift, quant.FlagDrift},
	} {
		if f.holds {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// exists reports whether there was a record.
func (p *publication) exists() bool { return len(p.snapshots) > 0 || p.Suppressed }

// grow makes room for so many estimates.
func (p *publication) grow(estimates int) {
	if p.snapshots == nil {
		p.snapshots = make([]*quant.Snapshot, estimates)
	}
}

// replace keeps what the next change needs of the solver's last estimate, the i-th of the community, and writes to
// its record how it differs from the one before. It reports whether the coefficients of its posterior are others.
func (p *publication) replace(
	i int,
	solver *quant.Solver,
	turnover quant.Turnover,
	record *quant.Estimate,
) (refitted bool) {
	now := &quant.Snapshot{}
	solver.Snapshot(now)
	before := p.snapshots[i]
	p.snapshots[i] = now
	if before == nil {
		return false
	}
	divideChange(record, before, now, solver, turnover)
	return before.Posterior != now.Posterior
}

// waits reports whether an emission may wait, because a history is being read: labels come so fast that estimates are
// others before anybody reads them. Second moments wait until labels have come.
func (c *Core) waits(all bool) (waits bool) {
	c.loading = false
	if c.posteriors != nil && !all && c.config.Emit.Threshold > 0 {
		c.loading, waits = c.posteriors.state.Loads(c.time)
	}
	return c.loading && waits
}

// estimate solves the communities whose records are due, and returns their records by community name.
// If somebody waits for the next emission, as many as this one can bear, else all; behind says that some are left.
func (c *Core) estimate(view graphstore.View, all, waits bool) (records []quant.Estimate, behind bool) {
	for len(c.solvers) < runtime.GOMAXPROCS(0) {
		c.solvers = append(c.solvers, quant.Solver{})
	}
	due, behind := c.due(view, all, waits)
	each := make([][]quant.Estimate, len(due))
	parallel.Each(len(due), func(i, worker int) {
		each[i] = c.solve(due[i], view, &c.solvers[worker], all || c.config.Emit.Threshold == 0)
	})
	c.flagged = append(c.flagged, due...)
	records = slices.Concat(each...)
	slices.SortStableFunc(records, func(a, b quant.Estimate) int { return cmp.Compare(a.Community, b.Community) })
	return records, behind
}

// moveFlagged marks the communities whose records have said for Emit.AtLeastEvery that the coefficients are new, also where
// nothing moved: to alerts such a record says nothing.
func (c *Core) moveFlagged() {
	slices.Sort(c.flagged)
	c.flagged = slices.DeleteFunc(slices.Compact(c.flagged), func(id graphstore.Community) bool { return !c.published[id].Refitted })
	for _, id := range c.flagged {
		if c.time-c.published[id].Solved >= event.Time(c.config.Emit.AtLeastEvery) {
			c.tallies.Move(id)
		}
	}
}

// urgency says why a community is solved.
type urgency uint8

const (
	notDue  urgency = iota // it moved by too little
	overdue                // it has no record, or an old one
	differs                // its record would say something else
)

// due lists the communities whose records are due at an emission, in order: all that moved, or moved by
// enough. What an emission cannot bear stays moved, for the next one.
func (c *Core) due(view graphstore.View, all, waits bool) (due []graphstore.Community, behind bool) {
	c.moveFlagged()
	moved := c.disown(c.tallies.Moved(nil), view)
	c.gather(moved, view)
	if all || c.config.Emit.Threshold == 0 {
		return moved, false
	}
	shards := make([][]graphstore.Community, c.shards())
	for _, id := range moved {
		shard := &shards[c.shardOf(id, view)]
		*shard = append(*shard, id)
	}
	for _, moved := range shards {
		list, more := c.dueOfShard(moved, view, waits)
		due, behind = append(due, list...), behind || more
	}
	slices.Sort(due)
	return due, behind
}

// gather reads what duals say of communities in one pass, if that is cheaper.
func (c *Core) gather(moved []graphstore.Community, view graphstore.View) {
	d, shared := c.masses.(*sharedDual)
	if !shared {
		return
	}
	asked := slices.DeleteFunc(slices.Clone(moved), c.passed)
	diffusion.Gather([]*diffusion.Dual{d.dual}, asked, view)
}

const (
	// emissionWork is what an emission can bear of one shard, in classes times members that are read: about
	// a quarter of a second of one core. More shards bear more, as they are for more workers.
	emissionWork = 1 << 21
	// solveMembers are the members whose reading costs what a community costs besides.
	solveMembers = 512
	// askedTogether is the number of communities that are asked before it is seen whether an emission can bear more.
	askedTogether = 32
)

// dueOfShard is due for the communities of one shard. Where an emission is bounded, those come first that waited
// longest, and once there are more that differ than it can bear, nobody younger is asked.
func (c *Core) dueOfShard(moved []graphstore.Community, view graphstore.View, waits bool) (due []graphstore.Community, behind bool) {
	work := math.Inf(1)
	if waits {
		work = cmp.Or(c.config.emissionWork, emissionWork)
		slices.SortStableFunc(moved, func(a, b graphstore.Community) int { return cmp.Compare(c.published[a].Solved, c.published[b].Solved) })
	}
	cost := func(id graphstore.Community) float64 {
		return float64(c.config.Classes * (c.tallies.Vertices(id, view) + solveMembers))
	}
	lists, costs, why := [2][]graphstore.Community{}, [2]float64{}, make([]urgency, askedTogether)
	for some := range slices.Chunk(moved, askedTogether) {
		if behind = costs[1] >= max(work/2, work-costs[0]); behind {
			break
		}
		parallel.Each(len(some), func(i, worker int) { why[i] = c.matters(some[i], view, &c.solvers[worker]) })
		for i, id := range some {
			if why[i] == notDue {
				c.tallies.Pass(id)
				continue
			}
			list := why[i] - overdue
			lists[list], costs[list] = append(lists[list], id), costs[list]+cost(id)
		}
	}
	due = bear(lists, costs, work, cost)
	return due, behind || len(due) < len(lists[0])+len(lists[1])
}

// bear returns how much of two lists, those overdue and those that differ, an emission can bear: each has half of
// the work, and what the other one leaves. A crowd of new communities does not keep what moves waiting, and what
// moves all the time does not keep new ones out.
func bear(lists [2][]graphstore.Community, costs [2]float64, work float64, cost func(graphstore.Community) float64) (due []graphstore.Community) {
	for i, list := range lists {
		room := max(work/2, work-costs[1-i])
		for n := 0; n < len(list) && room > 0; n++ { // the last one may take more
			room -= cost(list[n])
			due = append(due, list[n])
		}
	}
	return due
}

// matters says whether a community that moved is to be solved and published.
func (c *Core) matters(id graphstore.Community, view graphstore.View, solver *quant.Solver) urgency {
	last := &c.published[id]
	now, new := c.saysBeside(id, view), !last.exists()
	switch {
	case !new && !last.says(now):
		return differs
	case new || c.time-last.Solved >= event.Time(c.config.Emit.AtLeastEvery):
		return overdue
	case last.Suppressed || c.passed(id):
		return notDue
	}
	read := c.read(id, view)
	most := 0.0
	for i, options := range c.config.Estimates {
		if most = max(most, solver.Movement(read.Statistics, options, last.snapshots[i])); most > c.config.Emit.Threshold {
			return differs
		}
	}
	c.makeRoom(id, read, most)
	return notDue
}

// read returns all that estimates of one community rest on. What variances alone take is computed when it is asked for.
func (c *Core) read(id graphstore.Community, view graphstore.View) reading {
	read := c.masses.Statistics(id, view)
	read.Posterior = c.posteriors.of(id, view, read.Statistics)
	return read
}

// insideRoom holds the edges inside a community when it was last given room, and how much of it another one takes.
type insideRoom struct{ edges, each float64 }

// labelsRoom is the share of the labels of a class that may come or go before a community is asked whether its effective
// labels are others, however little happened to it.
const labelsRoom = 0.05

// kernelRoom is how far a residual moves the estimate near it for every unit that is pushed there, times the kernel's weight.
const kernelRoom = 2

// makeRoom gives room to a community that has moved by this many standard errors since its last record. Whether one has
// moved by enough takes a pass over its members to say, and most have not: what happens to members is added up, as an
// estimate of how far the community can have moved, and it is asked when that is as much as it had left.
func (c *Core) makeRoom(id graphstore.Community, read reading, moved float64) {
	room, last := tally.Room{}, &c.published[id]
	p, mass := read.Posterior, 0.0
	for _, x := range read.ClassA1 {
		mass += x
	}
	if p != nil && p.Gamma == nil && read.engine == EngineDual && read.Audit == nil && c.config.HalfLife == 0 && mass > 0 {
		room.Left = c.config.Emit.Threshold - moved
		room.Labels = room.Left / labelsRoom
		last.inside = insideRoom{edges: p.Inside}
		for i, o := range c.config.Estimates {
			s := last.snapshots[i]
			if o.Method != quant.Auto || !s.Solved || s.Posterior == 0 {
				c.tallies.SetRoom(id, tally.Room{})
				return
			}
			r := s.Rates()
			room.Posterior, room.Shared = max(room.Posterior, r.Posterior), max(room.Shared, r.Residual)
			room.Value = max(room.Value, kernelRoom/mass*max(r.Residual/c.config.residualScale(), r.Mass))
			last.inside.each = max(last.inside.each, r.Gamma/max(p.Inside, 1))
		}
	}
	c.tallies.SetRoom(id, room)
}

// passed reports whether a community cannot have moved by enough since it was asked or solved.
func (c *Core) passed(id graphstore.Community) bool {
	inside, part := c.published[id].inside, 0.0
	if c.posteriors != nil {
		edges, _, _ := c.posteriors.state.Inside(id)
		part = math.Abs(float64(edges)-inside.edges) * inside.each
	}
	return c.tallies.Passed(id, part)
}

// saysBeside returns the flags and the model version that a record would have now.
func (c *Core) saysBeside(id graphstore.Community, view graphstore.View) gate {
	g := gate{Suppressed: c.belowFloor(id), Switching: incomingVersion(view) != noVersion, CutShort: view.CutShort(id)}
	g.Version, g.Mixed = c.modelVersion(id, view)
	g.Drift = c.scores.Degraded(g.Version)
	return g
}

// solve reads every configured estimate of one community. Unless it is to be exact, its last one may say how large the
// error of the coefficients is.
func (c *Core) solve(id graphstore.Community, view graphstore.View, solver *quant.Solver, exact bool) []quant.Estimate {
	record := c.header(id, view)
	last := &c.published[id]
	before := last.gate
	last.gate, last.Solved = c.saysBeside(id, view), c.time
	if last.Suppressed {
		c.tallies.SetProgress(id, tally.Progress{})
		return []quant.Estimate{suppressed(record)}
	}
	read := c.read(id, view)
	if exact && read.Posterior != nil {
		read.Posterior.Crowd = nil
	}
	records := make([]quant.Estimate, len(c.config.Estimates))
	turnover := c.tallies.Turnover(id)
	turnover.Reset = last.Version != before.Version
	last.Switching = last.Switching || turnover.Reset && len(last.snapshots) > 0
	last.grow(len(records))
	for i, options := range c.config.Estimates {
		records[i] = record
		if p := read.Posterior; p != nil && !exact && !c.posteriors.state.Held() {
			p.Last, p.Turnover = last.snapshots[i], turnover
		}
		if err := solver.Estimate(&records[i], read.Statistics, options); err != nil {
			panic(err) // the configuration was validated and the tallies have its cells
		}
		records[i].Flags = last.flags(records[i].Flags)
		if read.KernelSum > 0 && options.Method.UsesKernel() {
			read.varianceAge(c.time, &records[i])
		}
		if last.replace(i, solver, turnover, &records[i]) {
			records[i].Flags = append(records[i].Flags, quant.FlagNewPosterior)
			last.Refitted = true
		}
	}
	c.posteriors.keepCrowd(id, view, read.Posterior)
	c.tallies.SetProgress(id, tally.Progress{})
	c.makeRoom(id, read, 0)
	return records
}

// header fills what does not depend on the method.
func (c *Core) header(id graphstore.Community, view graphstore.View) quant.Estimate {
	record := quant.Estimate{
		Pipeline: c.config.Pipeline, Community: view.CommunityName(id),
		Position: uint64(c.position), Kernel: c.config.Kernel,
		Members: c.tallies.Members(id), Certificate: c.masses.Certificate(id), Config: c.digest,
	}
	if c.time != 0 {
		record.Time = c.time.String()
	}
	if versions := view.Versions(); len(versions) > 0 {
		version, _ := c.modelVersion(id, view)
		record.ModelVersion = versions[version]
		if version := incomingVersion(view); version != noVersion {
			rollOut, _ := view.RollOut()
			record.ModelComing, record.ModelArrived = versions[version], rollOut.Coverage()
		}
	}
	return record
}

// effectiveMin is the least effective number of people in a community that is published: with 4,
// nobody weighs more than half. Below a floor of 8 it is half the floor.
const effectiveMin = 4

// belowFloor reports whether too few different members of a community have a label or a prediction
// to publish it, or whether the multiplicities of a few outweigh all others.
func (c *Core) belowFloor(id graphstore.Community) bool {
	if c.config.MembersMin <= 0 {
		return false
	}
	people, effective := c.tallies.Known(id)
	return people < c.config.MembersMin ||
		effective < min(effectiveMin, float64(c.config.MembersMin)/2)
}

// suppressed returns the record of a community below the privacy floor: that it
// is one, and nothing else.
func suppressed(r quant.Estimate) quant.Estimate {
	return quant.Estimate{
		Pipeline: r.Pipeline, Community: r.Community, Position: r.Position, Time: r.Time,
		Config: r.Config, Suppressed: true, Flags: []string{quant.FlagBelowFloor},
	}
}
