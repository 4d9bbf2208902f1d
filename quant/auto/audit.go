package auto

import (
	"math"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

const (
	// auditPseudo is the number of labels, in the predicted proportions, that are added to
	// centre the interval: z² of 90 %, as Agresti and Coull (1998) add them to a share.
	auditPseudo = 2.7
	// auditPrior is the weight, in labels, of the variance that the predictions themselves
	// expect, next to that of the residuals: ten labels that all agree are no proof.
	auditPrior = 0.4
	// tauMax bounds the slope of the regression.
	tauMax = 2
	// biasErrors is the largest disagreement, in its own errors, that does not count as bias.
	biasErrors = 2
)

// Audited is the method that uses audit labels alone, weighted by their probability of being drawn.
type Audited struct{}

// Answer returns the estimate from the audit labels alone.
func (Audited) Answer(s *stats.Statistics, _ stats.Scaling) *stats.Answer { return auditAnswer(s) }

// auditAnswer returns the generalised regression estimate from the audit labels alone,
//
//	q = tau mean_U(p) + sum w (y - tau p) / sum w,
//
// tau by least squares, and its variances by Hájek, both over the design: it assumes
// nothing about shift, kernel or classifier. Systematic draws within strata vary less.
//
// Few labels have skew errors, and a spread that is hardly known. So the interval centres on the
// estimate with auditPseudo more labels in the predicted proportions. Its variance is stretched,
// so that the normal quantile gives Student's with n + auditPseudo - 2 degrees. Both corrections
// vanish as labels come.
func auditAnswer(s *stats.Statistics) *stats.Answer {
	a, k := s.Audit, s.K
	ans := stats.NewAnswer(k)
	x := momentsOf(a)
	covered := 0.0
	if open := s.Members - s.Labelled; open > 0 && s.Soft != nil {
		covered = s.Profiled / open // a member without a prediction counts as zero everywhere
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
		ans.Free[i] = x.y[i] + x.tau*(p-x.p[i])
	}
	solve.ProjectSimplex(ans.Share, ans.Free)
	degrees := max(n+auditPseudo-2, 1)
	scale *= (1 - added) * studentStretch(degrees) / degrees
	for i := range k {
		ans.Free[i] += added * (expected[i] - ans.Free[i])
		prior := x.own[i] + (1-covered)*(1-1/float64(k))/float64(k)
		ans.V[i] = scale * (n*x.residual[i] + auditPrior*prior)
		ans.Member[i] = max(ans.V[i], 0) * n
		ans.NEff[i] = n * x.y[i]
	}
	ans.Exact, ans.Audited = true, true
	return ans
}

// studentStretch returns the variance that gives a normal distribution the 90 % quantile of
// Student's t with these degrees of freedom (the first terms of Cornish and Fisher's expansion).
func studentStretch(degrees float64) float64 {
	z := solve.NormalQuantile(stats.ConfidenceDefault)
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

func momentsOf(a *stats.Audit) auditMoments {
	k, mass, c := len(a.Weights.Y), a.Weights.Sum, max(a.Noise.Sum, math.SmallestNonzeroFloat64)
	x := auditMoments{
		y:        make([]float64, k),
		p:        make([]float64, k),
		tau:      1,
		residual: make([]float64, k),
		own:      make([]float64, k),
	}
	solve.ScaleTo(x.y, 1/mass, a.Weights.Y)
	solve.ScaleTo(x.p, 1/mass, a.Weights.P)
	yp, pp := make([]float64, k), make([]float64, k)
	for i := range k {
		y, p := a.Noise.Y[i]/c, a.Noise.P[i]/c
		x.residual[i] = y - 2*y*x.y[i] + x.y[i]*x.y[i]
		x.own[i] = p - a.NoisePP[i]/c
		yp[i] = a.NoiseYP[i]/c - y*x.p[i] - x.y[i]*p + x.y[i]*x.p[i]
		pp[i] = a.NoisePP[i]/c - 2*p*x.p[i] + x.p[i]*x.p[i]
	}
	if all := solve.Sum(pp); a.Noise.Sum > 0 && all > 0 {
		x.tau = min(max(solve.Sum(yp)/all, 0), tauMax)
	}
	for i := range k {
		x.residual[i] += x.tau*x.tau*pp[i] - 2*x.tau*yp[i]
	}
	return x
}

// combine mixes the audit labels' answer x into a by inverse variance. Both are of the same
// members and hardly share an error. The part of their difference d beyond two of its own errors
// counts as bias of a: the assumptions of a can fail, those of x cannot.
//
//	b² = max(0, d'd - 4 (tr V_a + tr V_x)),
//	weight of x = (tr V_a + b²) / (tr V_a + b² + tr V_x).
//
// One error instead of two would take half of the noise of few labels for bias.
func combine(a, x *stats.Answer) {
	k, most := a.K, 0.0
	away, va, vx := 0.0, 0.0, 0.0
	a.AuditErrors = make([]float64, k)
	for i := range k {
		d, v := x.Free[i]-a.Free[i], a.V[i]+x.V[i]
		away, va, vx = away+d*d, va+a.V[i], vx+x.V[i]
		errors := math.Abs(d) / math.Sqrt(max(v, modelError*modelError))
		if a.AuditErrors[i] = errors; errors > most {
			most, a.AuditPoints = errors, 100*d
		}
	}
	bias := max(0, away-biasErrors*biasErrors*(va+vx))
	// with one class all variances are zero
	weight := (va + bias) / max(va+bias+vx, math.SmallestNonzeroFloat64)
	rest := 1 - weight
	for i := range k {
		a.V[i] = rest*rest*a.V[i] + weight*weight*x.V[i]
		if away > 0 {
			a.V[i] += rest * rest * bias / away * solve.Square(x.Free[i]-a.Free[i])
		}
		a.Share[i] += weight * (x.Share[i] - a.Share[i])
		a.Free[i] += weight * (x.Free[i] - a.Free[i])
		a.Member[i] = rest*rest*a.Member[i] + weight*weight*x.Member[i]
		a.NEff[i] += weight * (x.NEff[i] - a.NEff[i])
	}
	solve.ScaleTo(a.Influence, rest, a.Influence)
	solve.ScaleTo(a.Spreads, rest*rest, a.Spreads)
	solve.ScaleTo(a.Parts, rest*rest, a.Parts)
	if weight >= 0.5 {
		a.Holds = x.Share
	}
	a.Audited, a.AuditWeight = true, weight
}
