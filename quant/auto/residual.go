package auto

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

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
