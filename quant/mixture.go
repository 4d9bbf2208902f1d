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
	for i, l := range list {
		one := &w.grid[i]
		w.adjusted(one, s, r, at.weigh(Density, l, s.KernelSum), w.guess(list, i))
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

// guess returns where the likelihood of the i-th lambda is likely to have its maximum,
// or nil for no guess: on the polynomial in lambda through the last maxima, three of
// them at most.
func (w *Solver) guess(list []float64, i int) []float64 {
	if i == 0 {
		return nil
	}
	first := max(0, i-3)
	w.y = zeroed(w.y, len(w.grid[0].q))
	for j := first; j < i; j++ {
		weight := 1.0 // Lagrange's
		for l := first; l < i; l++ {
			if l != j {
				weight *= (list[i] - list[l]) / (list[j] - list[l])
			}
		}
		axpy(w.y, weight, w.grid[j].q)
	}
	return w.y
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
// The variance is that of two independent errors, the bias of diff under prior
// shift among them, plus the disagreement between the answers, as in ml. Members
// and labels that both read go together, but the noise of the members is bounded
// from above already (see memberNoise): measured, the sum is right.
func (w *Solver) automatic(ans, diff *answer) {
	k := ans.k
	const allowance = biasAllowance * biasAllowance
	spread := diff.spread() + allowance*float64(k-1)
	share := 1.0
	if total := ans.spread() + spread; total > 0 {
		share = spread / total
	}
	w.addBias(diff)
	w.y = resize(w.y, k)
	apart := w.y
	for a := range k {
		apart[a] = ans.q[a] - diff.q[a]
	}
	scaleTo(ans.v, share*share, ans.v)
	axpy(ans.v, (1-share)*(1-share), diff.v)
	scaleTo(ans.class, share*share, ans.class)
	scaleTo(ans.label, share*share, ans.label)
	axpy(ans.label, (1-share)*(1-share), diff.label)
	for a := range k {
		axpy(ans.v[a*k:(a+1)*k], share*(1-share)*apart[a], apart)
		ans.member[a] = share*share*ans.member[a] + (1-share)*(1-share)*diff.member[a]
		ans.q[a] = share*ans.q[a] + (1-share)*diff.q[a]
		ans.free[a] = share*ans.free[a] + (1-share)*diff.free[a]
	}
	ProjectSimplex(ans.q, ans.q)
	ans.share = share
	ans.exact = ans.exact && diff.exact
}

// addBias adds the bias that diff may have to its covariance. Under prior shift by
// s it is -(I - M) s, with M the mean prediction by class in w.soft; s has the
// covariance priorSpread (diag pi - pi pi') around the weighted shares pi of the
// classes. A floor in every direction that sums to zero joins it.
func (w *Solver) addBias(diff *answer) {
	m, k := &w.soft, diff.k
	if m.k == 0 {
		return
	}
	const floor = biasFloor * biasFloor
	total := sum(m.mass[:m.k])
	w.y, w.hs = resize(w.y, k), zeroed(w.hs, k)
	w.local = zeroed(w.local, k*k)
	for a, i := range m.class {
		scaleTo(w.y, -1, m.column(a))
		w.y[i]++
		addOuter(w.local, m.mass[a]/total, w.y)
		axpy(w.hs, m.mass[a]/total, w.y)
	}
	addOuter(w.local, -1, w.hs)
	for a := range k {
		for b := range k {
			bias := priorSpread * w.local[max(a, b)*k+min(a, b)]
			diff.v[a*k+b] += bias + floor*(delta(a, b)-1/float64(k))
		}
	}
}
