package quant

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// Kept is the error that the coefficients of the posterior make in an estimate of auto. It may have been computed for an
// earlier estimate, and for earlier coefficients; see Posterior.Last.
type Kept struct {
	KeptAt        []float64 // K + 5: where: see coefficientNoise
	KeptNoise     []float64 // K: variances
	KeptInfluence []float64 // see Estimate.Influence; nil where it was computed for earlier coefficients
	KeptTurned    float64   // members that joined or left since, as in Turnover
}

const (
	// slopeMembersMax bounds the members whose derivatives by the coefficients are
	// computed; of more, every n-th is.
	slopeMembersMax = 256
	// keptFar is how far, in sum, an estimate may be from where its error of the coefficients was computed, and
	// keptFarAll how far where that is all of the variance of a class, in proportion. It moves standard errors by
	// about a hundredth in 98 of 100. Coefficients that were fitted anew are keptEpoch further.
	keptFar, keptFarAll, keptEpoch = 0.5, 0.01, 0.4
	// keptTurned is the share of the members that may be others than they were then.
	keptTurned = 0.1
)

// keptFor returns the error of the coefficients that the last estimate had, if it still does beside this other
// variance, where the members' squared multiplicities have this sum, else nothing.
func (p *Posterior) keptFor(at []float64, squares float64, others []float64) (kept Kept) {
	if p.Last == nil || p.Turnover.Reset || len(p.Last.KeptAt) != len(at) {
		return Kept{}
	}
	kept = p.Last.Kept
	kept.KeptTurned += p.Turnover.Joined + p.Turnover.Left
	fits := len(at) - 1 // where the version of the coefficients is
	far := floats.Distance(at[:fits], kept.KeptAt[:fits], 1)
	if kept.KeptTurned > 2*keptTurned*squares || far > keptFar {
		return Kept{}
	}
	far += keptEpoch * (at[fits] - kept.KeptAt[fits])
	for i, v := range kept.KeptNoise {
		if far*v > keptFarAll*(v+others[i]) {
			return Kept{}
		}
	}
	if p.Last.Posterior != uint64(p.Version) {
		kept.KeptInfluence = nil // errors of these and of other coefficients have nothing in common
	}
	return kept
}

// coefficientNoise adds diag G Cov(theta, b) G' to the variances of the answer, as the last estimate had it if that still does:
// G hangs on q(gamma), on gamma, on the weight of the members' own labels, on how many
// labels there are around, and on the coefficients themselves, whose covariance falls as labels come.
func (x *automatic) coefficientNoise(p *Posterior, weights weighting) {
	if p.Coefficients == nil {
		return
	}
	x.at = append(append(x.at[:0], x.Tempered...), x.Gamma, x.weight, math.Log(p.Residuals.effective(weights)),
		math.Log(trace(p.Coefficients, p.Shared+len(p.Prior))), float64(p.Version))
	x.Kept = p.keptFor(x.at, x.reading.squares, x.v)
	if x.KeptAt == nil {
		x.Kept = x.errorOf(p, weights)
	}
	axpy(x.v, 1, x.KeptNoise)
	x.influence = slices.Clone(x.KeptInfluence)
}

// byCoefficients returns K x (Shared + K) the derivative of q(gamma) by the coefficients. That of a mean over the
// members is that of every n-th of them.
func (x *automatic) byCoefficients(p *Posterior, factor []float64) []float64 {
	k := len(factor)
	size := p.Shared + k
	moved, views := make([]float64, k*size), make([]float64, p.Shared*k)
	weight, r := 0.0, make([]float64, k)
	step, l := (int(p.Distinct)-1)/slopeMembersMax+1, 0
	p.Members(func(vertex uint32, m float64, pi []float64) {
		if l++; (l-1)%step == 0 {
			p.Views(views, vertex)
			respond(r, pi, factor)
			addSlope(moved, m, r, views)
			weight += m
		}
	})
	scaleTo(moved, 1/weight, moved)
	return product(x.Inverse, moved, k)
}

// respond writes the responsibility R of a member to r.
func respond(r, pi, factor []float64) {
	floats.MulTo(r, pi, factor)
	scaleTo(r, 1/sum(r), r)
}

// errorOf returns the error that the coefficients make in the shares.
func (x *automatic) errorOf(p *Posterior, weights weighting) Kept {
	g, k := x.byCoefficients(p, x.reading.Factors[1]), len(p.Prior)
	kept := Kept{KeptAt: slices.Clone(x.at), KeptNoise: make([]float64, k), KeptInfluence: influence(k, p.Coefficients, g)}
	p.Residuals.slope(g, (x.Gamma-1)*(1-x.weight), weights)
	if p.Own != nil {
		p.Own.slope(g, (x.Gamma-1)*x.weight, constantWeights)
	}
	addForms(kept.KeptNoise, 1, g, p.Coefficients)
	if p.Labels != nil {
		x.addSpread(kept.KeptNoise, p)
	}
	return kept
}

// LabelSample is some calibration labels of each class, with sums over all.
type LabelSample struct {
	mass, squares []float64 // K: sums over all labels of their weights g and of g²
	class         []int
	weight        []float64
	pi            []float64   // n x K
	score         []float64   // n x (shared + K): derivative of log pi_y by the coefficients
	slopes        [][]float64 // by class, K x (shared + K): sum of g times the derivative of pi over all labels, from those drawn
}

// NewLabelSample returns the sample of no label of K classes.
func NewLabelSample(k int) *LabelSample {
	return &LabelSample{mass: make([]float64, k), squares: make([]float64, k), slopes: make([][]float64, k)}
}

// Count counts a label that may or may not be drawn.
func (l *LabelSample) Count(class int, g float64) {
	l.mass[class], l.squares[class] = l.mass[class]+g, l.squares[class]+g*g
}

// Draw adds a label that was counted, whose weight is positive, and that stands for so many like it.
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

// addSpread adds to the error of the coefficients what labels leave open besides. The members of a class have the mean
// responsibility that the posteriors promise as far as the labels of the class say, R under the factors of the estimate:
//
//	diag J⁺ B J⁺',   B = sum_c q_c² Cov_c(R)/n_c - X' Cov(theta, b) X,   X = sum_c q_c Cov_c(g s, R)
//
// with Cov_c over the labels of class c, n_c their effective number, g their weights and s their scores. With
// these go the coefficients, so that of the first sum is left what no score shows. It grows with the
// distance from the shares of the labels, for which R is pi, whose mean the fit makes right.
func (x *automatic) addSpread(noise []float64, p *Posterior) {
	l, k := p.Labels(), len(p.Prior)
	x.rows = append(x.rows[:0], l.pi...)
	size, labels, r := p.Shared+k, len(l.class), x.rows
	means, mass, squares := make([]float64, k*k), make([]float64, k), make([]float64, k)
	for n, c := range l.class {
		row, g := r[n*k:(n+1)*k], l.weight[n]
		respond(row, row, x.reading.Factors[1])
		axpy(means[c*k:(c+1)*k], g, row)
		mass[c], squares[c] = mass[c]+g, squares[c]+g*g
	}
	parts, squared := make([]float64, labels), make([]float64, labels)
	for n, c := range l.class {
		off := r[n*k : (n+1)*k]
		axpy(off, -1/mass[c], means[c*k:(c+1)*k])
		scaleTo(off, math.Sqrt(smallSample(mass[c]*mass[c]/squares[c])), off)
		parts[n] = x.Tempered[c] * l.weight[n] * l.weight[n] / squares[c] * l.squares[c] / l.mass[c]
		squared[n] = parts[n] * x.Tempered[c] / l.mass[c]
	}
	b, moved := make([]float64, k*k), make([]float64, k*size)
	addOuters(b, squared, r, k)
	for n, part := range parts {
		scaleTo(r[n*k:(n+1)*k], part, r[n*k:(n+1)*k])
	}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, general(r, labels, k), general(l.score, labels, size), 0, general(moved, k, size))
	mirror(b, b, k)
	left := make([]float64, k)
	addForms(left, 1, x.Inverse, b)
	addForms(left, -1, product(x.Inverse, moved, k), p.Coefficients)
	for i, v := range left {
		noise[i] += max(v, 0)
	}
}
