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
	// settledRecords is the number of records that evidence is averaged over, and evidenceMost the
	// most of it that one counts.
	settledRecords, evidenceMost = 50, 8
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
	cells   histogram // of the open members
	all     histogram // of all with a prediction; see Divide
	reading *reading
	rows    []float64 // of labels; see addSpread
}

// autoAnswer is the part of an answer that only auto has. Vectors have K entries.
type autoAnswer struct {
	reading   *reading
	residual  []float64 // d
	variance  []float64 // of residual
	apart     []float64 // variance of the distance between both readings
	ownWeight float64   // of the members' own labels in residual
	lean      float64   // weight of the labels' own shares
	CoefficientError
}

// automatic returns auto: the tempered mean of the posteriors plus the part of
// the labels' residual that goes with a place,
//
//	q(gamma) + (1 - gamma) d,
//
// where gamma, from the edges inside, says how far the community was selected by class.
func (w *Solver) automatic(s *Statistics, weights weighting) *answer {
	p, x, k := s.Posterior, &w.posterior, s.K
	x.reading = x.cells.read(p, p.Last)
	ans := newAnswer(k)
	ans.auto = &autoAnswer{reading: x.reading}
	ans.auto.setResidual(p, sum(s.ClassN), weights)
	x.setVariances(ans, s)
	x.addCoefficientError(ans, p, weights)
	copy(ans.free, x.reading.tempered)
	axpy(ans.free, 1-x.reading.gamma, ans.auto.residual)
	ProjectSimplex(ans.Share, ans.free)
	w.leanOnLabels(ans, s)
	copy(ans.free, ans.Share) // intervals centre on the shares themselves
	s.effectiveLabels(ans.NEff, weights)
	ans.lambda, ans.exact = weights.lambda, true
	ans.clustered = p.LabelGate < clusteredBelow
	return ans
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

// evidence returns the evidence that members were selected by their classes, and not by their
// predictions f: the logarithm of the ratio of both likelihoods. Both ways change the density of
// the vertices that are members, by
//
//	sum_i q_i pi_i/pi0_i, over the mean of that in the whole graph,  and
//	t_c/T_c  for c the class that f is for,
//
// with q = q(1), whose factors u has, and t and T the shares of these classes among the members and
// in the whole graph: as many unknowns either way. A member counts evidenceWeight, and one that
// counts several times no more than once. A declared selection is not judged.
func (p *Posterior) evidence(u *mixture, squares float64) float64 {
	members := sum(p.Predicted)
	if p.Selected != ByEdges || !(members > 0) || !(p.Vertices > 0) {
		return math.Inf(1)
	}
	evidence := 0.0
	for l, m := range u.m {
		evidence -= m / u.all * math.Log(u.inverse[l])
	}
	evidence -= math.Log(floats.Dot(u.factor, p.Mass) / p.Vertices)
	for c, n := range p.Predicted {
		if share := n / members; share > 0 {
			evidence -= share * math.Log(share*p.Vertices/max(p.Tops[c], 1))
		}
	}
	return evidence * evidenceWeight * u.all * u.all / squares
}

// settled averages the evidence for a selection over the records of a community, so that gamma does
// not flip between two values while labels come: each counts alike at first, and later ones
// settledRecords times as much as the average of those before. Evidence beyond evidenceMost decides
// by itself, and counts as that. last is the record before; nil: there is none.
func (p *Posterior) settled(evidence float64, last *Snapshot) (average, records float64) {
	if math.IsInf(evidence, 0) {
		return evidence, 0
	}
	evidence = max(-evidenceMost, min(evidenceMost, evidence))
	if last == nil || !(last.Seen > 0) {
		return evidence, 1
	}
	records = min(last.Seen+1, settledRecords)
	return last.Evidence + (evidence-last.Evidence)/records, records
}

// byClassOf returns the probability of a selection by class with this evidence, at most gammaMax.
func byClassOf(evidence float64) float64 {
	return min(gammaMax, 1/(1+math.Exp(-evidence)/byClassOdds))
}

// gamma returns the part of selection by class: 0 for a place, and where nobody says how the
// members were selected no more than most, and what edges allow.
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

// allowed returns how far edges let a selection by class with these shares go, from those inside
// and those expected if as many members were drawn at random within their classes: 1 if there are
// no more edges than expected and two standard deviations.
func (p *Posterior) allowed(likely []float64) float64 {
	if p.Selected != ByEdges || !(p.Inside > 0) {
		return 1
	}
	expected := p.Expected(p.Distinct, likely)
	return min(1, (expected+2*math.Sqrt(expected)+2)/p.Inside)
}

// undecided returns the variance of the part of selection by class, whose mean is gamma: 0, or,
// with a probability of gamma/share, as much as edges allow, share of most, known as well as from
// one observation,
//
//	E x² - gamma²,   x ~ Beta(share, 1 - share) with that probability, else 0,
//	E x² = gamma (1 + share)/2,
//
// of which ambiguity leaves less to the last term, since gamma itself is judged.
func undecided(gamma, allowed, most float64) float64 {
	return gamma * ((1+min(1, allowed/most))/2 - ambiguity*gamma)
}

// setVariances sets the variances of the answer, the diagonal of
//
//	V = M + (1 - gamma)² C + modelError² (I - 11'/K) + undecided(gamma) x x' + J⁺ B J⁺'
//	M = gamma (J_1⁺ - I) diag q(1)/n + (1 - gamma) (1 + common) A
//
// with C the noise of the residual and x the distance between both readings. A is the noise of the
// classes given what is known of the members: what a place has, whose classes are drawn and whose
// mean posterior stays. Of n members that were selected by class, what is known is drawn, which has
// the noise W = A - A diag(n/q) A, and their shares are those that q(1) follows it to, by J_1⁺,
// with J_1 = I - A diag(n/q): M has J_1⁺ W J_1⁺'. Members of a place have more in common than is
// known of each; see common. The spread B of the posteriors within each class of labels divides the
// variance among the labels; see addSpread for what finitely many labels leave open. A change takes
// J⁺ A J⁺' from one member.
//
// Members without a prediction, a share 1 - c of the open ones, are another draw of the same shares
// q, so that V has (1 - c) (diag q - q q') sum m²/(sum m)² more.
func (x *automatic) setVariances(ans *answer, s *Statistics) {
	p, k, u, a := s.Posterior, s.K, x.reading, ans.auto
	gamma := u.gamma
	squares := make([]float64, k*k) // of J⁺, times gamma²
	for at, y := range u.inverse {
		squares[at] = gamma * gamma * y * y
	}
	a.apart = make([]float64, k)
	away := u.away(a.residual)
	for i := range k {
		class := ans.spreads[i*k : (i+1)*k]
		products(class, squares, p.Within[i*k:(i+1)*k])
		axpy(a.apart, u.tempered[i]*u.tempered[i], class)
	}
	each := u.squares / (u.n * u.n)
	unseen := 0.0
	if open := s.Members - s.Labelled; open > u.n {
		unseen = (1 - u.n/open) * each
	}
	rest := (1 - gamma) * (1 - gamma)
	open := undecided(gamma, u.allowed, u.byClass)
	place := (1 - gamma) * (1 + p.common(1/each))
	members := make([]float64, k) // of J⁺ A J⁺'
	addForms(members, 1, u.inverse, u.noise)
	for i, v := range members {
		v = max(v, 0)
		ans.Member[i] = spreadOfChange * v / each
		a.apart[i] += v + a.variance[i] + modelError*modelError
		ans.v[i] = place*u.noise[i*k+i] + rest*a.variance[i] +
			modelError*modelError*(1-1/float64(k)) + open*away[i]*away[i] +
			unseen*u.tempered[i]*(1-u.tempered[i])
		if gamma > 0 {
			ans.v[i] += gamma * (u.inverseLikely[i*k+i] - 1) * max(u.likely[i], shareFloor) * each
		}
	}
	ans.divideAmongLabels(s, rest)
}

// away returns the distance between both readings, selected by class and selected by place.
func (r *reading) away(residual []float64) []float64 {
	away := slices.Clone(r.likely)
	axpy(away, -1, r.mean)
	axpy(away, -1, residual)
	return away
}

// common returns by how much, as a part of itself, the variance of the mean class of so many
// members is greater because neighbours agree: the sum of their covariances over that of their
// variances,
//
//	(2 e a_1 + a_2 sum_u n_u²/d_u)/n,   sum_u n_u²/d_u >= (2 e)²/sum d_u,
//
// with e the edges inside, a the agreement one and two steps apart, and n_u the members among the
// d_u neighbours of u. The bound is that of Cauchy and Schwarz over the u that are members. A
// member that counts several times has as many neighbours that count so. The variance is at most
// that of members who all have one class.
func (p *Posterior) common(members float64) float64 {
	if len(p.Agreement) == 0 || !(p.Degrees > 0) {
		return 0
	}
	ends := 2 * p.Inside
	sum := p.Agreement[0]*ends + p.Agreement[1]*ends*ends/p.Degrees
	return min(sum/p.Distinct*members/p.Distinct, max(members-1, 0))
}

// setResidual sets d and its variances. Labels around a community say by their weighted mean
// residual d what a place has in common, but for how the community differs from what is
// around it: its own labels say that, o on average, if some are among the members. Both are
// mixed by inverse variance, where what their distance has beyond the noise of both is bias
// of d (cf. combine; clustered labels do not stand for the members):
//
//	b² = max(0, |o - d|² - v_d - v_o),
//	weight of o = (gate of the labels) (v_d + b²) / (v_d + b² + v_o),
//
// with v the variance of a residual among all labels over the effective number of these, v_d
// twice, since d is of what is around. Own labels are among those of d, so that o and
// d covary as d does with itself. b² is at least the variance of the mean residual between
// communities, which a community without labels has as an error; see Between.
func (a *autoAnswer) setResidual(p *Posterior, labels float64, weights weighting) {
	k := len(p.Prior)
	d, scatter := make([]float64, k), make([]float64, k)
	a.residual, a.variance = d, make([]float64, k)
	everywhere := p.Residuals.effective(constantWeights)
	p.Residuals.mean(d, constantWeights)
	p.Residuals.variance(a.variance, d, constantWeights)
	scaleTo(scatter, everywhere*smallSample(everywhere), a.variance)
	p.Residuals.mean(d, weights)
	p.residualNoise(p.Residuals, a.variance, scatter, d, labels, weights)
	if p.Own != nil {
		a.mixOwn(p, scatter, labels, weights)
	} else if p.Between != nil {
		axpy(a.variance, 1, p.Between)
	}
}

// mixOwn mixes the mean residual of the members' own labels into d; scatter are the variances of a
// residual among all labels.
func (a *autoAnswer) mixOwn(p *Posterior, scatter []float64, labels float64, weights weighting) {
	k := len(scatter)
	apart, noise := make([]float64, k), make([]float64, k)
	p.Own.mean(apart, constantWeights)
	p.residualNoise(p.Own, noise, scatter, apart, labels, constantWeights)
	axpy(apart, -1, a.residual)
	squared := floats.Dot(apart, apart)
	around := 2 * sum(scatter) / p.Residuals.effective(weights)
	own := sum(scatter) / p.Own.effective(constantWeights)
	bias, between := max(0, squared-around-own), sum(p.Between)
	if bias < between {
		bias = between
	}
	if around+bias+own > 0 {
		a.ownWeight = p.LabelGate * (around + bias) / (around + bias + own)
	}
	rest := 1 - a.ownWeight
	for i, x := range apart {
		left := bias * x * x / max(squared, math.SmallestNonzeroFloat64)
		if p.Between != nil {
			left = max(left, p.Between[i])
		}
		a.variance[i] = (1-a.ownWeight*a.ownWeight)*a.variance[i] +
			a.ownWeight*a.ownWeight*noise[i] + rest*rest*left
	}
	axpy(a.residual, a.ownWeight, apart)
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
func (p *Posterior) residualNoise(
	r *Residuals, dst, all, d []float64, labels float64, w weighting,
) {
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

// divideAmongLabels divides the variance from the residual among the classes of the labels,
// in proportion to their weights.
func (a *answer) divideAmongLabels(s *Statistics, scale float64) {
	k, labels := s.K, sum(s.ClassN)
	for i, n := range s.ClassN {
		q := a.auto.reading.tempered[i]
		for j := range k {
			a.parts[i*k+j] = a.spreads[i*k+j]*q*q + scale*a.auto.variance[j]*n/labels
		}
	}
}
