package quant

import (
	"math"
	"slices"
)

const (
	// AuditsMin is the number of audit labels that an estimate from them alone needs.
	AuditsMin = 10
	// auditPseudo is the number of labels, in the predicted proportions, that are added to
	// centre the interval: z² of 90 %, as Agresti and Coull (1998) add them to a share.
	auditPseudo = 2.7
	// auditPrior is the weight, in labels, of the variance that the predictions themselves
	// expect, beside that of the residuals: ten labels that all agree are no proof.
	auditPrior = 0.4
	// auditReachLow bounds how much of the members the audit labels must stand for.
	auditReachLow = 0.8
	// tauMax bounds the slope of the regression.
	tauMax = 2
	// auditConfidence is the confidence that auto and the audit labels disagree, over
	// all classes together, from which on it is flagged.
	auditConfidence = 0.98
	// biasErrors is the number of its own errors beyond which the disagreement counts as bias.
	biasErrors = 2
)

// Audit holds the sums over the audit labels among the members of a community. With p the
// prediction of such a member (zero where it has none), y its class as a vector, m its multiplicity
// and pi the probability of having been drawn, each of the two moments sums over them
//
//	Weights: w = m / pi            Noise: c = m² (1 - pi) / pi²
//
// and the products that are named.
type Audit struct {
	Labels   int // vertices
	Weights  AuditSums
	Noise    AuditSums
	NoiseYP  []float64 // K: sum of c y_i p_i
	NoisePP  []float64 // K: sum of c p_i²
	SquaredW float64   // sum of w²
}

// AuditSums are sums of a weight, of its product with y, and of that with p.
type AuditSums struct {
	Sum  float64
	Y, P []float64 // K
}

// reach returns the share of the open members that the labels stand for, and the
// standard deviation of that by the draw alone.
func (a *Audit) reach(open float64) (share, deviation float64) {
	if !(open > 0) {
		return 0, 0
	}
	return a.Weights.Sum / open, math.Sqrt(max(a.Noise.Sum, 0)) / open
}

// estimate returns the generalised regression estimate from the audit labels alone,
//
//	q = tau mean_U(p) + sum w (y - tau p) / sum w,
//
// tau by least squares, and its variances by Hájek, both over the design: it assumes
// nothing about shift, kernel or classifier. Systematic draws within strata vary less.
//
// Few labels have skew errors, and a spread that is hardly known. So the interval centres
// where auditPseudo labels as predicted are added, and its variance is that whose normal
// quantile is Student's, of n + auditPseudo - 2 degrees. Both go as labels come.
func (a *Audit) estimate(s *Statistics) *answer {
	k := s.K
	ans := newAnswer(k)
	x := a.moments()
	covered := 0.0
	if open := s.Members - s.Labelled; open > 0 && s.Soft != nil {
		covered = s.Profiled / open // who has no prediction counts as zero everywhere
	}
	n := a.Weights.Sum * a.Weights.Sum / a.SquaredW // as many labels of equal weight
	scale := a.Noise.Sum / (a.Weights.Sum * a.Weights.Sum)
	added := auditPseudo * scale / (1 + auditPseudo*scale) // none where every member was drawn
	// mean of p over the members, equal shares where there is none
	expected := make([]float64, k)
	for i := range k {
		p := 0.0
		if covered > 0 {
			p = covered * s.Soft.P[i]
		}
		expected[i] = p + (1-covered)/float64(k)
		ans.free[i] = x.y[i] + x.tau*(p-x.p[i])
	}
	ProjectSimplex(ans.Share, ans.free)
	degrees := max(n+auditPseudo-2, 1)
	scale *= (1 - added) * studentStretch(degrees) / degrees
	for i := range k {
		ans.free[i] += added * (expected[i] - ans.free[i])
		prior := x.own[i] + (1-covered)*(1-1/float64(k))/float64(k)
		ans.v[i] = scale * (n*x.residual[i] + auditPrior*prior)
		ans.Member[i] = max(ans.v[i], 0) * n
		ans.NEff[i] = n * x.y[i]
	}
	ans.exact, ans.audited = true, true
	return ans
}

// studentStretch returns the variance of the normal whose 90 % quantile is that of Student's t
// with so many degrees of freedom (the first terms of Cornish and Fisher's expansion).
func studentStretch(degrees float64) float64 {
	z := normalQuantile(confidenceDefault)
	z2 := z * z
	t := 1 + ((z2+1)/4+((5*z2+16)*z2+3)/(96*degrees))/degrees
	return t * t
}

// auditMoments are weighted means over the audit labels, and moments about them with the weights of
// the noise. The latter count for nothing where every member was drawn for sure.
type auditMoments struct {
	y, p []float64 // K: means
	// slope of the regression, which makes the noise least; one where that cannot be told
	tau           float64
	residual, own []float64 // K: variance of y - tau p, and of y were p right
}

func (a *Audit) moments() auditMoments {
	k, mass, c := len(a.Weights.Y), a.Weights.Sum, max(a.Noise.Sum, math.SmallestNonzeroFloat64)
	x := auditMoments{
		y:        make([]float64, k),
		p:        make([]float64, k),
		tau:      1,
		residual: make([]float64, k),
		own:      make([]float64, k),
	}
	scaleTo(x.y, 1/mass, a.Weights.Y)
	scaleTo(x.p, 1/mass, a.Weights.P)
	yp, pp := make([]float64, k), make([]float64, k)
	for i := range k {
		y, p := a.Noise.Y[i]/c, a.Noise.P[i]/c
		x.residual[i] = y - 2*y*x.y[i] + x.y[i]*x.y[i]
		x.own[i] = p - a.NoisePP[i]/c
		yp[i] = a.NoiseYP[i]/c - y*x.p[i] - x.y[i]*p + x.y[i]*x.p[i]
		pp[i] = a.NoisePP[i]/c - 2*p*x.p[i] + x.p[i]*x.p[i]
	}
	if all := sum(pp); a.Noise.Sum > 0 && all > 0 {
		x.tau = min(max(sum(yp)/all, 0), tauMax)
	}
	for i := range k {
		x.residual[i] += x.tau*x.tau*pp[i] - 2*x.tau*yp[i]
	}
	return x
}

// NewAudit returns the sums of no label.
func NewAudit(k int) *Audit {
	sums := func() AuditSums { return AuditSums{Y: make([]float64, k), P: make([]float64, k)} }
	return &Audit{
		Weights: sums(),
		Noise:   sums(),
		NoiseYP: make([]float64, k),
		NoisePP: make([]float64, k),
	}
}

// Expect counts a member that is drawn so often, of whom the means of y and of y p by class are
// known.
func (a *Audit) Expect(y, p, yp []float64, multiplicity, pi, times float64) {
	w := multiplicity / pi
	c := w * w * (1 - pi) * times
	a.SquaredW += w * w * times
	a.Weights.add(w*times, y, p)
	a.Noise.add(c, y, p)
	axpy(a.NoiseYP, c, yp)
	for i, x := range p {
		a.NoisePP[i] += c * x * x
	}
}

func (s *AuditSums) add(weight float64, y, p []float64) {
	s.Sum += weight
	axpy(s.Y, weight, y)
	axpy(s.P, weight, p)
}

// Of returns the statistics of members of whom nothing is known but the audit labels and the
// mean prediction: what method Audits reads.
func (a *Audit) Of(members float64, mean []float64) *Statistics {
	k := len(mean)
	return &Statistics{
		K:        k,
		Members:  members,
		Profiled: members,
		ClassN:   make([]float64, k),
		Soft:     &Cells{Z: k, P: mean},
		Audit:    a,
	}
}

// auditable reports whether an estimate may rest on the audit labels: there are enough of them,
// and they stand for all members that are not labelled otherwise, not for a part of them.
func (s *Statistics) auditable() bool {
	if s.Audit == nil || s.Audit.Labels < AuditsMin {
		return false
	}
	share, deviation := s.Audit.reach(s.Members - s.Labelled)
	return share+2*deviation >= auditReachLow && share-2*deviation <= 1/auditReachLow
}

// auto sets w.ans to auto, combined with the audit labels where there are enough.
func (w *Solver) auto(s *Statistics, weights weighting) {
	if !(sum(s.ClassN) > 0 && s.Profiled > 0) {
		w.ans = s.Audit.estimate(s)
		w.ans.auditWeight = 1
		return
	}
	w.ans = w.automatic(s, weights)
	if s.auditable() {
		w.ans.combine(s.Audit.estimate(s))
	}
}

// combine mixes the audit labels' answer x into a by inverse variance. Both are of the same
// members and hardly share an error, so what their difference d has beyond two of its own
// errors is bias of a, whose assumptions can fail as those of x cannot:
//
//	b² = max(0, d'd - 4 (tr V_a + tr V_x)),
//	weight of x = (tr V_a + b²) / (tr V_a + b² + tr V_x).
//
// One error instead of two would take half of the noise of few labels for bias.
func (a *answer) combine(x *answer) {
	k, most := a.k, 0.0
	away, va, vx := 0.0, 0.0, 0.0
	a.auditErrors = make([]float64, k)
	for i := range k {
		d, v := x.free[i]-a.free[i], a.v[i]+x.v[i]
		away, va, vx = away+d*d, va+a.v[i], vx+x.v[i]
		errors := math.Abs(d) / math.Sqrt(max(v, modelError*modelError))
		if a.auditErrors[i] = errors; errors > most {
			most, a.auditPoints = errors, 100*d
		}
	}
	bias := max(0, away-biasErrors*biasErrors*(va+vx))
	// of one class there is no doubt
	weight := (va + bias) / max(va+bias+vx, math.SmallestNonzeroFloat64)
	rest := 1 - weight
	for i := range k {
		a.v[i] = rest*rest*a.v[i] + weight*weight*x.v[i]
		if away > 0 {
			a.v[i] += rest * rest * bias / away * square(x.free[i]-a.free[i])
		}
		a.Share[i] += weight * (x.Share[i] - a.Share[i])
		a.free[i] += weight * (x.free[i] - a.free[i])
		a.Member[i] = rest*rest*a.Member[i] + weight*weight*x.Member[i]
		a.NEff[i] += weight * (x.NEff[i] - a.NEff[i])
	}
	scaleTo(a.influence, rest, a.influence)
	scaleTo(a.spreads, rest*rest, a.spreads)
	scaleTo(a.parts, rest*rest, a.parts)
	if weight >= 0.5 {
		a.holds = x.Share
	}
	a.audited, a.auditWeight = true, weight
}

// publishAudit writes the number, the reach and the weight of the audit labels to a record.
func (w *Solver) publishAudit(e *Estimate, s *Statistics) {
	e.AuditLabels, e.AuditReach, e.AuditErrors = 0, 0, 0
	if s.Audit != nil {
		e.AuditLabels = uint64(s.Audit.Labels)
		e.AuditReach, _ = s.Audit.reach(s.Members - s.Labelled)
	}
	e.AuditWeight, e.AuditPoints = w.ans.auditWeight, w.ans.auditPoints
	if w.ans.auditErrors != nil {
		e.AuditErrors = slices.Max(w.ans.auditErrors)
	}
}

// contradicted flags the classes in which auto and the audit labels differ beyond their errors.
func (a *answer) contradicted(flags []string) []string {
	z := bonferroni(auditConfidence, a.k)
	return flagged(
		flags,
		FlagAssumption,
		len(a.auditErrors),
		func(i int) bool { return a.auditErrors[i] > z },
	)
}
