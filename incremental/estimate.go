package incremental

import (
	"cmp"
	"runtime"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/parallel"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// estimate solves the communities whose records are due, all that moved or those that
// moved by enough, and returns their records by community name.
func (c *Core) estimate(view graphstore.View, all bool) []quant.Estimate {
	for len(c.solvers) < runtime.GOMAXPROCS(0) {
		c.solvers = append(c.solvers, quant.Solver{})
	}
	due := c.due(view, all)
	each := make([][]quant.Estimate, len(due))
	parallel.Each(len(due), func(i, worker int) {
		each[i] = c.solve(due[i], view, &c.solvers[worker])
		c.tallies.SetProgress(due[i], tally.Progress{})
	})
	records := slices.Concat(each...)
	slices.SortStableFunc(records, func(a, b quant.Estimate) int { return cmp.Compare(a.Community, b.Community) })
	return records
}

// due lists the communities whose records are due at an emission, in order: all that
// moved, or those that moved by enough.
func (c *Core) due(view graphstore.View, all bool) []graphstore.Community {
	moved := slices.DeleteFunc(c.disown(c.tallies.Moved(nil), view), view.Retired)
	if all || c.republish || c.config.Emit.Threshold == 0 {
		c.republish = false
		return moved
	}
	matters := make([]bool, len(moved))
	parallel.Each(len(moved), func(i, worker int) { matters[i] = c.matters(moved[i], view, &c.solvers[worker]) })
	due := moved[:0]
	for i, id := range moved {
		if matters[i] {
			due = append(due, id)
		}
	}
	return due
}

// matters reports whether a community that moved is to be solved and published.
func (c *Core) matters(id graphstore.Community, view graphstore.View, solver *quant.Solver) bool {
	last := &c.published[id]
	now := c.saysBeside(id, view)
	if len(last.snapshots) == 0 && !last.Suppressed || !last.says(now) ||
		c.time-last.Solved >= event.Time(c.config.Emit.AtLeastEvery) {
		return true
	}
	if last.Suppressed {
		return false
	}
	audit := c.audits.Read(id)
	read := c.masses.Statistics(id, view, audit != nil)
	read.Posterior, read.Audit = c.posteriors.of(id, view, read.Statistics, audit != nil), audit
	for i, options := range c.config.Estimates {
		if solver.Movement(read.Statistics, options, last.snapshots[i]) > c.config.Emit.Threshold {
			return true
		}
	}
	return false
}

// saysBeside returns the flags and the model version that a record would have now.
func (c *Core) saysBeside(id graphstore.Community, view graphstore.View) gate {
	g := gate{Suppressed: c.belowFloor(id, view), Switching: incomingVersion(view) != noVersion, CutShort: view.CutShort(id)}
	g.Version, g.Mixed = c.modelVersion(id, view)
	g.Drift = c.scores.Degraded(g.Version)
	return g
}

// solve reads every configured estimate of one community.
func (c *Core) solve(id graphstore.Community, view graphstore.View, solver *quant.Solver) []quant.Estimate {
	record := c.header(id, view)
	last := &c.published[id]
	before := last.gate
	last.gate, last.Solved = c.saysBeside(id, view), c.time
	if last.Suppressed {
		return []quant.Estimate{suppressed(record)}
	}
	read := c.masses.Statistics(id, view, true)
	read.Posterior = c.posteriors.of(id, view, read.Statistics, true)
	read.Audit = c.audits.Read(id)
	records := make([]quant.Estimate, len(c.config.Estimates))
	turnover := c.tallies.Turnover(id)
	turnover.Reset = last.Version != before.Version
	last.Switching = last.Switching || turnover.Reset && len(last.snapshots) > 0
	for i, options := range c.config.Estimates {
		records[i] = record
		if err := solver.Estimate(&records[i], read.Statistics, options); err != nil {
			panic(err) // the configuration was validated and the tallies have its cells
		}
		records[i].Flags = last.flags(records[i].Flags)
		if read.KernelSum > 0 && options.Method.UsesKernel() {
			read.varianceAge(c.time, &records[i])
		}
		var refitted bool
		if records[i].SEChange, refitted = last.replace(i, solver, turnover); refitted {
			records[i].Flags = append(records[i].Flags, quant.FlagNewPosterior)
			last.Refitted = true
		}
	}
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

// belowFloor reports whether a community has fewer members than may be published. They
// are counted as vertices: one that counts a hundred times is no crowd.
func (c *Core) belowFloor(id graphstore.Community, view graphstore.View) bool {
	return c.tallies.Vertices(id, view) < c.config.MembersMin
}

// suppressed returns the record of a community below the privacy floor: that it
// is one, and nothing else.
func suppressed(r quant.Estimate) quant.Estimate {
	return quant.Estimate{
		Pipeline: r.Pipeline, Community: r.Community, Position: r.Position, Time: r.Time,
		Config: r.Config, Suppressed: true, Flags: []string{quant.FlagBelowFloor},
	}
}
