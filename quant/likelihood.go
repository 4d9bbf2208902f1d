package quant

import (
	"math"
	"slices"
)

const (
	// smoothing is added to every entry of C before a likelihood is taken, so that
	// a cell no label has seen costs a lot instead of everything.
	smoothing = 1e-9
	// gapTolerance bounds how far the log-likelihood per member may stay below its maximum.
	gapTolerance = 1e-10
	// newtonRoundsMax bounds the Newton rounds, 5 on average and 37 at most in 50,000
	// random problems; when it is hit the gap returned says what is left.
	newtonRoundsMax = 100
	// turnMax bounds how steeply the likelihood may fall at the end of a Newton step, as a share of how it rose at
	// the start, else the step is halved, at most halvingsMax times.
	turnMax     = 0.5
	halvingsMax = 40
	// valueNoise is the rounding of a slope.
	valueNoise = 1e-14
)

// fitter finds the shares that a confusion matrix says, by least squares or likelihood.
type fitter struct {
	qp                quadratic
	fit, ratio, curve []float64 // z: Cq, p/(Cq), weights
	last, step        []float64 // k: start of a Newton step, gradient and target
}

// likelihood maximises from the start in w.qp.q, whose entries need not sum to one, and leaves the
// shares there. A start that is near takes no step of expectation maximisation first.
func (w *fitter) likelihood(m *confusion, p []float64, near bool) (logLikelihood, gap float64) {
	q := &w.qp
	w.fit, w.ratio, w.curve = resize(w.fit, m.z), resize(w.ratio, m.z), resize(w.curve, m.z)
	w.last, w.step = resize(w.last, m.k), resize(w.step, m.k)
	scaleTo(q.q, 1/sum(q.q), q.q)
	gap = w.gradient(m, p)
	if !near {
		gap = w.expectation(m, p)
	}
	for range newtonRoundsMax {
		if !(gap > gapTolerance) {
			break
		}
		ok := false
		if gap, ok = w.newton(m, p); !ok {
			break
		}
	}
	return w.value(p), gap
}

// value returns sum p log Cq, with Cq in w.fit.
func (w *fitter) value(p []float64) (v float64) {
	for z, x := range p {
		if x > 0 {
			v += x * math.Log(w.fit[z])
		}
	}
	return v
}

// gradient sets w.fit to Cq, w.ratio to p/(Cq), w.qp.r to its product with C', and
// returns the duality gap at q.
func (w *fitter) gradient(m *confusion, p []float64) (gap float64) {
	m.mix(w.fit, w.qp.q)
	for z, x := range p {
		w.ratio[z] = x / w.fit[z]
	}
	products(w.qp.r, m.c, w.ratio)
	return slices.Max(w.qp.r) - dot(w.qp.q, w.qp.r)
}

// expectation takes one step of expectation maximisation, q_i <- q_i (C'p/(Cq))_i,
// which never lowers the likelihood, and returns the duality gap there. The gradient
// is current, before and after.
func (w *fitter) expectation(m *confusion, p []float64) (gap float64) {
	for a := range m.k {
		w.qp.q[a] *= w.qp.r[a]
	}
	scaleTo(w.qp.q, 1/sum(w.qp.q), w.qp.q)
	return w.gradient(m, p)
}

// newton minimises the quadratic model at q over the simplex, moves there as far as the likelihood
// rises enough, and returns the duality gap there. It reports false, with q as it was, when no step
// does. w.fit, w.ratio and the gradient in w.qp.r are current, before and after.
func (w *fitter) newton(m *confusion, p []float64) (gap float64, ok bool) {
	q := &w.qp
	for z := range w.curve {
		w.curve[z] = w.ratio[z] / w.fit[z]
	}
	gram(q.g, m, w.curve)
	for a := range m.k { // per class, because cells of tiny probability dwarf the others
		q.g[a*m.k+a] *= 1 + ridgeShare
	}
	for a := range m.k {
		q.b[a] = q.r[a] + dot(q.g[a*m.k:(a+1)*m.k], q.q)
	}
	copy(w.last, q.q)
	copy(w.step, q.r) // the solver reuses q.r
	q.solve()
	level := dot(w.last, w.step) // the part of the gradient that the sum constraint takes
	var gain float64
	for a := range m.k {
		gain += (w.step[a] - level) * (q.q[a] - w.last[a])
	}
	if !(gain > 0) {
		return w.restore(m, p), false
	}
	copy(w.step, q.q)
	return w.search(m, p, gain)
}

// search moves from w.last to w.step, or half as far and so on, until the slope of the likelihood in the direction
// of the move, which the model promised to be nothing there, is no longer as steep downwards as it was upwards at the start. The
// likelihood is concave, so that it has one top on the way.
func (w *fitter) search(m *confusion, p []float64, gain float64) (gap float64, ok bool) {
	q := &w.qp
	for t, i := 1.0, 0; i < halvingsMax; t, i = t/2, i+1 {
		var slope float64
		for a := range m.k {
			q.q[a] = w.last[a] + t*(w.step[a]-w.last[a])
		}
		gap = w.gradient(m, p)
		for a, x := range q.r[:m.k] {
			slope += x * (w.step[a] - w.last[a])
		}
		if slope >= -turnMax*gain-valueNoise {
			return gap, true
		}
	}
	return w.restore(m, p), false
}

// restore puts q back where the Newton step started, and returns the gap there.
func (w *fitter) restore(m *confusion, p []float64) float64 {
	copy(w.qp.q, w.last)
	return w.gradient(m, p)
}
