package quant

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// CoefficientError is the error that the coefficients of the posterior make in an estimate of auto.
// Computing it takes a pass over a sample of labels, and it hardly changes from one second to the
// next, so a later estimate takes it over while that holds; see keptFor.
type CoefficientError struct {
	ErrorAt        []float64 // K + 5: where it was computed; see addCoefficientError
	ErrorVariance  []float64 // K
	ErrorInfluence []float64 // see Estimate.Influence; nil where it is that of earlier coefficients
	ErrorTurned    float64   // members that joined or left since, as in Turnover
}

const (
	// keptFar is how far, in sum, an estimate may be from where its error of the coefficients was
	// computed, and keptFarAll how far where that is all of the variance of a class, in proportion.
	// It moves standard errors by about a hundredth in 98 of 100. Coefficients that were fitted
	// again are keptEpoch further.
	keptFar, keptFarAll, keptEpoch = 0.5, 0.01, 0.4
	// keptTurned is the share of the members that may be others than they were then.
	keptTurned = 0.1
)

// keptFor returns the error of the coefficients that the last estimate had if it still holds at
// these values, next to this other variance; the zero value if it does not.
func (p *Posterior) keptFor(at, others []float64) CoefficientError {
	if p.Last == nil || p.Turnover.Reset || len(p.Last.ErrorAt) != len(at) {
		return CoefficientError{}
	}
	kept := p.Last.CoefficientError
	kept.ErrorTurned += p.Turnover.Joined + p.Turnover.Left
	version := len(at) - 1
	far := floats.Distance(at[:version], kept.ErrorAt[:version], 1)
	if kept.ErrorTurned > 2*keptTurned*p.Squares || far > keptFar {
		return CoefficientError{}
	}
	far += keptEpoch * (at[version] - kept.ErrorAt[version])
	for i, v := range kept.ErrorVariance {
		if far*v > keptFarAll*(v+others[i]) {
			return CoefficientError{}
		}
	}
	if p.Last.Posterior != uint64(p.Version) {
		// errors of these and of other coefficients have nothing in common
		kept.ErrorInfluence = nil
	}
	return kept
}

// addCoefficientError adds diag G Cov(theta, b) G' to the variances of the answer, with G the
// derivative of the estimate by the coefficients. G depends on q(gamma), on gamma, on the weight of
// the members' own labels and on the number of labels around.
func (x *automatic) addCoefficientError(ans *answer, p *Posterior, weights weighting) {
	if p.Coefficients == nil {
		return
	}
	r, a := x.reading, ans.auto
	at := append(slices.Clone(r.tempered), r.gamma, a.ownWeight,
		math.Log(p.Residuals.effective(weights)),
		math.Log(trace(p.Coefficients, p.Shared+len(p.Prior))), float64(p.Version))
	a.CoefficientError = p.keptFor(at, ans.v)
	if a.ErrorAt == nil {
		a.CoefficientError = x.errorOf(a, p, at, weights)
	}
	axpy(ans.v, 1, a.ErrorVariance)
	ans.influence = slices.Clone(a.ErrorInfluence)
}

// respond writes the responsibility R of a vertex with the posterior pi to r.
func respond(r, pi, factor []float64) {
	floats.MulTo(r, pi, factor)
	scaleTo(r, 1/sum(r), r)
}

// addSlope adds weight times the derivative of the distribution p by the coefficients
// to dst, K x (Shared + K): for p_i proportional to exp(sum_j theta_j x_ji + b_i),
//
//	dp_i/dtheta_j = p_i (x_ji - sum_k p_k x_jk),   dp_i/db_l = p_i ([i = l] - p_l).
func addSlope(dst []float64, weight float64, p, views []float64) {
	k := len(p)
	shared := len(views) / k
	size := shared + k
	for j := range shared {
		x := views[j*k : (j+1)*k]
		mean := floats.Dot(p, x)
		for i, q := range p {
			dst[i*size+j] += weight * q * (x[i] - mean)
		}
	}
	for i, q := range p {
		row := dst[i*size+shared : (i+1)*size]
		axpy(row, -weight*q, p)
		row[i] += weight * q
	}
}

// errorOf returns the error that the coefficients make in the shares.
func (x *automatic) errorOf(
	a *autoAnswer, p *Posterior, at []float64, weights weighting,
) CoefficientError {
	g, k := x.cells.byCoefficients(p, x.reading), len(p.Prior)
	e := CoefficientError{
		ErrorAt: at, ErrorVariance: make([]float64, k),
		ErrorInfluence: influence(k, p.Coefficients, g),
	}
	p.addPriorError(e.ErrorVariance, g)
	labels := p.Labels()
	p.Residuals.addSlope(g, (x.reading.gamma-1)*(1-a.ownWeight), weights, labels)
	if p.Own != nil {
		p.Own.addSlope(g, (x.reading.gamma-1)*a.ownWeight, constantWeights, labels)
	}
	addForms(e.ErrorVariance, 1, g, p.Coefficients)
	x.addSpread(e.ErrorVariance, p, labels)
	return e
}

// addPriorError adds to noise the variances that the error of Prior makes in the shares: it
// multiplies all posteriors, as an error of the intercepts does. g is the derivative of the shares
// by the coefficients, K x (Shared + K).
func (p *Posterior) addPriorError(noise, g []float64) {
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
	addForms(noise, 1, intercepts, relative)
}

// LabelSample is some calibration labels of each class, with sums over all.
type LabelSample struct {
	mass, squares []float64 // K: sums over all labels of their weights g and of g²
	class         []int
	weight        []float64
	pi            []float64 // n x K
	score         []float64 // n x (shared + K): derivative of log pi_y by the coefficients
	// by class, K x (shared + K): sum of g times the derivative of pi over all labels, from those
	// drawn
	slopes [][]float64
}

// NewLabelSample returns the sample of no label of K classes.
func NewLabelSample(k int) *LabelSample {
	return &LabelSample{
		mass:    make([]float64, k),
		squares: make([]float64, k),
		slopes:  make([][]float64, k),
	}
}

// Count counts a label that may or may not be drawn.
func (l *LabelSample) Count(class int, g float64) {
	l.mass[class], l.squares[class] = l.mass[class]+g, l.squares[class]+g*g
}

// Draw adds a label that was counted, whose weight is positive, and that stands for so many like
// it.
func (l *LabelSample) Draw(class int, g, labels float64, pi, views []float64) {
	if l.slopes[class] == nil {
		l.slopes[class] = make([]float64, len(views)+len(pi)*len(pi))
	}
	addSlope(l.slopes[class], labels*g, pi, views)
	l.class, l.weight, l.pi = append(l.class, class), append(l.weight, g), append(l.pi, pi...)
	for k := len(pi); len(views) > 0; views = views[k:] {
		l.score = append(l.score, views[class]-floats.Dot(pi, views[:k]))
	}
	for i, x := range pi {
		l.score = append(l.score, delta(i, class)-x)
	}
}

// addSpread adds to the error of the coefficients what labels leave open besides. The members of a
// class have the mean responsibility that the posteriors promise as far as the labels of the class
// say, R under the factors of the estimate:
//
//	diag J⁺ B J⁺',   B = sum_c q_c² Cov_c(R)/n_c - X' Cov(theta, b) X,
//	X = sum_c q_c Cov_c(g s, R)
//
// with Cov_c over the labels of class c, n_c their effective number, g their weights and s their
// scores. With these go the coefficients, so that of the first sum is left what no score shows. It
// grows with the distance from the shares of the labels, for which R is pi, whose mean the fit
// makes right.
func (x *automatic) addSpread(noise []float64, p *Posterior, l *LabelSample) {
	k, factor, tempered := len(p.Prior), x.cells.factor, x.reading.tempered
	x.rows = append(x.rows[:0], l.pi...)
	size, labels, r := p.Shared+k, len(l.class), x.rows
	means, mass, squares := make([]float64, k*k), make([]float64, k), make([]float64, k)
	for n, c := range l.class {
		row, g := r[n*k:(n+1)*k], l.weight[n]
		respond(row, row, factor)
		axpy(means[c*k:(c+1)*k], g, row)
		mass[c], squares[c] = mass[c]+g, squares[c]+g*g
	}
	parts, squared := make([]float64, labels), make([]float64, labels)
	for n, c := range l.class {
		off := r[n*k : (n+1)*k]
		axpy(off, -1/mass[c], means[c*k:(c+1)*k])
		scaleTo(off, math.Sqrt(smallSample(mass[c]*mass[c]/squares[c])), off)
		parts[n] = tempered[c] * l.weight[n] * l.weight[n] / squares[c] * l.squares[c] / l.mass[c]
		squared[n] = parts[n] * tempered[c] / l.mass[c]
	}
	b, moved := make([]float64, k*k), make([]float64, k*size)
	addOuters(b, squared, r, k)
	for n, part := range parts {
		scaleTo(r[n*k:(n+1)*k], part, r[n*k:(n+1)*k])
	}
	blas64.Gemm(
		blas.Trans,
		blas.NoTrans,
		1,
		general(r, labels, k),
		general(l.score, labels, size),
		0,
		general(moved, k, size),
	)
	mirror(b, b, k)
	left := make([]float64, k)
	addForms(left, 1, x.reading.inverse, b)
	addForms(left, -1, product(x.reading.inverse, moved, k), p.Coefficients)
	for i, v := range left {
		noise[i] += max(v, 0)
	}
}
