package solve

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
	// is larger than asked for.
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
	// StartFloor keeps a start of a likelihood away from the bounds, where rows that only one class
	// explains would have nearly no probability.
	StartFloor = 1e-2
)

// Mixture is weighted rows of K numbers x, the cells of a confusion matrix or the members of a
// community. Their log-likelihood under shares q is
//
//	sum m log(sum_i x_i f_i) / sum m,   f_i = (q_i/prior_i)^gamma.
//
// Its maximum on the simplex is the fixed point of q = mean of R, R_i proportional to x_i f_i: for
// gamma 1 the shares of largest likelihood under prior shift (Saerens, Latinne and Decaestecker,
// 2002).
type Mixture struct {
	K   int
	M   []float64 // n: weights
	X   []float64 // n x K
	All float64   // sum of the weights

	Factor   []float64 // K: f
	Inverse  []float64 // n: 1 over sum_i x_i f_i
	Gradient []float64 // K: mean of R over q, less 1, which is its mean under q

	weights  []float64 // n: scratch
	qp       *Quadratic
	rate     []float64 // K: f_i/q_i
	second   []float64 // K x K: the mean of R_i R_j over q_i q_j
	from, to []float64 // K: of a Newton step
}

// Clear forgets all rows, for others of k numbers.
func (u *Mixture) Clear(k int) {
	u.K, u.M, u.X, u.All, u.Factor = k, u.M[:0], u.X[:0], 0, make([]float64, k)
}

// Add adds a row.
func (u *Mixture) Add(m float64, x []float64) {
	u.M, u.X = append(u.M, m), append(u.X, x...)
	u.All += m
}

// factors writes f to dst, and returns it.
func factors(dst, q, prior []float64, gamma float64) []float64 {
	for i, x := range q {
		dst[i] = math.Pow(x/prior[i], gamma) // exact where gamma is 0 or 1
	}
	return dst
}

// Temper sets the factors, and the inverses with them.
func (u *Mixture) Temper(q, prior []float64, gamma float64) {
	factors(u.Factor, q, prior, gamma)
	u.Inverse = append(u.Inverse[:0], u.M...)
	Products(u.Inverse, u.X, u.Factor)
	for l, x := range u.Inverse {
		u.Inverse[l] = 1 / x
	}
}

// LogLikelihood returns sum m log(sum_i x_i f_i).
func (u *Mixture) LogLikelihood() (value float64) {
	for l, m := range u.M {
		value -= m * math.Log(u.Inverse[l])
	}
	return value
}

// sums writes the sum of weights times y to dst, for y_i = x_i factor_i over sum_i x_i f_i: R with
// the factors of temper.
func (u *Mixture) sums(dst, weights, factor []float64) {
	u.weights = append(u.weights[:0], weights...)
	floats.Mul(u.weights, u.Inverse)
	Combine(dst, u.weights, u.X)
	floats.Mul(dst, factor)
}

// Outers writes the sum of weights times y y' to s.
func (u *Mixture) Outers(s, weights, factor []float64) {
	u.weights = append(u.weights[:0], weights...)
	floats.Mul(u.weights, u.Inverse)
	floats.Mul(u.weights, u.Inverse)
	clear(s)
	AddOuters(s, u.weights, u.X, u.K)
	for i, f := range factor {
		for j, g := range factor[:i+1] {
			s[i*u.K+j] *= f * g
		}
	}
	Mirror(s, s, u.K)
}

// Maximise moves q to where the likelihood is largest on the simplex, but for shares below least,
// and returns the duality gap there. The second derivatives are those of some rows at the start,
// and of all once a round leaves too much of the gap. Sequential quadratic programming (Kim,
// Carbonetto, Stephens and Anitescu, 2020).
func (u *Mixture) Maximise(
	q, prior []float64,
	gamma, least, tolerance float64,
	some *Mixture,
) (gap float64) {
	if one := func() []float64 { return make([]float64, u.K) }; u.qp == nil || u.qp.N != u.K {
		u.qp = newQuadratic(u.K)
		u.second = make([]float64, u.K*u.K)
		u.rate = one()
		u.Gradient = one()
		u.from = one()
		u.to = one()
	}
	gap = u.slope(q, prior, gamma)
	if some != u && gap > tolerance {
		some.Temper(q, prior, gamma)
	}
	for range newtonRoundsMax {
		if !(gap > tolerance) {
			break
		}
		if some != nil {
			some.Outers(u.second, some.M, u.rate)
			ScaleTo(u.second, 1/some.All, u.second)
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
func (u *Mixture) slope(q, prior []float64, gamma float64) (gap float64) {
	u.Temper(q, prior, gamma)
	for i, f := range u.Factor {
		if u.rate[i] = 1 / prior[i]; gamma < 1 {
			u.rate[i] = f / q[i]
		}
	}
	u.sums(u.Gradient, u.M, u.rate)
	ScaleTo(u.Gradient, 1/u.All, u.Gradient)
	floats.AddConst(-floats.Dot(q, u.Gradient), u.Gradient)
	return slices.Max(u.Gradient)
}

// newton moves q towards where the quadratic model there is largest, as far as the likelihood rises
// enough, and returns the duality gap. It reports false and leaves q unchanged when no step does.
// The gradient is current, before and after.
func (u *Mixture) newton(q, prior []float64, gamma, least float64) (gap float64, moved bool) {
	k, model := u.K, u.qp
	for i, x := range q {
		row := model.G[i*k : (i+1)*k]
		ScaleTo(row, gamma, u.second[i*k:(i+1)*k])
		row[i] *= 1 + ridgeShare // per class, because rows of tiny probability dwarf the others
		if gamma < 1 {
			row[i] += (1 - gamma) * (1 + u.Gradient[i]) / x
		}
		model.B[i] = u.Gradient[i] + floats.Dot(row, q)
		model.Q[i] = x - least // those at their bound begin there
	}
	copy(u.from, q)
	model.Solve()
	gain := 0.0
	for i, x := range model.Q {
		u.to[i] = max(x, least)
	}
	ScaleTo(u.to, 1/Sum(u.to), u.to)
	for i, x := range u.Gradient {
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
func (u *Mixture) search(q, prior []float64, gamma, gain float64) (gap float64, ok bool) {
	for t, i := 1.0, 0; i < halvingsMax; t, i = t/2, i+1 {
		for a, x := range u.from {
			q[a] = x + t*(u.to[a]-x)
		}
		gap = u.slope(q, prior, gamma)
		slope := 0.0
		for a, x := range u.Gradient {
			slope += x * (u.to[a] - u.from[a])
		}
		if slope >= -turnMax*gain-valueNoise {
			return gap, true
		}
	}
	return gap, false
}
