package incremental

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
	"gqlstream/quant"
)

// exactTermsMax bounds the terms of the passes over calibration labels and members
// that exact variances take, summed over one community; above it the diagonal
// stand-in from the tallies is used, and the record says so.
const exactTermsMax = 50_000_000

// estimate solves the communities whose statistics moved since they were last
// solved and returns their records by community name.
func (c *Core) estimate(view graphstore.View) []quant.Estimate {
	for len(c.solvers) < runtime.GOMAXPROCS(0) {
		c.solvers = append(c.solvers, quant.Solver{})
	}
	each := make([][]quant.Estimate, len(c.kernels))
	c.forCommunities(func(id graphstore.Community, worker int) {
		if c.tallies.Progress(id).Moved && !view.Retired(id) {
			each[id] = c.solve(id, view, &c.solvers[worker])
			c.tallies.SetProgress(id, tally.Progress{})
		}
	})
	all := slices.Concat(each...)
	slices.SortStableFunc(all, func(a, b quant.Estimate) int { return cmp.Compare(a.Community, b.Community) })
	return all
}

// solve reads every configured estimate of one community.
func (c *Core) solve(id graphstore.Community, view graphstore.View, solver *quant.Solver) []quant.Estimate {
	record := c.header(id, view)
	if c.belowFloor(id, view) {
		return []quant.Estimate{suppressed(record)}
	}
	statistics := c.statistics(id, view)
	records := make([]quant.Estimate, len(c.config.Estimates))
	k := c.kernels[id]
	version, mixed := c.modelVersion(id, view)
	turnover := c.tallies.Turnover(id)
	turnover.Reset = version != k.version
	switching := coming(view) != noVersion || turnover.Reset && len(k.published) > 0
	for i, options := range c.config.Estimates {
		records[i] = record
		if err := solver.Estimate(&records[i], statistics, options); err != nil {
			panic(err) // the configuration was validated and the tallies have its cells
		}
		if mixed {
			records[i].Flags = append(records[i].Flags, quant.FlagMixedModel)
		}
		if switching {
			records[i].Flags = append(records[i].Flags, quant.FlagModelSwitching)
		}
		if view.CutShort(id) {
			records[i].Flags = append(records[i].Flags, quant.FlagCutShort)
		}
		if c.judged.Degraded(version) {
			records[i].Flags = append(records[i].Flags, quant.FlagDrift)
		}
		if c.dual != nil && statistics.KernelSum > 0 && options.Method.UsesKernel() {
			c.age(&records[i], id)
		}
		records[i].SEChange = k.publish(i, solver, turnover)
	}
	k.version = version
	return records
}

// age says how old the second moments are that an estimate with a dual rests on.
func (c *Core) age(record *quant.Estimate, id graphstore.Community) {
	record.Engine = EngineDual
	if spread := c.tallies.Spread(id); spread == nil {
		record.Flags = append(record.Flags, quant.FlagVarianceBound)
	} else {
		record.VarianceAge = time.Duration(c.time - spread.Time).Seconds()
	}
}

// statistics reads all that the methods need of one community.
func (c *Core) statistics(id graphstore.Community, view graphstore.View) *quant.Statistics {
	if c.dual != nil {
		exact := float64(c.tallies.Vertices(id, view)*c.config.Classes) <= exactTermsMax
		return c.tallies.DualStatistics(id, view, c.sums, c.dual, exact)
	}
	s := c.tallies.Statistics(id, view, c.sums, c.exact(id, view))
	// A field that once reached labels never forgets them quite. Of its error, as small
	// against M as the certificate says, an even share may lie on each label.
	s.MassMin = c.certificate(id) * s.KernelSum / float64(max(view.Vertices(), 1))
	return s
}

// publish remembers what the error of the next change needs of the solver's last
// estimate, the i-th of the community, and returns the error of this one: nil for
// a first estimate.
func (k *kernel) publish(i int, solver *quant.Solver, turnover quant.Turnover) []float64 {
	for len(k.published) <= i {
		k.published = append(k.published, nil)
	}
	now := &quant.Snapshot{}
	solver.Snapshot(now)
	before := k.published[i]
	k.published[i] = now
	if before == nil {
		return nil
	}
	return quant.SEChange(make([]float64, len(now.SE)), before, now, turnover)
}

// header fills what does not depend on the method.
func (c *Core) header(id graphstore.Community, view graphstore.View) quant.Estimate {
	record := quant.Estimate{
		Pipeline: c.config.Pipeline, Community: view.CommunityName(id),
		Position: uint64(c.position), Kernel: c.config.Kernel,
		Members: c.tallies.Members(id), Certificate: c.certificate(id), Config: c.digest,
	}
	if c.time != 0 {
		record.Time = c.time.String()
	}
	if versions := view.Versions(); len(versions) > 0 {
		version, _ := c.modelVersion(id, view)
		record.ModelVersion = versions[version]
		if version := coming(view); version != noVersion {
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

// exact reports whether the exact variances of one community are affordable. It
// depends on the state alone, so a replay decides the same.
func (c *Core) exact(id graphstore.Community, view graphstore.View) bool {
	k := c.config.Classes
	vertices := c.tallies.Rows() + c.tallies.Vertices(id, view)
	return float64(vertices)*float64(k*k*k) <= exactTermsMax
}

// certificate returns a bound on the error of a tally of one community, A1 over M. The
// one of a field bounds the sum of the errors of all masses, that of a dual the error of each
// tally.
func (c *Core) certificate(id graphstore.Community) float64 {
	if c.dual != nil {
		return c.dual.Certificate()
	}
	return c.kernels[id].bound()
}

// bound returns the certificate of the kernel.
func (k *kernel) bound() float64 {
	if k.field != nil {
		return k.field.Certificate()
	}
	return k.certificate
}
