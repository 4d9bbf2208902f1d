package auto

import (
	"math"
	"slices"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

const (
	// clusteredBelow is the gate of the labels below which they are flagged.
	clusteredBelow = 0.5
	// modelError is the standard deviation per direction of the errors that no other term has.
	modelError = 0.005
	// ambiguity sets the part of the squared distance between both readings that is doubtful:
	// gamma (1 - ambiguity gamma) of it where edges are silent; see undecided.
	ambiguity = 0.75
	// spreadOfChange is the movement of the estimate with a member's prediction over the
	// noise of one member: neighbours read it too.
	spreadOfChange = 2
)

// Quantifier is the method auto, with workspaces that grow to the largest community seen and are
// used again. The zero value is ready. It belongs to one goroutine at a time. An answer does not
// depend on earlier answers.
type Quantifier struct {
	cells histogram // of the open members
	all   histogram // of all with a prediction; see flow
	rows  []float64 // of labels; see addSpread
}

// estimate is an estimate that is being made. Vectors have K entries.
type estimate struct {
	ans         *stats.Answer
	reading     *reading
	residual    []float64 // d
	variance    []float64 // of residual
	apart       []float64 // variance of the distance between both readings
	ownWeight   float64   // of the members' own labels in residual
	labelWeight float64   // weight of the labels' own shares
	error       stats.CoefficientError
}

// Answer returns auto, combined with the audit labels where there are enough: the tempered mean of
// the posteriors plus the part of the labels' residual that goes with a place,
//
//	q(gamma) + (1 - gamma) d,
//
// where gamma, from the edges inside, says how far the community was selected by class.
func (x *Quantifier) Answer(s *stats.Statistics, _ stats.Scaling) *stats.Answer {
	if !(solve.Sum(s.ClassN) > 0 && s.Profiled > 0) {
		ans := auditAnswer(s)
		ans.AuditWeight = 1
		return ans
	}
	e := x.estimate(s, s.AutoWeights())
	if s.Auditable() {
		combine(e.ans, auditAnswer(s))
	}
	e.ans.Memory = x.remember(e, s)
	e.ans.Diagnose = func() stats.Diagnosis { return e.diagnose(s.Posterior) }
	return e.ans
}

// estimate returns auto without the audit labels.
func (x *Quantifier) estimate(s *stats.Statistics, weights stats.Weighting) *estimate {
	p, k := s.Posterior, s.K
	ans := stats.NewAnswer(k)
	e := &estimate{ans: ans, reading: x.cells.read(p, p.Last)}
	e.setResidual(p, solve.Sum(s.ClassN), weights)
	e.setVariances(s)
	x.addCoefficientError(e, p, weights)
	copy(ans.Free, e.reading.tempered)
	solve.Axpy(ans.Free, 1-e.reading.gamma, e.residual)
	solve.ProjectSimplex(ans.Share, ans.Free)
	e.mixLabels(s)
	copy(ans.Free, ans.Share) // intervals centre on the shares themselves
	effectiveLabels(ans.NEff, s, weights)
	ans.Lambda, ans.Exact = weights.Lambda, true
	return e
}

// remember returns the parts of this estimate that the next ones of the community read.
func (x *Quantifier) remember(e *estimate, s *stats.Statistics) *stats.Memory {
	p, r := s.Posterior, e.reading
	rest := 1 - e.ans.AuditWeight
	return &stats.Memory{
		Posterior: uint64(p.Version), Gamma: r.gamma, Likely: r.likely, Residual: e.residual,
		ModelWeight: (1 - e.labelWeight) * rest, ToLabels: e.labelWeight * rest, Flow: x.flow(p, r),
		Counted: slices.Clone(s.ClassN), Stale: p.Stale,
		Evidence: r.evidence, Seen: r.seen, Error: e.error,
	}
}

// diagnose returns the doubts about the estimate: clustered labels, labels that are not typical,
// and the disputed classes, where both readings, selected by class and selected by place, differ
// beyond their errors.
func (a *estimate) diagnose(p *stats.Posterior) stats.Diagnosis {
	d := stats.Diagnosis{
		Clustered: p.LabelGate < clusteredBelow, Atypical: p.LabelsAtypical(),
	}
	away := a.reading.away(a.residual)
	z := solve.Bonferroni(stats.ShiftConfidence, len(away))
	for i, x := range away {
		if a.ans.NEff[i] > 0 && math.Abs(x) > z*math.Sqrt(a.apart[i]) {
			d.Disputed = append(d.Disputed, i)
		}
	}
	return d
}

// effectiveLabels writes the effective number of labels of each class to dst.
func effectiveLabels(dst []float64, s *stats.Statistics, w stats.Weighting) {
	for i := range dst {
		dst[i] = 0
		if m := w.R*s.ClassA1[i] + w.S*s.ClassN[i]; m > 0 {
			g2, g2a := s.ClassN[i], s.ClassA1[i]
			if s.ClassG2 != nil {
				g2, g2a = s.ClassG2[i], s.ClassG2A[i]
			}
			dst[i] = m * m / (w.R*w.R*s.ClassA2[i] + 2*w.R*w.S*g2a + w.S*w.S*g2)
		}
	}
}

// undecided returns the variance of x, the part of selection by class. Its mean is gamma. With the
// probability gamma/share, x is the part that edges allow, share = allowed/most, known as well as
// from one observation; else it is 0:
//
//	E x² - ambiguity gamma²,   x ~ Beta(share, 1 - share) with that probability, else 0,
//	E x² = gamma (1 + share)/2.
//
// The factor ambiguity < 1 makes the variance larger, since gamma itself is an estimate.
func undecided(gamma, allowed, most float64) float64 {
	return gamma * ((1+min(1, allowed/most))/2 - ambiguity*gamma)
}

// setVariances sets the variances of the answer, the diagonal of
//
//	V = M + (1 - gamma)² C + modelError² (I - 11'/K) + undecided(gamma) x x' + J⁺ B J⁺'
//	M = gamma (J_1⁺ - I) diag q(1)/n + (1 - gamma) (1 + common) A
//
// with C the noise of the residual and x the distance between both readings. A is the noise of the
// members' mean class given their posteriors. Members of a place have this noise: their posteriors
// are fixed and their classes are drawn. The classes of neighbours agree beyond their posteriors;
// see inCommon.
//
// Of n members that were selected by class, the classes are fixed and the posteriors are drawn.
// Their mean responsibility has the noise W = A - A diag(n/q) A. q(1) follows it by J_1⁺, with
// J_1 = I - A diag(n/q), so that M has J_1⁺ W J_1⁺'.
//
// B is the spread of the posteriors within each class of labels. Here it divides the variance among
// the classes of labels; addSpread adds its term to V. The variance of a change takes J⁺ A J⁺' from
// each member that changed.
//
// Members without a prediction, a share 1 - c of the open ones, are another draw of the same shares
// q, so that V has (1 - c) (diag q - q q') sum m²/(sum m)² more.
func (a *estimate) setVariances(s *stats.Statistics) {
	p, k, u, ans := s.Posterior, s.K, a.reading, a.ans
	gamma := u.gamma
	squares := make([]float64, k*k) // of J⁺, times gamma²
	for at, y := range u.inverse {
		squares[at] = gamma * gamma * y * y
	}
	a.apart = make([]float64, k)
	away := u.away(a.residual)
	for i := range k {
		class := ans.Spreads[i*k : (i+1)*k]
		solve.Products(class, squares, p.Within[i*k:(i+1)*k])
		solve.Axpy(a.apart, u.tempered[i]*u.tempered[i], class)
	}
	each := u.squares / (u.n * u.n)
	unseen := 0.0
	if open := s.Members - s.Labelled; open > u.n {
		unseen = (1 - u.n/open) * each
	}
	rest := (1 - gamma) * (1 - gamma)
	open := undecided(gamma, u.allowed, u.byClass)
	place := (1 - gamma) * (1 + inCommon(p, 1/each))
	members := make([]float64, k) // of J⁺ A J⁺'
	solve.AddForms(members, 1, u.inverse, u.noise)
	for i, v := range members {
		v = max(v, 0)
		ans.Member[i] = spreadOfChange * v / each
		a.apart[i] += v + a.variance[i] + modelError*modelError
		ans.V[i] = place*u.noise[i*k+i] + rest*a.variance[i] +
			modelError*modelError*(1-1/float64(k)) + open*away[i]*away[i] +
			unseen*u.tempered[i]*(1-u.tempered[i])
		if gamma > 0 {
			ans.V[i] += gamma * (u.inverseLikely[i*k+i] - 1) * max(u.likely[i], shareFloor) * each
		}
	}
	a.divideAmongLabels(s, rest)
}

// away returns the distance between both readings, selected by class and selected by place.
func (r *reading) away(residual []float64) []float64 {
	away := slices.Clone(r.likely)
	solve.Axpy(away, -1, r.mean)
	solve.Axpy(away, -1, residual)
	return away
}

// inCommon returns by how much, as a part of itself, the variance of the mean class of the
// members is greater because neighbours agree: the sum of their covariances over that of their
// variances,
//
//	(2 e a_1 + a_2 sum_u n_u²/d_u)/n,   sum_u n_u²/d_u >= (2 e)²/sum d_u,
//
// with e the edges inside, a the agreement one and two steps apart, and n_u the members among the
// d_u neighbours of u. The bound is that of Cauchy and Schwarz over the u that are members. A
// member that counts several times has as many neighbours that count so. The result is at most
// members - 1, its value if all members have one class.
func inCommon(p *stats.Posterior, members float64) float64 {
	if len(p.Agreement) == 0 || !(p.Degrees > 0) {
		return 0
	}
	ends := 2 * p.Inside
	sum := p.Agreement[0]*ends + p.Agreement[1]*ends*ends/p.Degrees
	return min(sum/p.Distinct*members/p.Distinct, max(members-1, 0))
}

// divideAmongLabels divides the variance from the residual among the classes of the labels,
// in proportion to their weights.
func (a *estimate) divideAmongLabels(s *stats.Statistics, scale float64) {
	k, labels := s.K, solve.Sum(s.ClassN)
	for i, n := range s.ClassN {
		q := a.reading.tempered[i]
		for j := range k {
			a.ans.Parts[i*k+j] = a.ans.Spreads[i*k+j]*q*q + scale*a.variance[j]*n/labels
		}
	}
}
