package quant

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Snapshot holds the parts of an estimate from which the error of a change follows. It holds no
// reference to the Solver or the Statistics, so it can be kept between emissions
// and written to a checkpoint.
type Snapshot struct {
	Solved   bool      // false: the estimate was a stand-in, nothing cancels
	Open     float64   // share of the members that was estimated, not counted
	Profiled float64   // multiplicity of the unlabelled members with a prediction
	Share    []float64 // K: prevalence among the unlabelled
	SE       []float64 // K: of the prevalence
	NEff     []float64 // K
	Labels   []float64 // K: variance of all shares together from the labels of each class
	Member   []float64 // K: variance of each share from one member

	Posterior uint64 // version of the coefficients, of auto
	Audits    uint64 // audit labels that it rests on

	Prevalence []float64 // K: the shares of all members
	Coverage   float64   // of the unlabelled members by predictions
	Tangent              // of auto
	Kept                 // the same
}

// Turnover counts how the unlabelled members with a prediction of one community differ between two
// estimates, as sums of squared multiplicities: plain counts where all multiplicities are one. A
// member whose profile changed has left and joined by the square of the share of the profile that
// is another one now: whole, if they have nothing in common. So it has when its posterior moved. Where it is not known, Joined and Left
// over all members are safe.
type Turnover struct {
	Stayed, Joined, Left float64
	Reset                bool // another model's predictions, or another method: nothing cancels
}

// Snapshot writes what is kept of the Estimate that was made just before to dst. Nobody writes to what it refers to.
func (w *Solver) Snapshot(dst *Snapshot) { *dst = w.ans.Snapshot }

// remember completes what Snapshot tells.
func (w *Solver) remember(e *Estimate, s *Statistics, solved bool) {
	a := &w.ans.Snapshot
	a.Solved, a.Open, a.Profiled, a.Coverage = solved, s.open(), s.Profiled, e.Coverage
	a.SE, a.Prevalence = slices.Clone(e.SE), slices.Clone(e.Prevalence)
	if solved {
		for of := range slices.Chunk(w.ans.parts, s.K) {
			a.Labels = append(a.Labels, sum(of))
		}
	}
	if w.ans.audited {
		a.Audits = e.AuditLabels
	}
}

// SEChange returns the standard errors of the change of the prevalence from prev to the
// Estimate that was made just before. What both estimates share cancels: with o the share of members estimated, n their number and q the share,
//
//	V = sum_i (o q_i - o' q_i')^2 H S_ci H'      labels that both have
//	  + sum_i |1 - n_eff,i/n_eff,i'| o^2 L_i      labels that one has
//	  + v (Stayed (o/n - o'/n')^2 + Joined (o/n)^2 + Left (o'/n')^2)
//
// where L_i is the variance from the labels of class i (q_i^2 H S_ci H' for the adjusted counts)
// and v that of one member. The second line takes the smaller set of labels as part of the larger.
// The result is at most se + se', what errors that go against each other would give; if nothing
// cancels, sqrt(se^2 + se'^2). It panics if the numbers of classes differ.
func (w *Solver) SEChange(prev *Snapshot, t Turnover) []float64 {
	cur := &w.ans.Snapshot
	k := len(cur.SE)
	if len(prev.SE) != k {
		panic(fmt.Sprintf("quant: change from %d to %d classes", len(prev.SE), k))
	}
	change := make([]float64, k)
	if t.Reset || !prev.Solved || !cur.Solved || prev.Posterior != cur.Posterior || prev.Audits != cur.Audits {
		for i := range change {
			change[i] = math.Hypot(prev.SE[i], cur.SE[i])
		}
		return change
	}
	for i := range k {
		moved := cur.Open*cur.Share[i] - prev.Open*prev.Share[i]
		axpy(change, moved*moved, w.ans.spreads[i*k:(i+1)*k])
		fresh := 1.0 // share of the labels, one set being part of the other
		if n := prev.NEff[i]; n > 0 {
			fresh = math.Abs(1 - cur.NEff[i]/n)
		}
		axpy(change, cur.Open*cur.Open*fresh, w.ans.parts[i*k:(i+1)*k])
	}
	now, before := perMember(cur), perMember(prev)
	members := t.Stayed*square(now-before) + t.Joined*now*now + t.Left*before*before
	for i := range change {
		v := change[i] + members*max(cur.Member[i], prev.Member[i])
		change[i] = min(math.Sqrt(max(v, 0)), prev.SE[i]+cur.SE[i])
	}
	return change
}

// perMember returns the contribution of one member to the prevalence, o/n.
func perMember(s *Snapshot) float64 {
	if s.Profiled <= 0 {
		return 0
	}
	return s.Open / s.Profiled
}

const (
	// labelsMoved is the share by which an effective number of labels must differ from that
	// of a record for the record to be renewed: its standard errors are off by half as much.
	labelsMoved = 0.1
	// thinMoved is the same of one that passes thinBelow: labels that come and go there change nothing by themselves.
	thinMoved = 0.03
	// logarithmMin bounds the shares that a logarithm is taken of.
	logarithmMin = 1e-12
)

// Tangent describes an estimate of auto to first order: its inputs, and its derivatives by them.
// It is empty for other methods.
type Tangent struct {
	Gamma    float64
	Lean     float64   // weight of the labels' own shares
	ByClass  float64   // most that gamma may be
	Tempered []float64 // K: q(gamma), but for the tolerance the mean responsibility of the members
	Likely   []float64 // K: q(1)
	Residual []float64 // K: d
	Apart    []float64 // K: q(1) less the mean of the members
	Scatter  []float64 // K: variance of a residual among all labels
	Around   []float64 // K: variance of d without the members' own labels
	Noise    []float64 // K: the same with them; see mixOwn
	Inverse  []float64 // K x K: what multiplies a change of the mean responsibility
	ByGamma  []float64 // K: derivative of q(gamma) by gamma
}

// Movement returns by how many of its standard errors the prevalence that last is of has
// moved, in the class where it has most, if s were estimated now, or, if that is more, by what
// part of itself its standard error has grown or was too large. It is infinite where the
// record is to be renewed whatever its shares are: its effective labels of a class have
// changed by labelsMoved, or what it is flagged for by number.
//
// auto is extrapolated: with R the members' responsibilities under the factors of last,
//
//	change = J⁺ (mean R - q(gamma)) + (1 - gamma) (d now - d) + (dq/dgamma - d) (gamma now - gamma),
//
// which takes one pass over the members and no iteration. Of other methods the shares are
// solved for, and no variance, but for auto with audit labels, which weighs by variances.
func (w *Solver) Movement(s *Statistics, o Options, last *Snapshot) float64 {
	r, _ := o.Method.recipe()
	o = o.withDefaults(r)
	var e Estimate
	w.header(&e, s, o)
	ok := w.solvable(&e, s, r)
	if ok != last.Solved || (e.Coverage < coverageLow) != (last.Coverage < coverageLow) {
		return math.Inf(1)
	}
	grown := 0.0
	switch {
	case ok && r.family == familyAuto && s.Audit == nil:
		if s.Posterior == nil || uint64(s.Posterior.Version) != last.Posterior {
			return math.Inf(1)
		}
		grown = w.extrapolate(s, last)
	case ok:
		w.sketching = true
		w.dispatch(s, r, o)
		w.sketching = false
	}
	if labelsChanged(w.ans.NEff, last.NEff) {
		return math.Inf(1)
	}
	return max(grown, w.distance(s, last))
}

// Rates say by how many standard errors of a record its shares move, about, and in the class where most, for every unit by
// which something moves.
type Rates struct {
	Posterior float64 // that of a member
	Residual  float64 // the mean residual
	Mass      float64 // the masses that it is weighted by, as a part of them
	Gamma     float64 // gamma, as a part of itself
}

// Rates returns those of an estimate of auto.
func (s *Snapshot) Rates() (r Rates) {
	k := len(s.SE)
	for i, se := range s.SE {
		unit, members := s.Open*(1-s.Lean)/se, 0.0
		for _, x := range s.Inverse[i*k : (i+1)*k] {
			members += math.Abs(x)
		}
		r.Posterior = max(r.Posterior, unit*members/max(s.Profiled, 1))
		r.Residual = max(r.Residual, unit*(1-s.Gamma))
		r.Mass = max(r.Mass, unit*(1-s.Gamma)*math.Abs(s.Residual[i]))
		r.Gamma = max(r.Gamma, s.Gamma*unit*math.Abs(s.ByGamma[i]-s.Residual[i]), s.Gamma*square(unit*(s.Apart[i]-s.Residual[i]))/4)
	}
	return r
}

// labelsChanged reports whether the effective labels of a class are other than they were.
func labelsChanged(now, then []float64) bool {
	for i, n := range now {
		moved := math.Abs(n - then[i])
		if moved > labelsMoved*then[i] || moved > thinMoved*then[i] && (n < thinBelow) != (then[i] < thinBelow) {
			return true
		}
	}
	return false
}

// distance returns the distance of the prevalence with the shares of w.ans from that of last, in
// standard errors of last.
func (w *Solver) distance(s *Statistics, last *Snapshot) (most float64) {
	for i, q := range w.ans.Share {
		if change := math.Abs(clamp(s.prevalence(i, q)) - last.Prevalence[i]); change > 0 {
			most = max(most, change/last.SE[i])
		}
	}
	return most
}

// extrapolate writes the shares that auto would about have, and its effective labels, to w.ans, and
// returns by what part of itself the standard error of a class would differ.
func (w *Solver) extrapolate(s *Statistics, last *Snapshot) (grown float64) {
	p, t, k := s.Posterior, &last.Tangent, s.K
	weights := s.autoWeights()
	s.effectiveLabels(w.ans.NEff, weights)
	d, noise := make([]float64, k), slices.Clone(t.Around)
	p.Residuals.mean(d, weights)
	if p.Own != nil {
		own := make([]float64, k)
		p.Own.mean(own, constantWeights)
		axpy(own, -1, d)
		weight, _ := p.mixOwn(noise, t.Scatter, own, w.ans.effective(s, weights))
		axpy(d, weight, own)
	}
	moved, response := make([]float64, k), make([]float64, k)
	if p.Crowd.tells() && p.Crowd.tempered(moved, t.Gamma) {
		axpy(moved, -1, t.Tempered)
	} else {
		all, factor := 0.0, factors(make([]float64, k), t.Tempered, p.Prior, t.Gamma)
		p.Members(func(_ uint32, m float64, pi []float64) {
			axpy(response, m/floats.Dot(pi, factor), pi)
			all += m
		})
		floats.Mul(response, factor)
		if all > 0 {
			scaleTo(response, 1/all, response)
			axpy(response, -1, t.Tempered)
			products(moved, t.Inverse, response)
		}
	}
	allowed := p.allowed(t.Likely)
	gamma := p.gamma(allowed, t.ByClass)
	for i := range k {
		change := moved[i] + (1-t.Gamma)*(d[i]-t.Residual[i]) + (gamma-t.Gamma)*(t.ByGamma[i]-t.Residual[i])
		w.ans.free[i] = t.Tempered[i] + (1-t.Gamma)*t.Residual[i] + change
		if se, most := last.SE[i], last.Open*worstDeviation; 0 < se && se < most {
			se /= min(last.error(i, gamma, allowed, noise[i], d[i]), most)
			grown = max(grown, se-1, 1/se-1)
		}
	}
	ProjectSimplex(w.ans.Share, w.ans.free)
	for i, share := range w.shares {
		w.ans.Share[i] += t.Lean * (share - w.ans.Share[i])
	}
	return grown
}

// error returns about what the standard error of a share is with this gamma and residual d of the
// variance noise: these of its terms leap, where labels among the members have come or gone.
func (s *Snapshot) error(i int, gamma, allowed, noise, d float64) float64 {
	t := &s.Tangent
	change := square(1-gamma)*noise + undecided(gamma, allowed, t.ByClass)*square(t.Apart[i]-d) -
		square(1-t.Gamma)*t.Noise[i] - undecided(t.Gamma, allowed, t.ByClass)*square(t.Apart[i]-t.Residual[i])
	return math.Sqrt(max(0, square(s.SE[i])+square(s.Open*(1-t.Lean))*change))
}

// effective returns the effective number of all labels from that of each class.
func (a *answer) effective(s *Statistics, w weighting) float64 {
	all, squares := 0.0, 0.0
	for i, n := range a.NEff {
		if m := w.r*s.ClassA1[i] + w.s*s.ClassN[i]; m > 0 {
			all, squares = all+m, squares+m*m/n
		}
	}
	return all * all / squares
}
