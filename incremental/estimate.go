package incremental

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"gqlstream/graphstore"
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
	snapshots []*quant.Snapshot // by the estimate's place in the configuration
}

// says reports whether the last record said the same.
func (g gate) says(now gate) bool {
	now.Solved = g.Solved
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

// replace remembers what the error of the next change needs of the solver's last
// estimate, the i-th of the community, and returns the error of this one, nil for a first
// estimate, and whether the coefficients of its posterior are others.
func (p *publication) replace(i int, solver *quant.Solver, turnover quant.Turnover) (seChange []float64, refitted bool) {
	for len(p.snapshots) <= i {
		p.snapshots = append(p.snapshots, nil)
	}
	now := &quant.Snapshot{}
	solver.Snapshot(now)
	before := p.snapshots[i]
	p.snapshots[i] = now
	if before == nil {
		return nil, false
	}
	return quant.SEChange(make([]float64, len(now.SE)), before, now, turnover), before.Posterior != now.Posterior
}

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

// due lists the communities whose records are due at an emission, in order: all that moved, or moved by enough.
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
