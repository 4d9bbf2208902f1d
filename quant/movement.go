package quant

import (
	"math"
	"slices"
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
// prediction that moves members with their labels has moved what these read. Of what happened
// before coefficients were fitted again, no more counts than the estimate followed. For other
// methods it is that of now, which reads the profiles that last kept. If another model made the
// predictions, or there was no answer before, all of the change is revised.
func (w *Solver) Divide(e *Estimate, s *Statistics, o Options, last *Snapshot, t Turnover) {
	now, k := w.last, s.K
	r, _ := o.Method.recipe()
	if w.ans.auto != nil {
		now.Flow = w.posterior.flow(s.Posterior, w.ans.auto.reading)
	} else if now.Profile = nil; s.cells(r) != nil {
		now.Profile = s.cells(r).P
	}
	if last == nil {
		return
	}
	moved, seMoved := make([]float64, k), make([]float64, k)
	if !t.Reset && last.Solved && now.Solved && now.Audits == last.Audits {
		moved = w.moved(s, o.withDefaults(r), r, last)
		seMoved = w.movedError(last, t)
	}
	e.Moved, e.SEChange = moved, seMoved
	e.Revised, e.SERevised = make([]float64, k), make([]float64, k)
	se := w.SEChange(last, t)
	for i, x := range moved {
		e.Revised[i] = now.Prevalence[i] - last.Prevalence[i] - x
		e.SERevised[i] = math.Sqrt(max(0, square(se[i])-square(seMoved[i])))
	}
}

// moved returns the part of the change that happened to the community.
func (w *Solver) moved(s *Statistics, o Options, r recipe, last *Snapshot) []float64 {
	k, now := s.K, w.last
	moved := make([]float64, k)
	switch {
	case w.ans.auto != nil && now.Posterior != last.Posterior:
		for i, x := range last.Carried { // the cells of then are gone
			moved[i] = common(x, now.Prevalence[i]-last.Prevalence[i])
		}
	case w.ans.auto != nil:
		copy(moved, w.Carry(s.Posterior, s.Members, last))
		if len(last.Residual) == k && slices.Equal(now.Counted, last.Counted) {
			for i, d := range now.Residual {
				moved[i] -= common(moved[i], last.Lean*(1-last.Gamma)*(last.Residual[i]-d))
			}
		}
	case len(now.Profile) > 0 && len(now.Profile) == len(last.Profile):
		then, ans := w.again(s, o, r, last.Profile), w.ans
		for i := range moved {
			moved[i] = s.open() * (ans.Share[i] - then[i])
		}
	}
	return moved
}

// common returns the smaller of two changes if they have one sign, else 0.
func common(a, b float64) float64 {
	if a*b <= 0 {
		return 0
	}
	if math.Abs(a) < math.Abs(b) {
		return a
	}
	return b
}

// again returns the shares that the method gives for another profile of the members.
func (w *Solver) again(s *Statistics, o Options, r recipe, profile []float64) []float64 {
	ans := w.ans
	defer func() { w.ans = ans }()
	then, cells := *s, *s.cells(r)
	cells.P = profile
	switch {
	case r.hard && r.pair:
		then.HardPair = &cells
	case r.hard:
		then.Hard = &cells
	case r.pair:
		then.SoftPair = &cells
	default:
		then.Soft = &cells
	}
	w.ans = newShares(s.K)
	copy(w.ans.Share, w.shares)
	w.dispatch(&then, r, o)
	return w.ans.Share
}

// Carry returns how far the shares of auto of a community of so many members have moved since last,
// as its calibration sees it. The coefficients must be those of last. The correction for labels
// that are not typical may be another one, where it follows the graph.
func (w *Solver) Carry(p *Posterior, members float64, last *Snapshot) []float64 {
	if p == nil || len(last.Flow) != len(p.Prior) {
		return make([]float64, len(last.Prevalence))
	}
	moved := make([]float64, len(p.Prior))
	covered := 1.0
	if members > 0 {
		covered = min(1, sum(p.All)/members)
	}
	for i, q := range w.posterior.flowAt(p, last.Gamma, last.Flow) {
		moved[i] = covered * last.Lean * (q - last.Flow[i])
		if len(last.Carried) > 0 {
			moved[i] += last.Carried[i]
		}
	}
	p.leaveLabels(moved, last)
	return moved
}

// leaveLabels adds to moved how far the answer has left the labels' own shares, since what is said
// of their vertices is no longer what it was then.
func (p *Posterior) leaveLabels(moved []float64, last *Snapshot) {
	if !(last.ToLabels > 0 && p.Stale > last.Stale && len(last.Residual) == len(moved)) {
		return
	}
	left := last.ToLabels * (p.Stale - last.Stale) / (1 - last.Stale)
	for i, x := range p.shareOfLabels(last.Counted) {
		moved[i] += left * (last.Flow[i] + (1-last.Gamma)*last.Residual[i] - x)
	}
}

// CarryCorrection returns the same where the correction for labels that are not typical has
// followed the graph, from p to followed: it weighs members and the labels' own shares.
func (w *Solver) CarryCorrection(
	p, followed *Posterior,
	members float64,
	last *Snapshot,
) []float64 {
	moved := w.Carry(followed, members, last)
	if !(last.ToLabels > 0 && sum(last.Counted) > 0) {
		return moved
	}
	then, now := p.shareOfLabels(last.Counted), followed.shareOfLabels(last.Counted)
	for i := range moved {
		moved[i] += last.ToLabels * (now[i] - then[i])
	}
	return moved
}

// Learn returns last as it would be if it had known of the labels since: those that came or went
// near members changed how all of them are read, which without gives otherwise, and moved nobody.
func (w *Solver) Learn(p *Posterior, without []float64, last *Snapshot) *Snapshot {
	if last == nil || last.Posterior != uint64(p.Version) || len(last.Flow) != len(p.Prior) {
		return last
	}
	now, other := *last, *p
	other.All = without
	before := w.posterior.flowAt(&other, last.Gamma, last.Flow)
	now.Flow = w.posterior.flowAt(p, last.Gamma, last.Flow)
	for i, q := range before {
		now.Flow[i] += last.Flow[i] - q
	}
	return &now
}

// flow returns q(gamma) of all members with a prediction, labelled or not, where r is the reading
// of those without a label.
func (x *automatic) flow(p *Posterior, r *reading) []float64 {
	if sum(p.All) == r.n {
		return r.tempered
	}
	return x.flowAt(p, r.gamma, r.tempered)
}

// flowAt returns q of all members with a prediction for one gamma; start is a guess.
func (x *automatic) flowAt(p *Posterior, gamma float64, start []float64) []float64 {
	k := len(p.Prior)
	all, v := *p, &x.all
	all.Counts = p.All
	v.load(&all)
	mean := make([]float64, k)
	if !(v.all > 0) {
		return append(mean[:0], start...)
	}
	combine(mean, v.m, v.x)
	scaleTo(mean, 1/v.all, mean)
	if gamma == 0 {
		return mean
	}
	return v.solve(append([]float64(nil), start...), mean, p.Prior, gamma)
}

// movedError returns the standard errors of the part of the change that happened: what both
// estimates share cancels; see SEChange.
func (w *Solver) movedError(last *Snapshot, t Turnover) []float64 {
	now, k := w.last, len(w.last.SE)
	v := make([]float64, k)
	if now.Posterior == last.Posterior {
		for i := range k {
			moved := now.Open*now.Share[i] - last.Open*last.Share[i]
			axpy(v, moved*moved, w.ans.spreads[i*k:(i+1)*k])
		}
	}
	each, before := perMember(now), perMember(last)
	members := t.Stayed*square(each-before) + t.Joined*each*each + t.Left*before*before
	for i := range v {
		v[i] += members * max(now.Member[i], last.Member[i])
		v[i] = min(math.Sqrt(max(v[i], 0)), last.SE[i]+now.SE[i])
	}
	return v
}
