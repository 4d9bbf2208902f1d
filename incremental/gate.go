package incremental

import (
	"time"

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
