package quant

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
)

// Estimate fills the statistical part of e for one community: method, preset, lambda, members,
// coverage, prevalence, interval, standard errors, effective labels, flags. Who, where and when
// (pipeline, community, position, time, kernel, model version, certificate, config) is left as the
// caller set it. No output is ever NaN.
//
// Labelled members are counted, the others estimated: with A labelled members by class and n
// members, prevalence = (A + (n - sum A) q) / n. It returns an error when an option is out of range
// or the statistics lack what the method reads; a poor answer is not an error but carries flags.
// Vectors of other lengths than s.K says are a mistake of the caller, and panic.
func (w *Solver) Estimate(e *Estimate, s *Statistics, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	r, _ := o.Method.recipe()
	if err := s.check(o.Method, r); err != nil {
		return err
	}
	o = o.withDefaults(r)
	w.header(e, s, o)
	ok := w.solvable(e, s, r)
	if ok {
		w.dispatch(s, r, o)
	}
	w.publish(e, s, r, o, ok)
	if ok {
		w.diagnose(e, s, r, o)
	}
	return nil
}

// check reports statistics that lack what r reads.
func (s *Statistics) check(name Method, r recipe) error {
	switch r.family {
	case familyShares, familyAudit:
	case familyAuto:
		if sum(s.ClassN) > 0 && s.Posterior == nil {
			return fmt.Errorf("quant: %s needs posteriors, which the statistics do not hold", name)
		}
	default:
		if s.cells(r) == nil {
			return fmt.Errorf("quant: %s needs cells that the statistics do not hold", name)
		}
	}
	return nil
}

// header fills what does not depend on the method.
func (w *Solver) header(e *Estimate, s *Statistics, o Options) {
	e.Method, e.Preset = string(o.Method), string(o.Preset)
	e.Confidence, e.Simultaneous = o.Confidence, o.Simultaneous
	e.Members, e.Labelled = s.Members, s.Labelled
	e.Coverage = 1
	if open := s.Members - s.Labelled; open > 0 {
		e.Coverage = clamp(s.Profiled / open)
	}
	e.Flags = []string{}
	w.ans, w.shares = newShares(s.K), w.shares[:0]
	n := sum(s.ClassN)
	for _, x := range s.ClassN {
		if n > 0 {
			w.shares = append(w.shares, x/n)
		} else {
			w.shares = append(w.shares, 1/float64(s.K))
		}
	}
}

// solvable reports whether the method has what it needs; if not, it puts the
// stand-in into w.ans and a flag that says why into e.
func (w *Solver) solvable(e *Estimate, s *Statistics, r recipe) bool {
	labels := sum(s.ClassN) > 0
	copy(w.ans.Share, w.shares)
	copy(w.ans.NEff, s.ClassN)
	for i, x := range s.ClassG2 {
		if x > 0 {
			w.ans.NEff[i] *= s.ClassN[i] / x
		}
	}
	switch {
	case !(s.Members > 0):
		e.Flags = append(e.Flags, FlagNoMembers)
	case !(s.Members > s.Labelled):
		return false // every member is labelled: the answer is a count
	case (r.family == familyAudit || r.family == familyAuto) && s.auditable():
		return true
	case r.family == familyAudit:
		e.Flags = append(e.Flags, FlagFewAudits)
		return false
	case r.family != familyShares && !(s.Profiled > 0):
		e.Flags = append(e.Flags, FlagNoCoverage)
	case r.family == familyCount || labels:
		return true
	default:
		if c := s.Soft; c != nil && s.Profiled > 0 {
			copy(w.ans.Share, c.P)
		}
	}
	if !labels {
		e.Flags = append(e.Flags, FlagNoLabels)
	}
	return false
}

// dispatch runs the method and leaves its answer in w.ans.
func (w *Solver) dispatch(s *Statistics, r recipe, o Options) {
	at := s.reach()
	switch r.family {
	case familyShares, familyCount:
		w.counts(s, r)
	case familySolve:
		w.ans = w.adjusted(s, r, w.weights(s, r, o, at), nil)
	case familyDiff:
		w.ans = w.difference(s, w.weights(s, r, o, at))
	case familyML:
		w.ans = w.mixture(s, r, at)
	case familyAuto:
		w.auto(s, s.autoWeights())
	case familyAudit:
		w.ans = s.Audit.estimate(s)
	}
}

// weights returns the weighting of the options, or the constant one if the method takes none.
func (w *Solver) weights(s *Statistics, r recipe, o Options, at reach) weighting {
	if !r.weighted {
		return constantWeights
	}
	lambda := o.Lambda
	if lambda == LambdaAuto {
		lambda = at.rescale(o.Preset, at.lambdaMax(autoFloor), s.KernelSum)
	}
	return at.weigh(o.Preset, lambda, s.KernelSum)
}

// counts turns the stand-in in w.ans, whose effective labels stay, into mlpe, cc or pcc. Their
// variances are those of a plain mean and say nothing of bias.
func (w *Solver) counts(s *Statistics, r recipe) {
	ans, p, n := w.ans.withVariances(), w.shares, sum(s.ClassN)
	var own []float64
	if r.family == familyCount {
		p, n = s.cells(r).P, s.sample()
		if !r.hard {
			own = s.OwnVariance
		}
	}
	copy(ans.Share, p)
	copy(ans.free, p)
	ans.exact = r.family == familyShares || r.hard || own != nil
	for a := range s.K {
		c := p[a] * (1 - p[a])
		if own != nil {
			c = own[a]
		}
		ans.v[a] = c / n
		if r.family == familyCount {
			ans.Member[a] = max(c, 0)
			continue
		}
		for b := range s.K { // of labels of class a in share b
			ans.parts[a*s.K+b] = s.classSquares()[a] / (n * n) * square(delta(a, b)-p[b])
		}
	}
	ans.nothing = r.family == familyCount && s.countsNothing(r, ans.v[:s.K])
}

// countsNothing reports whether a count of predictions is no information: the labels of all classes
// have the same mean prediction, or no two classes with labels show that they differ, and the
// members' predictions are all equal, which the variances say.
func (s *Statistics) countsNothing(r recipe, variances []float64) bool {
	if m := s.cells(r).weigh(s.K, constantWeights, 0); m.k > 1 {
		for a := 1; a < m.k; a++ {
			if floats.Distance(m.column(0), m.column(a), 1) > sameProfile {
				return false
			}
		}
		return true
	}
	return s.K > 1 && floats.Max(variances) == 0
}

// sameProfile bounds the distance of mean predictions that are equal but for rounding.
const sameProfile = 1e-9

// delta is one where a and b are the same class.
func delta(a, b int) float64 {
	if a == b {
		return 1
	}
	return 0
}

// square returns x^2.
func square(x float64) float64 { return x * x }
