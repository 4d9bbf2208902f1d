package auto

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// setResidual sets d and its variances. d is the weighted mean residual of the labels around a
// community: the error of the posteriors that the place has in common. The community may differ
// from its surroundings. If some members have labels, o, the mean residual of these, measures that.
// Both are mixed by inverse variance. Their distance beyond the noise of both counts as bias of d
// (cf. combine; clustered labels do not stand for the members):
//
//	b² = max(0, |o - d|² - v_d - v_o),
//	weight of o = (gate of the labels) (v_d + b²) / (v_d + b² + v_o),
//
// with v the variance of a residual among all labels over the effective number of labels in d or o;
// v_d is twice that, since d is of the surroundings. The members' labels are also in d, so the
// covariance of o and d is the variance of d. b² is at least the variance of the mean residual
// between communities, an error that a community without labels has in full; see Between.
func (a *estimate) setResidual(p *stats.Posterior, labels float64, weights stats.Weighting) {
	k := len(p.Prior)
	d, scatter := make([]float64, k), make([]float64, k)
	a.residual, a.variance = d, make([]float64, k)
	everywhere := p.Residuals.Effective(stats.ConstantWeights)
	p.Residuals.Mean(d, stats.ConstantWeights)
	p.Residuals.Variance(a.variance, d, stats.ConstantWeights)
	solve.ScaleTo(scatter, everywhere*stats.SmallSample(everywhere), a.variance)
	p.Residuals.Mean(d, weights)
	residualNoise(p, p.Residuals, a.variance, scatter, d, labels, weights)
	if p.Own != nil {
		a.mixOwn(p, scatter, labels, weights)
	} else if p.Between != nil {
		solve.Axpy(a.variance, 1, p.Between)
	}
}

// mixOwn mixes the mean residual of the members' own labels into d; scatter are the variances of a
// residual among all labels.
func (a *estimate) mixOwn(
	p *stats.Posterior, scatter []float64, labels float64, weights stats.Weighting,
) {
	k := len(scatter)
	apart, noise := make([]float64, k), make([]float64, k)
	p.Own.Mean(apart, stats.ConstantWeights)
	residualNoise(p, p.Own, noise, scatter, apart, labels, stats.ConstantWeights)
	solve.Axpy(apart, -1, a.residual)
	squared := floats.Dot(apart, apart)
	around := 2 * solve.Sum(scatter) / p.Residuals.Effective(weights)
	own := solve.Sum(scatter) / p.Own.Effective(stats.ConstantWeights)
	bias, between := max(0, squared-around-own), solve.Sum(p.Between)
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
	solve.Axpy(a.residual, a.ownWeight, apart)
}

// residualNoise writes to dst the variances of d, the mean of the residuals r. C is their estimate
// from the weighted residuals of n effective labels, sum (w/sum w)² (r - d)². S = all has the
// variances of a residual among all labels with equal weights. Then dst is
//
//	(n² C + (K + 1) S)/(n + K) / n.
//
// Near a community there may be one label or two, which agree by chance: their spread
// has n - 1 degrees of freedom and says nothing at n = 1. Therefore S stands in with K + 1
// degrees: with fewer, the covariance of K shares that sum to one has no mean (inverse Wishart).
// The posteriors were fitted on the same labels, and the penalised fit takes tr(1 - Cov) degrees,
// with the penalty 1. The variances are scaled up for that. If labels are few the fit takes a large
// part of the degrees; no more than half of the labels count as taken.
func residualNoise(
	p *stats.Posterior, r *stats.Residuals, dst, all, d []float64,
	labels float64, w stats.Weighting,
) {
	k, n := len(d), r.Effective(w)
	r.Variance(dst, d, w)
	solve.ScaleTo(dst, n*n, dst)
	solve.Axpy(dst, float64(k+1), all)
	scale := 1 / (n * (n + float64(k)))
	if size := p.Shared + k; p.Coefficients != nil {
		fitted := float64(size) - solve.Trace(p.Coefficients, size)
		scale *= labels / max(labels-fitted, labels/2)
	}
	solve.ScaleTo(dst, scale, dst)
}
