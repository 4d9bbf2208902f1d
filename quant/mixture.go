package quant

import "math"

// lambdaGrid are the lambdas that ml averages over, as far as the labels last;
// the largest lambda they support joins them.
var lambdaGrid = [...]float64{0, .1, .25, .5, .75, .9}

const (
	// mixtureFloor is the smallest share of the labels that may remain effective at
	// the largest lambda of ml.
	mixtureFloor = 0.1
	// autoFloor is the same for LambdaAuto, where no average tempers the choice.
	autoFloor = 0.3
)

// lambdas writes the grid up to limit, and limit itself, to dst.
func lambdas(dst []float64, limit float64) []float64 {
	dst = dst[:0]
	for _, l := range lambdaGrid {
		if l < limit || l == 0 {
			dst = append(dst, l)
		}
	}
	if limit > 0 {
		dst = append(dst, limit)
	}
	return dst
}

// mixture fills ans with ml: the maximum-likelihood answer of every lambda,
// averaged with weights proportional to its likelihood,
//
//	q = sum r_l q_l,   V = sum r_l (V_l + (q_l - q)(q_l - q)').
func (w *Solver) mixture(ans *answer, s *Statistics, r recipe, at reach) {
	var memory [len(lambdaGrid) + 1]float64
	var shares [len(lambdaGrid) + 1]float64
	list := lambdas(memory[:0], at.lambdaMax(mixtureFloor))
	best := math.Inf(-1)
	var start []float64
	for i, l := range list {
		one := &w.grid[i]
		w.adjusted(one, s, r, at.weigh(Density, l, s.KernelSum), start)
		start = one.q
		best = max(best, one.logLikelihood)
	}
	var total float64
	for i := range list {
		shares[i] = math.Exp(w.grid[i].logLikelihood - best)
		total += shares[i]
	}
	ans.reset(s.K)
	for i := range list {
		shares[i] /= total
		ans.blend(shares[i], &w.grid[i])
		ans.logLikelihood += shares[i] * w.grid[i].logLikelihood
	}
	for i := range list {
		w.apart(ans, shares[i], &w.grid[i])
	}
}

// apart adds share (q_l - q)(q_l - q)' to the covariance of ans.
func (w *Solver) apart(ans *answer, share float64, one *answer) {
	for a, x := range one.q {
		for b, y := range one.q {
			ans.v[a*ans.k+b] += share * (x - ans.q[a]) * (y - ans.q[b])
		}
	}
}

// automatic fills ans with the average of ml, which it holds on entry, and diff,
// weighted by the inverse of their total variances. The allowance keeps a matrix
// that cannot tell the classes apart, and so has a large variance, from answering
// 0 or 1.
//
// Both answers come from the same labels and members, so their errors may go
// together: the variance is the largest that any correlation allows, plus the
// disagreement between them, as in ml.
func (w *Solver) automatic(ans, diff *answer) {
	k := ans.k
	const allowance = biasAllowance * biasAllowance
	spread := diff.spread() + allowance*float64(k-1)
	share := 1.0
	if total := ans.spread() + spread; total > 0 {
		share = spread / total
	}
	w.y, w.hs = resize(w.y, k), resize(w.hs, k)
	bound, apart := w.y, w.hs
	for a := range k {
		i := a*k + a
		biased := diff.v[i] + allowance*(1-1/float64(k))
		deviation := share*math.Sqrt(max(ans.v[i], 0)) + (1-share)*math.Sqrt(max(biased, 0))
		bound[a] = deviation * deviation
		apart[a] = ans.q[a] - diff.q[a]
	}
	scaleTo(ans.v, share, ans.v)
	axpy(ans.v, 1-share, diff.v)
	for a := range k {
		for b := range k {
			ans.v[a*k+b] -= (1 - share) * allowance / float64(k)
		}
		ans.v[a*k+a] += (1 - share) * allowance
	}
	rescaleVariances(ans.v, bound)
	for a := range k {
		axpy(ans.v[a*k:(a+1)*k], share*(1-share)*apart[a], apart)
		member := share*math.Sqrt(ans.member[a]) + (1-share)*math.Sqrt(diff.member[a])
		ans.member[a] = member * member
		ans.q[a] = share*ans.q[a] + (1-share)*diff.q[a]
		ans.free[a] = share*ans.free[a] + (1-share)*diff.free[a]
	}
	scaleTo(ans.class, share*share, ans.class)
	for i, v := range diff.label {
		label := share*math.Sqrt(max(ans.label[i], 0)) + (1-share)*math.Sqrt(max(v, 0))
		ans.label[i] = label * label
	}
	ProjectSimplex(ans.q, ans.q)
	ans.share = share
	ans.exact = ans.exact && diff.exact
}

// rescaleVariances gives the covariance v the variances in target and leaves its
// correlations alone.
func rescaleVariances(v, target []float64) {
	k := len(target)
	for a := range k {
		ratio := 0.0
		if x := v[a*k+a]; x > 0 {
			ratio = math.Sqrt(target[a] / x)
		}
		for b := range k {
			v[a*k+b] *= ratio
			v[b*k+a] *= ratio
		}
	}
}
