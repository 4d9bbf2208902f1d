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

// At an emission every community that was touched is solved, oldest first within a bound of work. A
// record is published if a share has moved by Emit.Threshold of its standard errors since the last
// record, or a standard error by that part of itself; if the effective labels of a class have
// changed by a tenth; if the flags of gate, low coverage, the model or the coefficients have
// changed; and once the last record is older than Emit.AtLeastEvery and anything moved at all.
// Changes that were not published add up, since they are measured from the last record.
const (
	emitAtLeastEvery = 10 * time.Second
	emitThresholdMax = 10.0
)

// gate holds all that decides when the next record of a community is due.
type gate struct {
	Version   uint32     // model version of the last record
	Published event.Time // when the last record was made
	Solved    event.Time // when the community was solved last

	// Flags of the last record.
	Suppressed, Mixed, Switching, CutShort bool
	// the classifier has become worse
	Degraded bool `column:"drift"`
}

// publication keeps the parts of a community's last records that its next ones need.
type publication struct {
	gate
	// snapshots lists the estimates of the last record in the order of the configuration; none
	// before the first record with shares.
	snapshots []*quant.Snapshot
	drifts    []drift // of each of them
}

// sameAs reports whether the last record has the present flags and model version.
func (g gate) sameAs(now gate) bool {
	now.Published, now.Solved = g.Published, g.Solved
	return g == now || g.Suppressed && now.Suppressed
}

// flags appends the flags of a record.
func (g gate) flags(flags []string) []string {
	for _, f := range []struct {
		holds bool
		name  string
	}{
		{g.Mixed, quant.FlagMixedModel},
		{g.Switching, quant.FlagModelSwitching},
		{g.CutShort, quant.FlagCutShort},
		{g.Degraded, quant.FlagDrift},
	} {
		if f.holds {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// exists reports whether there was a record.
func (p *publication) exists() bool { return len(p.snapshots) > 0 || p.Suppressed }

// loadsHistory reports whether a history is being read, and whether the emission may wait for it:
// labels come so fast that estimates are others before anybody reads them. Second moments wait
// until labels have come.
func (c *Core) loadsHistory(all bool) (loading, wait bool) {
	if c.posteriors == nil || all || c.config.Emit.Threshold == 0 {
		return false, false
	}
	return c.posteriors.state.Loads(c.time)
}

// estimate solves the communities that were touched, and returns the records that are due, by
// community name. If bounded, it solves as many as one emission can bear; behind says that some are
// left for the next one.
func (c *Core) estimate(
	view graphstore.View,
	all, bounded bool,
) (records []quant.Estimate, behind bool) {
	for len(c.solvers) < runtime.GOMAXPROCS(0) {
		c.solvers = append(c.solvers, quant.Solver{})
	}
	all = all || c.config.Emit.Threshold == 0
	list, behind := c.toSolve(view, bounded && !all)
	each := make([][]quant.Estimate, len(list))
	parallel.Each(len(list), func(i, worker int) {
		each[i] = c.solve(list[i], view, &c.solvers[worker], all)
	})
	for i, id := range list {
		if each[i] == nil {
			c.tallies.SetUnpublished(id)
		} else {
			c.tallies.SetProgress(id, c.roundedOff(id, each[i]))
		}
	}
	records = slices.Concat(each...)
	slices.SortStableFunc(records, func(a, b quant.Estimate) int {
		return cmp.Compare(a.Community, b.Community)
	})
	return records, behind
}

// roundedOff returns the movement that Config.Round removed from the newest records of a
// community. The next records publish it.
func (c *Core) roundedOff(id graphstore.Community, records []quant.Estimate) (p tally.Progress) {
	if c.config.Round > 0 {
		p = c.tallies.RoundedOff(id, records[0].Counted)
	}
	return p
}

// emissionWork bounds the work of an emission for one shard, in classes times cells: about a
// quarter of a second of one core. Each community adds solveWork. The bound grows with the number
// of shards, because they are for more workers.
const emissionWork, solveWork = 1 << 23, 512

// toSolve lists the communities to solve, in order: the touched ones, and those with a change and a
// last record older than Emit.AtLeastEvery. If bounded, it takes those that were solved longest
// ago, within the work of an emission; behind means that some remain.
func (c *Core) toSolve(
	view graphstore.View,
	bounded bool,
) (list []graphstore.Community, behind bool) {
	shards := make([][]graphstore.Community, c.shards())
	c.tallies.Changed(func(id graphstore.Community, touched bool) {
		if touched || c.overdue(id) {
			shard := &shards[c.shardOf(id, view)]
			*shard = append(*shard, id)
		}
	})
	k := c.config.Classes
	most := int(cmp.Or(c.config.Work.Solving, emissionWork) / float64(8*k*k+solveWork))
	for _, changed := range shards {
		changed = c.dropForeign(changed, view)
		if bounded && len(changed) > most {
			slices.SortStableFunc(changed, func(a, b graphstore.Community) int {
				return cmp.Compare(c.published[a].Solved, c.published[b].Solved)
			})
			changed, behind = changed[:most], true
		}
		list = append(list, changed...)
	}
	slices.Sort(list)
	return list, behind
}

// overdue reports whether the last record of a community is old.
func (c *Core) overdue(id graphstore.Community) bool {
	last := &c.published[id]
	return last.exists() && c.time-last.Published >= event.Time(c.config.Emit.AtLeastEvery)
}

// read returns all that estimates of one community rest on.
func (c *Core) read(id graphstore.Community, view graphstore.View) reading {
	read := c.kernels.Statistics(id, view)
	read.Posterior = c.posteriors.of(id, view, read.Statistics)
	return read
}

// gateNow returns the flags and the model version that a record would have now.
func (c *Core) gateNow(id graphstore.Community, view graphstore.View) gate {
	g := gate{
		Suppressed: c.belowFloor(id),
		Switching:  incomingVersion(view) != noVersion,
		CutShort:   view.CutShort(id),
	}
	g.Version, g.Mixed = c.modelVersion(id, view)
	g.Degraded = c.scores.Degraded(g.Version)
	return g
}

// solve makes every configured estimate of one community, and returns the records if they must be
// published, else nil. With all, they are computed completely and published without regard to
// movement.
func (c *Core) solve(
	id graphstore.Community, view graphstore.View, solver *quant.Solver, all bool,
) []quant.Estimate {
	last, now := &c.published[id], c.gateNow(id, view)
	publish := all || !last.exists() || !last.sameAs(now) || c.overdue(id)
	last.Solved = c.time
	now.Solved, now.Published = c.time, c.time
	if now.Suppressed {
		if !publish {
			return nil
		}
		last.gate = now
		return c.suppressed(c.header(id, view))
	}
	turnover := c.tallies.Turnover(id)
	turnover.Reset = last.exists() && last.Version != now.Version
	now.Switching = now.Switching || turnover.Reset && len(last.snapshots) > 0
	read, header := c.read(id, view), c.header(id, view)
	records := make([]quant.Estimate, len(c.config.Estimates))
	snapshots := make([]*quant.Snapshot, len(records))
	drifts, evidence := make([]drift, len(records)), c.tallies.EvidenceAge(id, c.time)
	for i, options := range c.config.Estimates {
		records[i] = header
		if last.exists() {
			records[i].Counted, records[i].SECounted = c.tallies.Counted(id)
		}
		var before *quant.Snapshot
		if len(last.snapshots) > 0 {
			before = last.snapshots[i]
			drifts[i] = last.drifts[i].at(c.time, evidence)
		}
		if p := read.Posterior; p != nil && !all && !c.posteriors.state.Held() {
			p.Last, p.Turnover = before.Memorised(), turnover
		}
		if err := solver.Estimate(&records[i], read.Statistics, options); err != nil {
			panic(err) // the configuration was validated and the tallies have its cells
		}
		snapshots[i] = solver.Snapshot()
		solver.Divide(&records[i], read.Statistics, options, before, turnover)
		if options.Method == quant.Auto {
			drifts[i] = drifts[i].moved(
				records[i].Moved, records[i].Counted, c.tallies.Composition(id))
			solver.Widen(&records[i], read.Statistics, options, drifts[i].lag(evidence))
		}
		c.addAges(&records[i], id, view, options)
		if before != nil {
			publish = publish || solver.Distance(before) > c.config.Emit.Threshold
		}
		c.addFlags(&records[i], read, options, now, before)
	}
	if !publish {
		return nil
	}
	last.gate, last.snapshots, last.drifts = now, snapshots, drifts
	for i := range records {
		round(&records[i], c.config.Round)
	}
	return records
}

// addFlags adds the flags of a record that need more than the statistics of the community.
func (c *Core) addFlags(
	record *quant.Estimate, read reading, options quant.Options, now gate, before *quant.Snapshot,
) {
	record.Flags = now.flags(record.Flags)
	if read.KernelSum > 0 && options.Method.UsesKernel() {
		read.varianceAge(c.time, record)
	}
	if record.RestsOnOldEvidence() {
		record.Flags = append(record.Flags, quant.FlagOldEvidence)
	}
	if before != nil && before.Memory.Posterior != record.Posterior {
		record.Flags = append(record.Flags, quant.FlagNewPosterior)
	}
}

// header fills the fields that do not depend on the method.
func (c *Core) header(id graphstore.Community, view graphstore.View) quant.Estimate {
	record := quant.Estimate{
		Pipeline: c.config.Pipeline, Community: view.CommunityName(id),
		Position: uint64(c.position), Kernel: c.config.Kernel,
		Members: c.tallies.Members(id), Certificate: c.kernels.Certificate(id), Config: c.digest,
		EvidenceAge: c.tallies.EvidenceAge(id, c.time).Seconds(), LabelAge: c.labelAge(),
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
	return c.below(id, c.config.MembersMin)
}

func (c *Core) below(id graphstore.Community, floor int) bool {
	return TooFew(floor, c.tallies.Known(id))
}

// TooFew reports whether nothing is published of a community under a privacy floor: of so many of
// its members something is known, and they weigh as much as the effective number of equal ones.
func TooFew(floor int, known tally.Known) bool {
	return floor > 0 && (known.People < floor ||
		known.Effective() < min(effectiveMin, float64(floor)/2))
}

// BelowFloor reports whether a community is below a privacy floor; one that the core does not
// track, and any of a cold core, is below every floor.
func (c *Core) BelowFloor(community string, floor int) bool {
	id, known := c.View().FindCommunity(community)
	return floor > 0 && (!known || c.tallies == nil || c.below(id, floor))
}

// suppressed returns the records of a community below the privacy floor: that it is one, and
// nothing else. There is one of each estimate, which takes the place of the last one wherever that
// is kept.
func (c *Core) suppressed(header quant.Estimate) (records []quant.Estimate) {
	for _, options := range c.config.Estimates {
		records = append(records, quant.Estimate{
			Pipeline: header.Pipeline, Community: header.Community, Position: header.Position,
			Time: header.Time, Config: header.Config, Method: string(options.Method),
			Suppressed: true, Flags: []string{quant.FlagBelowFloor},
		})
	}
	return records
}
