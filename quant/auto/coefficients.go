package auto

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

const (
	// An estimate reuses the error of the coefficients of an earlier one up to reuseDistance, the
	// sum of the differences, or reuseDistanceAll if that error is all of the variance of a class,
	// in proportion. Coefficients that were fitted again are further by reuseEpoch. The reuse moves
	// standard errors by about a hundredth in 98 of 100.
	reuseDistance, reuseDistanceAll, reuseEpoch = 0.5, 0.01, 0.4
	// reuseTurnover is the share of the members that may have joined or left since.
	reuseTurnover = 0.1
)

// reusableError returns the error of the coefficients of the last estimate if it is near enough to
// these values, next to this other variance; otherwise the zero value.
func reusableError(p *stats.Posterior, at, others []float64) stats.CoefficientError {
	if p.Last == nil || p.Turnover.Reset || len(p.Last.Error.ErrorAt) != len(at) {
		return stats.CoefficientError{}
	}
	reused := p.Last.Error
	reused.ErrorTurned += p.Turnover.Joined + p.Turnover.Left
	version := len(at) - 1
	far := floats.Distance(at[:version], reused.ErrorAt[:version], 1)
	if reused.ErrorTurned > 2*reuseTurnover*p.Squares || far > reuseDistance {
		return stats.CoefficientError{}
	}
	far += reuseEpoch * (at[version] - reused.ErrorAt[version])
	for i, v := range reused.ErrorVariance {
		if far*v > reuseDistanceAll*(v+others[i]) {
			return stats.CoefficientError{}
		}
	}
	if p.Last.Posterior != uint64(p.Version) {
		// errors of these and of other coefficients have nothing in common
		reused.ErrorInfluence = nil
	}
	return reused
}

// addCoefficientError adds diag G Cov(theta, b) G' to the variances of the answer, with G the
// derivative of the estimate by the coefficients. G depends on q(gamma), on gamma, on the weight of
// the members' own labels and on the number of labels around.
func (x *Quantifier) addCoefficientError(a *estimate, p *stats.Posterior, weights stats.Weighting) {
	if p.Coefficients == nil {
		return
	}
	r, ans := a.reading, a.ans
	at := append(slices.Clone(r.tempered), r.gamma, a.ownWeight,
		math.Log(p.Residuals.Effective(weights)),
		math.Log(solve.Trace(p.Coefficients, p.Shared+len(p.Prior))), float64(p.Version))
	a.error = reusableError(p, at, ans.V)
	if a.error.ErrorAt == nil {
		a.error = x.errorOf(a, p, at, weights)
	}
	solve.Axpy(ans.V, 1, a.error.ErrorVariance)
	ans.Influence = slices.Clone(a.error.ErrorInfluence)
}

// respond writes the responsibility R of a vertex with the posterior pi to r.
func respond(r, pi, factor []float64) {
	floats.MulTo(r, pi, factor)
	solve.ScaleTo(r, 1/solve.Sum(r), r)
}

// errorOf returns the error that the coefficients make in the shares.
func (x *Quantifier) errorOf(
	a *estimate, p *stats.Posterior, at []float64, weights stats.Weighting,
) stats.CoefficientError {
	g, k := x.cells.byCoefficients(p, a.reading), len(p.Prior)
	e := stats.CoefficientError{
		ErrorAt: at, ErrorVariance: make([]float64, k),
		ErrorInfluence: influence(k, p.Coefficients, g),
	}
	addPriorError(p, e.ErrorVariance, g)
	labels := p.Labels()
	p.Residuals.AddSlope(g, (a.reading.gamma-1)*(1-a.ownWeight), weights, labels)
	if p.Own != nil {
		p.Own.AddSlope(g, (a.reading.gamma-1)*a.ownWeight, stats.ConstantWeights, labels)
	}
	solve.AddForms(e.ErrorVariance, 1, g, p.Coefficients)
	x.addSpread(e.ErrorVariance, a.reading, p, labels)
	return e
}

// addPriorError adds to noise the variances that the error of Prior makes in the shares: it
// multiplies all posteriors, as an error of the intercepts does. g is the derivative of the shares
// by the coefficients, K x (Shared + K).
func addPriorError(p *stats.Posterior, noise, g []float64) {
	if len(p.PriorNoise) == 0 {
		return
	}
	k := len(p.Prior)
	size := p.Shared + k
	relative, intercepts := make([]float64, k*k), make([]float64, k*k)
	for i, x := range p.Prior {
		for j, y := range p.Prior {
			relative[i*k+j] = p.PriorNoise[i*k+j] / (x * y)
		}
		copy(intercepts[i*k:(i+1)*k], g[i*size+p.Shared:(i+1)*size])
	}
	solve.AddForms(noise, 1, intercepts, relative)
}

// addSpread adds to the error of the coefficients the error that finitely many labels leave beyond
// it. The posteriors promise a mean responsibility R of the members of each class, under the
// factors of the estimate. The labels of the class show how far that holds:
//
//	diag J⁺ B J⁺',   B = sum_c q_c² Cov_c(R)/n_c - X' Cov(theta, b) X,
//	X = sum_c q_c Cov_c(g s, R)
//
// with Cov_c over the labels of class c, n_c their effective number, g their weights and s their
// scores. The coefficients move with the scores, so X takes that part out of the first sum. B grows
// with the distance of the shares from those of the labels: there R is pi, and the fit makes the
// mean of pi right.
func (x *Quantifier) addSpread(
	noise []float64, read *reading, p *stats.Posterior, l *stats.LabelSample,
) {
	k, factor, tempered := len(p.Prior), x.cells.Factor, read.tempered
	x.rows = append(x.rows[:0], l.Pi...)
	size, labels, r := p.Shared+k, len(l.Class), x.rows
	means, mass, squares := make([]float64, k*k), make([]float64, k), make([]float64, k)
	for n, c := range l.Class {
		row, g := r[n*k:(n+1)*k], l.Weight[n]
		respond(row, row, factor)
		solve.Axpy(means[c*k:(c+1)*k], g, row)
		mass[c], squares[c] = mass[c]+g, squares[c]+g*g
	}
	parts, squared := make([]float64, labels), make([]float64, labels)
	for n, c := range l.Class {
		off := r[n*k : (n+1)*k]
		solve.Axpy(off, -1/mass[c], means[c*k:(c+1)*k])
		solve.ScaleTo(off, math.Sqrt(stats.SmallSample(mass[c]*mass[c]/squares[c])), off)
		parts[n] = tempered[c] * l.Weight[n] * l.Weight[n] / squares[c] * l.Squares[c] / l.Mass[c]
		squared[n] = parts[n] * tempered[c] / l.Mass[c]
	}
	b, moved := make([]float64, k*k), make([]float64, k*size)
	solve.AddOuters(b, squared, r, k)
	for n, part := range parts {
		solve.ScaleTo(r[n*k:(n+1)*k], part, r[n*k:(n+1)*k])
	}
	blas64.Gemm(
		blas.Trans, blas.NoTrans, 1, solve.General(r, labels, k),
		solve.General(l.Score, labels, size), 0, solve.General(moved, k, size),
	)
	solve.Mirror(b, b, k)
	left := make([]float64, k)
	solve.AddForms(left, 1, read.inverse, b)
	solve.AddForms(left, -1, solve.Product(read.inverse, moved, k), p.Coefficients)
	for i, v := range left {
		noise[i] += max(v, 0)
	}
}
