package quant

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	// gammaMax bounds gamma where edges decide: even members that look like a sample
	// within their classes may have been selected in part by something else.
	gammaMax = 0.9
	// byClassOdds is how much more likely a selection by class is than one by the
	// prediction, before the members are looked at.
	byClassOdds = 30
	// evidenceWeight is the weight of a member in the judgement of how members were selected:
	// members that are neighbours have much of their posteriors in common.
	evidenceWeight = 0.5
	// clusteredBelow is the gate of the labels below which they are flagged.
	clusteredBelow = 0.5
	// modelError is the standard deviation per direction of what no other term knows.
	modelError = 0.005
	// ambiguity sets the part of the squared distance between both readings that is doubtful:
	// gamma (1 - ambiguity gamma) of it where edges are silent; see undecided.
	ambiguity = 0.75
	// spreadOfChange is the movement of the estimate with a member's prediction over the
	// noise of one member: neighbours read it too.
	spreadOfChange = 2
)

// automatic is the workspace of auto.
type automatic struct {
	*answer // made anew for every estimate
	members members
	few     members       // of many
	reading *CrowdReading // of the members
	label   []float64     // K: variances of Residual
	noise   []float64     // K: variance of the distance between both readings
	weight  float64       // of the members' own labels in Residual
	at      []float64     // K + 5: see Kept
	rows    []float64     // of labels; see addSpread
}

// automatic returns auto: the tempered mean of the posteriors plus the part of
// the labels' residual that goes with a place,
//
//	q(gamma) + (1 - gamma) d,
//
// where gamma, from the edges inside, says how far the community was selected by class.
func (w *Solver) automatic(s *Statistics, weights weighting) *answer {
	p, x, k := s.Posterior, &w.posterior, s.K
	r := p.follow()
	if r == nil {
		x.members.load(k, p.Members)
		r = x.read(p)
	}
	x.answer, x.reading = newAnswer(k), r
	x.Tangent = Tangent{
		Gamma: r.gamma, ByClass: byClassOf(r.evidence), Tempered: r.tempered, Likely: r.likely, Inverse: r.inverse[1], ByGamma: r.byGamma,
		Apart: slices.Clone(r.likely), Residual: make([]float64, k),
	}
	axpy(x.Apart, -1, r.mean)
	x.meanResidual(p, sum(s.ClassN), weights)
	x.automaticNoise(s, weights)
	copy(x.free, x.Tempered)
	axpy(x.free, 1-x.Gamma, x.Residual)
	ProjectSimplex(x.Share, x.free)
	x.Lean = w.leanOnLabels(x.answer, s)
	copy(x.free, x.Share) // intervals centre on the shares themselves
	s.effectiveLabels(x.NEff, weights)
	x.lambda, x.Posterior, x.exact = weights.lambda, uint64(p.Version), true
	x.clustered = p.LabelGate < clusteredBelow
	return x.answer
}

// effectiveLabels writes the effective number of labels of each class to dst.
func (s *Statistics) effectiveLabels(dst []float64, w weighting) {
	for i := range dst {
		dst[i] = 0
		if m := w.r*s.ClassA1[i] + w.s*s.ClassN[i]; m > 0 {
			g2, g2a := s.ClassN[i], s.ClassA1[i]
			if s.ClassG2 != nil {
				g2, g2a = s.ClassG2[i], s.ClassG2A[i]
			}
			dst[i] = m * m / (w.r*w.r*s.ClassA2[i] + 2*w.r*w.s*g2a + w.s*w.s*g2)
		}
	}
}

// selectedByClass returns the evidence that members were selected by their classes, and not by their predictions f: the
// logarithm of the ratio of both likelihoods. Both ways change the density of what is known of a vertex u, by
//
//	sum_i q_i pi_i(u)/pi0_i, over the mean of that in the whole graph,  and  t_c/T_c  for c the class that f(u) is for,
//
// with q = q(1) and t and T the shares of these classes among the members and in the whole
// graph: as many unknowns either way. A member counts evidenceWeight, and one that counts several times no more than
// once; few has the factors of q(1). A declared selection is not judged.
func (r *CrowdReading) selectedByClass(p *Posterior, few *members) float64 {
	if p.Selected != ByEdges || p.Predicted == nil || !(p.Vertices > 0) {
		return math.Inf(1)
	}
	tops := make([]float64, len(r.likely)) // members by the class that their prediction is for
	evidence := 0.0
	for l, m := range few.m {
		evidence -= m / few.all * math.Log(few.inverse[l])
		tops[p.Predicted(few.vertex[l])] += m / few.all
	}
	evidence -= math.Log(floats.Dot(few.factor, p.Mass) / p.Vertices)
	for c, share := range tops {
		if share > 0 {
			evidence -= share * math.Log(share*p.Vertices/max(p.Tops[c], 1))
		}
	}
	return evidence * evidenceWeight * r.all * r.all / r.squares
}

// byClassOf returns how likely a selection by class is, at most gammaMax, with this evidence.
func byClassOf(evidence float64) float64 {
	return min(gammaMax, 1/(1+math.Exp(-evidence)/byClassOdds))
}

// gamma returns the part of selection by class: 0 for a place, and where nobody says how the members were selected no
// more than most, and what edges allow.
func (p *Posterior) gamma(allowed, most float64) float64 {
	if p.Gamma != nil {
		return *p.Gamma
	}
	switch p.Selected {
	case ByClass:
		return gammaMax
	case ByPlace, ByAttribute:
		return 0
	}
	return min(most, allowed, p.LabelGate)
}

// allowed returns how far edges let a selection by class with these shares go, from those inside and those expected if as
// many members were drawn at random within their classes: 1 if they are no more than expected and two standard deviations.
func (p *Posterior) allowed(likely []float64) float64 {
	if p.Selected != ByEdges || !(p.Inside > 0) {
		return 1
	}
	expected := p.Expected(p.Distinct, likely)
	return min(1, (expected+2*math.Sqrt(expected)+2)/p.Inside)
}

// undecided returns the variance of how far members were selected by class, which on average is gamma: not at all, or, with a
// probability of gamma/share, to the share of most that edges allow on average and that is known like one is from one observation,
//
//	E x² - gamma²,   x ~ Beta(share, 1 - share) with that probability, else 0,   E x² = gamma (1 + share)/2,
//
// of which ambiguity leaves less to the last term, since gamma itself is judged.
func undecided(gamma, allowed, most float64) float64 {
	return gamma * ((1+min(1, allowed/most))/2 - ambiguity*gamma)
}

// automaticNoise sets the variances of the answer, the diagonal of
//
//	V = M + (1 - gamma)² C + modelError² (I - 11'/K) + undecided(gamma) x x' + G Cov(theta, b) G' + J⁺ B J⁺'
//	M = gamma (J_1⁺ - I) diag q(1)/n + (1 - gamma) (1 + common) A
//
// with C the noise of the residual, x the distance between both readings, and G the derivative of the
// estimate by the coefficients of the posterior. A is the noise of the classes given what is known of the members: what
// a place has, whose classes are drawn and whose mean posterior stays. Of n members that were selected by
// class, what is known is drawn, which has the noise W = A - A diag(n/q) A, and their shares are those that q(1) follows
// it to, by J_1⁺, with J_1 = I - A diag(n/q): M has J_1⁺ W J_1⁺'. Members of a place have more in common than is known of
// each; see common. What finitely many labels leave
// open about the posteriors is in the last two terms, see addSpread. The spread of the posteriors within
// each class of labels divides it among the labels. A change takes J⁺ A J⁺' from one member.
//
// Members without a prediction, a share 1 - c of the open ones, are another draw of the same shares q, so that V
// has (1 - c) (diag q - q q') sum m²/(sum m)² more.
func (x *automatic) automaticNoise(s *Statistics, weights weighting) {
	p, k, u, gamma := s.Posterior, s.K, x.reading, x.Gamma
	squares := make([]float64, k*k) // of J⁺, times gamma²
	for at, y := range x.Inverse {
		squares[at] = gamma * gamma * y * y
	}
	x.noise = make([]float64, k)
	away := slices.Clone(x.Apart) // distance between both readings
	axpy(away, -1, x.Residual)
	for i := range k {
		class := x.spreads[i*k : (i+1)*k]
		products(class, squares, p.Within[i*k:(i+1)*k])
		axpy(x.noise, x.Tempered[i]*x.Tempered[i], class)
	}
	unseen := 0.0 // see automaticNoise
	if open := s.Members - s.Labelled; open > s.Profiled {
		unseen = (1 - s.Profiled/open) * u.squares / (u.all * u.all)
	}
	rest := (1 - gamma) * (1 - gamma)
	apart := undecided(gamma, u.allowed, x.ByClass)
	place := (1 - gamma) * (1 + p.common(u.all*u.all/u.squares))
	members := make([]float64, k) // of J⁺ A J⁺'
	addForms(members, 1, x.Inverse, u.a)
	for a, v := range members {
		x.Member[a] = spreadOfChange * max(v, 0) * u.all * u.all / u.squares
		x.noise[a] += max(v, 0) + x.label[a] + modelError*modelError
		x.v[a] = place*u.a[a*k+a] + rest*x.label[a] +
			modelError*modelError*(1-1/float64(k)) + apart*away[a]*away[a] + unseen*x.Tempered[a]*(1-x.Tempered[a])
		if gamma > 0 {
			x.v[a] += gamma * (u.inverse[0][a*k+a] - 1) * max(x.Likely[a], shareMin) * u.squares / (u.all * u.all)
		}
	}
	x.labelShares(s, rest)
	x.coefficientNoise(p, weights)
}

// common returns by how much, as a part of itself, the variance of the mean class of so many members is greater because
// neighbours agree: the sum of their covariances over that of their variances,
//
//	(2 e a_1 + a_2 sum_u n_u²/d_u)/n,   sum_u n_u²/d_u >= (2 e)²/sum d_u,
//
// with e the edges inside, a the agreement one and two steps apart, and n_u the members among the d_u neighbours of u. The
// bound is that of Cauchy and Schwarz over the u that are members. A member that counts several times has as many
// neighbours that count so. The variance is at most that of members who all have one class.
func (p *Posterior) common(members float64) float64 {
	if len(p.Agreement) == 0 || !(p.Degrees > 0) {
		return 0
	}
	ends := 2 * p.Inside
	sum := p.Agreement[0]*ends + p.Agreement[1]*ends*ends/p.Degrees
	return min(sum/p.Distinct*members/p.Distinct, max(members-1, 0))
}

// meanResidual sets d and its variances. Labels around a community say by their weighted mean
// residual d what a place has in common, but for how the community differs from what is
// around it: its own labels say that, o on average, if some are among the members. Both are
// mixed by inverse variance, where what their distance has beyond the noise of both is bias
// of d (cf. combine; clustered labels do not stand for the members):
//
//	b² = max(0, |o - d|² - v_d - v_o),   weight of o = (gate of the labels) (v_d + b²) / (v_d + b² + v_o),
//
// with v the variance of a residual among all labels over the effective number of these, v_d
// twice, since d is of what is around. Own labels are among those of d, so that o and
// d covary as d does with itself.
func (x *automatic) meanResidual(p *Posterior, labels float64, weights weighting) {
	k, d := len(x.Residual), x.Residual
	x.label, x.weight, x.Scatter = make([]float64, k), 0, make([]float64, k)
	everywhere := p.Residuals.effective(constantWeights)
	p.Residuals.mean(d, constantWeights)
	p.Residuals.variance(x.label, d, constantWeights)
	scaleTo(x.Scatter, everywhere*smallSample(everywhere), x.label)
	p.Residuals.mean(d, weights)
	p.residualNoise(p.Residuals, x.label, x.Scatter, d, labels, weights)
	x.Around, x.Noise = slices.Clone(x.label), slices.Clone(x.label)
	if p.Own == nil {
		return
	}
	own, ownNoise := make([]float64, k), make([]float64, k)
	p.Own.mean(own, constantWeights)
	p.residualNoise(p.Own, ownNoise, x.Scatter, own, labels, constantWeights)
	axpy(own, -1, d)
	bias := 0.0
	x.weight, bias = p.mixOwn(x.Noise, x.Scatter, own, p.Residuals.effective(weights))
	left, squared := (1-x.weight)*(1-x.weight)*bias, x.weight*x.weight
	for i, apart := range own {
		x.label[i] = (1-squared)*x.label[i] + squared*ownNoise[i] + left*apart*apart
	}
	axpy(d, x.weight, own)
}

// mixOwn returns the weight of the mean residual of the members' own labels, and the share of
// |o - d|² that is bias, for the variances of a residual, apart = o - d, and so many labels. It takes
// noise from the variance of d alone to that of the mixture, as if own labels were spread like all.
func (p *Posterior) mixOwn(noise, scatter, apart []float64, labels float64) (weight, bias float64) {
	own := p.Own.effective(constantWeights)
	squared, variance, ownVariance := floats.Dot(apart, apart), 2*sum(scatter)/labels, sum(scatter)/own
	bias = max(0, squared-variance-ownVariance)
	if variance+bias+ownVariance > 0 {
		weight = p.LabelGate * (variance + bias) / (variance + bias + ownVariance)
	}
	bias /= max(squared, math.SmallestNonzeroFloat64)
	for i, x := range apart {
		noise[i] += weight*weight*(scatter[i]/own-noise[i]) + (1-weight)*(1-weight)*bias*x*x
	}
	return weight, bias
}

// residualNoise writes to dst the variances of d, the mean of the residuals r. With C what the
// weighted residuals say, sum (w/sum w)² (r - d)², of n effective labels, and S = all
// the variances of a residual among all labels, which count alike, it is
//
//	(n² C + (K + 1) S)/(n + K) / n.
//
// Near a community there may be one label or two, which agree by chance: their spread
// has n - 1 degrees of freedom and says nothing at n = 1. Therefore S stands in with K + 1
// degrees, the fewest for which the covariance of K shares that sum to one has a mean
// (inverse Wishart). All residuals are around posteriors that were fitted on the same labels,
// which takes as many degrees as the penalised fit has, tr(1 - Cov) with the penalty 1: of few
// labels a good part, of which no more than half is taken.
func (p *Posterior) residualNoise(r *Residuals, dst, all, d []float64, labels float64, w weighting) {
	k, n := len(d), r.effective(w)
	r.variance(dst, d, w)
	scaleTo(dst, n*n, dst)
	axpy(dst, float64(k+1), all)
	scale := 1 / (n * (n + float64(k)))
	if size := p.Shared + k; p.Coefficients != nil {
		fitted := float64(size) - trace(p.Coefficients, size)
		scale *= labels / max(labels-fitted, labels/2)
	}
	scaleTo(dst, scale, dst)
}

// labelShares divides the variance from the residual among the classes of the labels,
// in proportion to their weights.
func (x *automatic) labelShares(s *Statistics, scale float64) {
	k, labels := s.K, sum(s.ClassN)
	for i, n := range s.ClassN {
		for a := range k {
			x.parts[i*k+a] = x.spreads[i*k+a]*x.Tempered[i]*x.Tempered[i] + scale*x.label[a]*n/labels
		}
	}
}

// leanOnLabels mixes the shares of the calibration labels into ans where the community
// is more than half of the vertices that the labels were drawn from. Of a share c of
// them, the labels' own shares miss what makes the rest different, which has the weight
// 1 - c; they rest on no model. Labels and members are draws of the same, so that both are
// noise of the distance between their shares, and move with the coefficients as most vertices do, so that
// the influence stays. It returns the weight of the labels' own shares.
func (w *Solver) leanOnLabels(ans *answer, s *Statistics) (lean float64) {
	p, k := s.Posterior, s.K
	if p.Selected != ByEdges || !(2*p.Distinct > p.Vertices) {
		return 0
	}
	odds := (p.Vertices - p.Distinct) / p.Distinct
	lean = p.LabelGate * (1 - odds*odds)
	labels := sum(s.ClassN)
	for a := range k {
		sampling := w.shares[a] * (1 - w.shares[a]) * (1/labels + 1/p.Distinct)
		apart := square(ans.Share[a] - w.shares[a])
		ans.v[a] = (1-lean)*(1-lean)*ans.v[a] + lean*lean*sampling + lean*(1-lean)*apart
		ans.Share[a] += lean * (w.shares[a] - ans.Share[a])
	}
	return lean
}
