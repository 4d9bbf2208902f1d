package quant

import (
	"math"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// Divide writes to the record that Estimate made just before how its shares differ from those of
// last, the record before, in two parts that sum to the change exactly. Moved is the part that
// happened to the community: the same calibration reads the members of now and those of then.
// Revised is the part that was learned: labels, coefficients, gamma, masses of the kernel. Each has
// its standard error, SEChange and SERevised. It does nothing if last is nil.
//
// For auto the calibration is that of last: the posterior's coefficients, its correction, and
// gamma. Members count by their predictions, whether they have a label by now or not, since a label
// moves nobody. While labels stay the same, their residuals can only take movement back: a
// prediction that moves members with labels moves the residuals of these labels too. Movement
// before coefficients were fitted again counts only as far as the estimate followed. For other
// methods it is that of now, which reads the profiles that last kept. If another model made the
// predictions, or there was no answer before, all of the change is revised.
func (w *Solver) Divide(
	e *Estimate, s *stats.Statistics, o Options, last *Snapshot, t stats.Turnover,
) {
	now, k := w.last, s.K
	row := o.Method.row()
	if now.Profile = nil; w.ans.Memory == nil && s.Cells(row.reads) != nil {
		now.Profile = s.Cells(row.reads).P
	}
	if last == nil {
		return
	}
	moved, seMoved := make([]float64, k), make([]float64, k)
	if !t.Reset && last.Solved && now.Solved && now.Audits == last.Audits {
		moved = w.movedPart(s, o.withDefaults(), row, last)
		seMoved = w.movedError(last, t)
	}
	e.Moved, e.SEChange = moved, seMoved
	e.Revised, e.SERevised = make([]float64, k), make([]float64, k)
	se := w.SEChange(last, t)
	for i, x := range moved {
		e.Revised[i] = now.Prevalence[i] - last.Prevalence[i] - x
		e.SERevised[i] = math.Sqrt(max(0, solve.Square(se[i])-solve.Square(seMoved[i])))
	}
}

// movedPart returns the part of the change that happened to the community.
func (w *Solver) movedPart(s *stats.Statistics, o Options, row *method, last *Snapshot) []float64 {
	k, now := s.K, w.last
	moved := make([]float64, k)
	switch {
	case w.ans.Memory != nil:
		change := make([]float64, k)
		for i := range change {
			change[i] = now.Prevalence[i] - last.Prevalence[i]
		}
		w.automatic.Moved(moved, change, s, &now.Memory, &last.Memory)
	case len(now.Profile) > 0 && len(now.Profile) == len(last.Profile):
		then := w.quantifier(row).Answer(s.WithProfile(row.reads, last.Profile), o.scaling())
		for i := range moved {
			moved[i] = s.Open() * (w.ans.Share[i] - then.Share[i])
		}
	}
	return moved
}

// movedError returns the standard errors of the part of the change that happened: errors that both
// estimates share cancel; see SEChange.
func (w *Solver) movedError(last *Snapshot, t stats.Turnover) []float64 {
	now, k := w.last, len(w.last.SE)
	v := make([]float64, k)
	if now.Memory.Posterior == last.Memory.Posterior {
		for i := range k {
			moved := now.Open*now.Share[i] - last.Open*last.Share[i]
			solve.Axpy(v, moved*moved, w.ans.Spreads[i*k:(i+1)*k])
		}
	}
	each, before := perMember(now), perMember(last)
	members := t.Stayed*solve.Square(each-before) + t.Joined*each*each + t.Left*before*before
	for i := range v {
		v[i] += members * max(now.Member[i], last.Member[i])
		v[i] = min(math.Sqrt(max(v[i], 0)), last.SE[i]+now.SE[i])
	}
	return v
}
