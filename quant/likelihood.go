package quant

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	// gapTolerance bounds how far the log-likelihood of a unit of weight may stay below its
	// maximum.
	gapTolerance = 1e-11
	// newtonRoundsMax bounds the Newton rounds, some 5 on average; when it is hit the gap returned
	// says what is left.
	newtonRoundsMax = 100
	// turnMax bounds how steeply the likelihood may fall at the end of a Newton step, as a share of
	// how it rose at the start, else the step is halved, at most halvingsMax times.
	turnMax     = 0.5
	halvingsMax = 40
	// valueNoise is the rounding of a slope.
	valueNoise = 1e-14
	// slowProgress is the part of the gap that a round may leave when the second derivatives are
	// those of some rows.
	slowProgress = 0.2
)

// mixture is weighted rows of K numbers x, the cells of a confusion matrix or the members of a
// community, whose log-likelihood under shares q is
//
//	sum m log(sum_i x_i f_i) / sum m,   f_i = (q_i/prior_i)^gamma.
//
// Its maximum on the simplex is the fixed point of q = mean of R, R_i proportional to x_i f_i: for
// gamma 1 the shares of largest likelihood under prior shift (Saerens, Latinne and Decaestecker,
// 2002).
type mixture struct {
	k   int
	m   []float64 // n: weights
	x   []float64 // n x K
	all float64   // sum of the weights

	factor  []float64 // K: f
	inverse []float64 // n: 1 over sum_i x_i f_i
	weights []float64 // n: scratch

	qp       *quadratic
	rate     []float64 // K: f_i/q_i
	gradient []float64 // K: mean of R over q, less 1, which is its mean under q
	second   []float64 // K x K: the mean of R_i R_j over q_i q_j
	from, to []float64 // K: of a Newton step
}

// clear forgets all rows, for others of k numbers.
func (u *mixture) clear(k int) {
	u.k, u.m, u.x, u.all, u.factor = k, u.m[:0], u.x[:0], 0, make([]float64, k)
}

// add adds a row.
func (u *mixture) add(m float64, x []float64) {
	u.m, u.x = append(u.m, m), append(u.x, x...)
	u.all += m
}

// factors writes f to dst, and returns it.
func factors(dst, q, prior []float64, gamma float64) []float64 {
	for i, x := range q {
		dst[i] = math.Pow(x/prior[i], gamma) // exact where gamma is 0 or 1
	}
	return dst
}

// temper sets the factors, and the inverses with them.
func (u *mixture) temper(q, prior []float64, gamma float64) {
	factors(u.factor, q, prior, gamma)
	u.inverse = append(u.inverse[:0], u.m...)
	products(u.inverse, u.x, u.factor)
	for l, x := range u.inverse {
		u.inverse[l] = 1 / x
	}
}

// logLikelihood returns sum m log(sum_i x_i f_i).
func (u *mixture) logLikelihood() (value float64) {
	for l, m := range u.m {
		value -= m * math.Log(u.inverse[l])
	}
	return value
}

// sums writes the sum of weights times y to dst, for y_i = x_i factor_i over sum_i x_i f_i: R with
// the factors of temper.
func (u *mixture) sums(dst, weights, factor []float64) {
	u.weights = append(u.weights[:0], weights...)
	floats.Mul(u.weights, u.inverse)
	combine(dst, u.weights, u.x)
	floats.Mul(dst, factor)
}

// outers writes the sum of weights times y y' to s.
func (u *mixture) outers(s, weights, factor []float64) {
	u.weights = append(u.weights[:0], weights...)
	floats.Mul(u.weights, u.inverse)
	floats.Mul(u.weights, u.inverse)
	clear(s)
	addOuters(s, u.weights, u.x, u.k)
	for i, f := range factor {
		for j, g := range factor[:i+1] {
			s[i*u.k+j] *= f * g
		}
	}
	mirror(s, s, u.k)
}

// maximise moves q to where the likelihood is largest on the simplex, but for shares below least,
// and returns the duality gap there. The second derivatives are those of some rows at the start,
// and of all once a round leaves too much of the gap. Sequential quadratic programming (Kim,
// Carbonetto, Stephens and Anitescu, 2020).
func (u *mixture) maximise(
	q, prior []float64,
	gamma, least, tolerance float64,
	some *mixture,
) (gap float64) {
	if one := func() []float64 { return make([]float64, u.k) }; u.qp == nil || u.qp.n != u.k {
		u.qp = newQuadratic(u.k)
		u.second = make([]float64, u.k*u.k)
		u.rate = one()
		u.gradient = one()
		u.from = one()
		u.to = one()
	}
	gap = u.slope(q, prior, gamma)
	if some != u && gap > tolerance {
		some.temper(q, prior, gamma)
	}
	for range newtonRoundsMax {
		if !(gap > tolerance) {
			break
		}
		if some != nil {
			some.outers(u.second, some.m, u.rate)
			scaleTo(u.second, 1/some.all, u.second)
		}
		before, moved := gap, false
		gap, moved = u.newton(q, prior, gamma, least)
		switch slow := !moved || gap > slowProgress*before; {
		case slow && some == u && !moved:
			return gap
		case slow:
			some = u
		default:
			some = nil
		}
	}
	return gap
}

// slope sets the gradient at q, and returns the duality gap there.

func (u *mixture) slope(q, prior []float64, gamma float64) (gap float64) {
	u.temper(q, prior, gamma)
	for i, f := range u.factor {
		if u.rate[i] = 1 / prior[i]; gamma < 1 {
			u.rate[i] = f / q[i]
		}
	}
	u.sums(u.gradient, u.m, u.rate)
	scaleTo(u.gradient, 1/u.all, u.gradient)
	floats.AddConst(-floats.Dot(q, u.gradient), u.gradient)
	return slices.Max(u.gradient)
}

// newton moves q towards where the quadratic model there is largest, as far as the likelihood rises
// enough, and returns the duality gap. It reports false and leaves q unchanged when no step does.
// The gradient is current, before and after.
func (u *mixture) newton(q, prior []float64, gamma, least float64) (gap float64, moved bool) {
	k, model := u.k, u.qp
	for i, x := range q {
		row := model.g[i*k : (i+1)*k]
		scaleTo(row, gamma, u.second[i*k:(i+1)*k])
		row[i] *= 1 + ridgeShare // per class, because rows of tiny probability dwarf the others
		if gamma < 1 {
			row[i] += (1 - gamma) * (1 + u.gradient[i]) / x
		}
		model.b[i] = u.gradient[i] + floats.Dot(row, q)
		model.q[i] = x - least // those at their bound begin there
	}
	copy(u.from, q)
	model.solve()
	gain := 0.0
	for i, x := range model.q {
		u.to[i] = max(x, least)
	}
	scaleTo(u.to, 1/sum(u.to), u.to)
	for i, x := range u.gradient {
		gain += x * (u.to[i] - q[i])
	}
	if gain > 0 {
		if gap, moved = u.search(q, prior, gamma, gain); moved {
			return gap, true
		}
	}
	copy(q, u.from)
	return u.slope(q, prior, gamma), false
}

// search moves q from u.from to u.to, or half as far and so on, until the slope of the likelihood
// in the direction of the move, which the model promised to be nothing there, is no longer as steep
// downwards as it was upwards at the start. The likelihood is concave, so that it has one top on
// the way.
func (u *mixture) search(q, prior []float64, gamma, gain float64) (gap float64, ok bool) {
	for t, i := 1.0, 0; i < halvingsMax; t, i = t/2, i+1 {
		for a, x := range u.from {
			q[a] = x + t*(u.to[a]-x)
		}
		gap = u.slope(q, prior, gamma)
		slope := 0.0
		for a, x := range u.gradient {
			slope += x * (u.to[a] - u.from[a])
		}
		if slope >= -turnMax*gain-valueNoise {
			return gap, true
		}
	}
	return gap, false
}
