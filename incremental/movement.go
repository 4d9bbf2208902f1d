package incremental

import "gqlstream/quant"

// divideChange writes to a record how its shares differ from those of the record before, in two
// parts. Moved is the part that happened to the community: members, edges, predictions. Revised is
// the part that was learned: labels, coefficients, a model version. Moved + Revised is the whole
// change. Each part has its standard error, SEChange and SERevised.
//
// For now a change is one or the other: while the calibration stays, all of it is moved, else all
// of it is revised.
func divideChange(
	record *quant.Estimate,
	before, now *quant.Snapshot,
	solver *quant.Solver,
	turnover quant.Turnover,
) {
	k := len(now.Prevalence)
	moved, revised := make([]float64, k), make([]float64, k)
	se := solver.SEChange(before, turnover)
	seMoved, seRevised := se, make([]float64, k)
	changed := moved
	if turnover.Reset || before.Posterior != now.Posterior || before.Audits != now.Audits {
		changed, seMoved, seRevised = revised, seRevised, se
	}
	for i := range changed {
		changed[i] = now.Prevalence[i] - before.Prevalence[i]
	}
	record.Moved, record.SEChange = moved, seMoved
	record.Revised, record.SERevised = revised, seRevised
}
