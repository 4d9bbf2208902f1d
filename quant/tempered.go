package quant

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

const (
	// temperedTolerance is the largest change of a share that ends the iteration.
	temperedTolerance = 1e-7
	// polishTolerance is the largest error of a share, as far as its rounds tell, that ends the
	// iteration where the shares of many members start from those of some: a five-hundredth of
	// modelError. polishRoundsMax bounds its rounds.
	polishTolerance = 1e-5
	polishRoundsMax = 24
	// leftLeast is the least part that a round is taken to leave of an error, of which not all is seen.
	leftLeast = 0.05
	// temperedRoundsMax bounds its rounds. When it is hit, the shares are still those of
	// a step of expectation maximisation, near the answer.
	temperedRoundsMax = 2000
	// shareMin bounds the shares that the Jacobian divides by.
	shareMin = 1e-3
	// shareLeast is the share that polish leaves to a class of which it finds no member, so
	// that the class may come back.
	shareLeast = 1e-6
	// singularMin is the smallest singular value of the Jacobian that is inverted, as a share of the largest.
	singularMin = 1e-2
)

// members is the posteriors of a community's unlabelled members, and what an estimate
// makes of them.
type members struct {
	k       int
	vertex  []uint32
	m       []float64 // multiplicities
	pi      []float64 // n x K
	all     float64   // sum of the multiplicities
	squares float64   // sum of their squares

	mean    []float64 // K: of pi
	factor  []float64 // K: what pi is multiplied by
	r       []float64 // K: one responsibility
	each    []float64 // n x K: all of them
	weights []float64 // n: scratch
	next    []float64 // K
	second  []float64 // K x K: see curvature
	model   quadratic
	last    [2][]float64
}

// load copies the posteriors of the members.
func (u *members) load(prior []float64, each func(visit func(vertex uint32, m float64, pi []float64))) {
	u.k = len(prior)
	u.vertex, u.m, u.pi = u.vertex[:0], u.m[:0], u.pi[:0]
	u.all, u.squares = 0, 0
	u.mean, u.factor = zeroed(u.mean, u.k), resize(u.factor, u.k)
	u.r, u.next = resize(u.r, u.k), resize(u.next, u.k)
	each(func(vertex uint32, m float64, pi []float64) {
		u.vertex, u.m, u.pi = append(u.vertex, vertex), append(u.m, m), append(u.pi, pi...)
		u.all += m
		u.squares += m * m
		axpy(u.mean, m, pi)
	})
	scaleTo(u.mean, 1/u.all, u.mean)
}

// temper sets the factors (q_i/pi0_i)^gamma.
func (u *members) temper(q, prior []float64, gamma float64) {
	for i, x := range q {
		u.factor[i] = math.Pow(x/prior[i], gamma) // exact where gamma is 0 or 1
	}
}

// respond writes the tempered responsibility of the l-th member, R proportional to pi times the factors, to r.
func (u *members) respond(r []float64, l int) {
	total := 0.0
	for i, p := range u.pi[l*u.k : (l+1)*u.k] {
		r[i] = p * u.factor[i]
		total += r[i]
	}
	scaleTo(r, 1/total, r)
}

// tempered writes to q the fixed point of q = mean of R(q), R_i proportional to pi_i
// (q_i/pi0_i)^gamma, reached from the mean of pi: that mean for gamma 0, and the shares of largest
// likelihood under prior shift for gamma 1 (Saerens, Latinne and Decaestecker, 2002).
func (u *members) tempered(q, prior []float64, gamma float64) {
	copy(q, u.mean)
	if gamma == 0 {
		return
	}
	u.last[0], u.last[1] = resize(u.last[0], u.k), resize(u.last[1], u.k)
	for round := range temperedRoundsMax {
		copy(u.last[round%2], q)
		if u.step(q, prior, gamma) <= temperedTolerance {
			return
		}
		if round%3 == 2 { // last has the shares of two rounds ago, then of one
			extrapolate(q, u.last[1-round%2], u.last[round%2])
		}
	}
}

// read writes q(gamma) and the derivatives that go with it, and returns gamma. Of many members,
// every n-th says where to start, how the shares follow, and what one member adds to their noise.
// Eight times as many stand between, so that few rounds read all.
func (x *posteriorScratch) read(q []float64, p *Posterior) (gamma float64) {
	u, k := &x.members, len(q)
	sample := func(few, all *members, n int) *members {
		if n <= 1 {
			return all
		}
		few.load(p.Prior, func(visit func(uint32, float64, []float64)) {
			for l := 0; l < len(u.m); l += n {
				visit(u.vertex[l], u.m[l], u.pi[l*k:(l+1)*k])
			}
		})
		return few
	}
	n := len(u.m) / sampleMembers
	few := sample(&x.few, u, n)
	some := sample(&x.some, few, n/8)
	x.a, x.s, x.j, x.middle = resize(x.a, k*k), resize(x.s, k*k), resize(x.j, k*k), resize(x.middle, k)
	solve := func(q []float64, gamma float64) {
		few.tempered(q, p.Prior, gamma)
		if some != few {
			some.polish(q, p.Prior, gamma, few)
		}
		if some != u {
			u.polish(q, p.Prior, gamma, some)
		}
	}
	solve(x.likely, 1)
	x.byClass, x.allowed = x.selectedByClass(p, few), p.allowed(x.likely)
	if gamma = p.gamma(x.allowed, x.byClass); gamma > 0 {
		x.first = resize(x.first, k*k)
		few.temper(x.likely, p.Prior, 1)
		few.secondMoments(x.s)
		pseudoInverse(x.first, x.likely, x.s, 1)
	}
	solve(q, gamma)
	few.temper(q, p.Prior, gamma)
	few.secondMoments(x.s)
	pseudoInverse(x.j, q, x.s, gamma)
	few.noise(x.a)
	if few != u {
		scaleTo(x.a, u.squares/(u.all*u.all)*few.all*few.all/few.squares, x.a)
		u.temper(q, p.Prior, gamma)
	}
	if p.Crowd != nil {
		p.Crowd.Fresh = x.freshReading(q, p.Prior, gamma, some)
	}
	return gamma
}

// polish takes q from the fixed point of a few members to that of all. The fixed point is
// where the mean of log sum_i pi_i (q_i/pi0_i)^gamma, which is concave, is largest on the simplex, so
// that each round maximises its quadratic model. The second derivative of the few leaves a few
// hundredths of the error; where it leaves more than half, as where classes are hard to
// tell apart, that of all takes its place.
func (u *members) polish(q, prior []float64, gamma float64, few *members) {
	u.second = resize(u.second, u.k*u.k)
	u.model.reserve(u.k)
	for i, x := range u.mean {
		q[i] = max(q[i], startFloor*x) // a class that the few do not have may come back
	}
	scaleTo(q, 1/sum(q), q)
	u.curvature(q, prior, gamma, few)
	before, left := 0.0, 1.0
	for round := range polishRoundsMax {
		u.last[0] = append(u.last[0][:0], q...)
		u.step(q, prior, gamma)
		far := u.maximise(q, u.last[0], gamma)
		if round > 0 {
			if left = max(far/before, leftLeast); left > 0.5 {
				u.curvature(u.last[0], prior, gamma, u)
				far, left = u.maximise(q, u.last[0], gamma), 1
			}
		}
		if before = far; before*left <= polishTolerance*(1-left) {
			return
		}
	}
}

// curvature writes the mean of R_i R_j/(q_i q_j) of a few members to second.
func (u *members) curvature(q, prior []float64, gamma float64, few *members) {
	few.temper(q, prior, gamma)
	few.secondMoments(u.second)
	for i, x := range q {
		for j, y := range q {
			u.second[i*u.k+j] /= x * y
		}
	}
}

// maximise moves q to where the quadratic model at last is largest on the simplex, whose gradient
// is that of the mean of R(last) in next, and returns the largest change.
func (u *members) maximise(q, last []float64, gamma float64) (change float64) {
	k, m := u.k, &u.model
	for i, x := range last {
		scaleTo(m.g[i*k:(i+1)*k], gamma, u.second[i*k:(i+1)*k])
		m.g[i*k+i] = m.g[i*k+i]*(1+ridgeShare) + (1-gamma)*u.next[i]/(x*x)
	}
	for i, x := range last {
		m.b[i] = u.next[i]/x + dot(m.g[i*k:(i+1)*k], last)
	}
	copy(m.q, last)
	m.solve()
	for i, x := range m.q {
		q[i] = max(x, shareLeast)
	}
	scaleTo(q, 1/sum(q), q)
	return floats.Distance(q, last, math.Inf(1))
}

// step replaces q by the mean of R(q), which next holds too, and returns the largest change.
func (u *members) step(q, prior []float64, gamma float64) (change float64) {
	u.temper(q, prior, gamma)
	if u.k == 2 {
		u.respondTwo()
	} else {
		u.respondAll()
	}
	for i := range q {
		u.next[i] *= u.factor[i] / u.all
		change = max(change, math.Abs(u.next[i]-q[i]))
	}
	copy(q, u.next)
	return change
}

// respondAll writes the sum of R over the members to next, less the factors that all have in common.
func (u *members) respondAll() {
	clear(u.next)
	k, l, next := u.k, 0, u.next[:len(u.factor)]
	for ; l+4 <= len(u.m); l += 4 {
		x := u.pi[l*k : (l+4)*k]
		x0, x1, x2, x3 := x[:len(next)], x[k:][:len(next)], x[2*k:][:len(next)], x[3*k:][:len(next)]
		var t0, t1, t2, t3 float64
		for i, f := range u.factor {
			t0 += f * x0[i]
			t1 += f * x1[i]
			t2 += f * x2[i]
			t3 += f * x3[i]
		}
		t0, t1, t2, t3 = u.m[l]/t0, u.m[l+1]/t1, u.m[l+2]/t2, u.m[l+3]/t3
		for i := range next {
			next[i] += (t0*x0[i] + t1*x1[i]) + (t2*x2[i] + t3*x3[i])
		}
	}
	for ; l < len(u.m); l++ {
		x := u.pi[l*k : (l+1)*k]
		axpy(next, u.m[l]/dot(x, u.factor), x)
	}
}

// respondTwo is respondAll for two classes, which most have: the same bits in less than half of the time.
func (u *members) respondTwo() {
	f0, f1 := u.factor[0], u.factor[1]
	s0, s1, l := 0.0, 0.0, 0
	for ; l+4 <= len(u.m); l += 4 {
		x, m := u.pi[2*l:2*l+8:2*l+8], u.m[l:l+4:l+4]
		t0, t1 := m[0]/(f0*x[0]+f1*x[1]), m[1]/(f0*x[2]+f1*x[3])
		t2, t3 := m[2]/(f0*x[4]+f1*x[5]), m[3]/(f0*x[6]+f1*x[7])
		s0 += (t0*x[0] + t1*x[2]) + (t2*x[4] + t3*x[6])
		s1 += (t0*x[1] + t1*x[3]) + (t2*x[5] + t3*x[7])
	}
	for ; l < len(u.m); l++ {
		x := u.pi[2*l : 2*l+2]
		t := u.m[l] / (f0*x[0] + f1*x[1])
		s0 += t * x[0]
		s1 += t * x[1]
	}
	u.next[0], u.next[1] = s0, s1
}

// extrapolate moves q from where the last three steps have led to where their geometric
// series leads, if that is inside the simplex (Varadhan and Roland, 2008): far fewer rounds
// where classes are hard to tell apart, to the same fixed point.
func extrapolate(q, first, second []float64) {
	var rr, vv float64
	for i, x := range q {
		r := second[i] - first[i]
		v := x - second[i] - r
		rr += r * r
		vv += v * v
	}
	if !(vv > 0) {
		return
	}
	a := max(math.Sqrt(rr/vv), 1)
	for i, x := range q {
		r := second[i] - first[i]
		if !(first[i]+2*a*r+a*a*(x-second[i]-r) > 0) {
			return
		}
	}
	for i, x := range q {
		r := second[i] - first[i]
		q[i] = first[i] + 2*a*r + a*a*(x-second[i]-r)
	}
	scaleTo(q, 1/sum(q), q)
}

// secondMoments writes to s the mean of R R'. The factors are those of q.
func (u *members) secondMoments(s []float64) {
	u.each, u.weights = resize(u.each, len(u.pi)), resize(u.weights, len(u.m))
	for l, m := range u.m {
		u.respond(u.each[l*u.k:(l+1)*u.k], l)
		u.weights[l] = m / u.all
	}
	clear(s)
	addOuters(s, u.weights, u.each, u.k)
	mirror(s, s, u.k)
}

// noise writes to a the covariance of the mean of the classes that R draws,
// sum m² (diag R - R R')/n², for R as secondMoments had it.
func (u *members) noise(a []float64) {
	clear(a)
	for l, m := range u.m {
		for i, x := range u.each[l*u.k : (l+1)*u.k] {
			a[i*u.k+i] += m * m * x
		}
		u.weights[l] = -m * m
	}
	addOuters(a, u.weights, u.each, u.k)
	for i := range a {
		a[i] /= u.all * u.all
	}
	mirror(a, a, u.k)
}

// pseudoInverse writes to dst the pseudo-inverse of
//
//	J = I - gamma (diag q - S) diag(1/max(q, shareMin)),
//
// by which an error of the mean of R is multiplied when q follows it. For gamma 1 small singular values count as
// singularMin of the largest: classes that nobody can tell apart have errors then, not none.
func pseudoInverse(dst, q, s []float64, gamma float64) {
	k := len(q)
	j := mat.NewDense(k, k, nil)
	for a := range k {
		for b := range k {
			x := delta(a, b)*q[a] - s[a*k+b]
			j.Set(a, b, delta(a, b)-gamma*x/max(q[b], shareMin))
		}
	}
	inverse, pivots := mat.DenseCopyOf(j), make([]int, k)
	factors := inverse.RawMatrix() // not mat's own inverse, half of which goes into a condition number
	if lapack64.Getrf(factors, pivots) && lapack64.Getri(factors, pivots, make([]float64, k), k) && mat.Norm(j, 2)*mat.Norm(inverse, 2) < 1/singularMin {
		copy(dst, factors.Data) // no singular value is left out
		return
	}
	var svd mat.SVD
	if !svd.Factorize(j, mat.SVDThin) {
		panic("quant: a singular value decomposition of finite numbers has not converged")
	}
	var left, right mat.Dense
	svd.UTo(&left)
	svd.VTo(&right)
	values := svd.Values(nil)
	clear(dst)
	for l, x := range values {
		if least := singularMin * values[0]; x < least {
			if gamma < 1 {
				break // they are sorted
			}
			x = least
		}
		for a := range k {
			for b := range k {
				dst[a*k+b] += right.At(a, l) * left.At(b, l) / x
			}
		}
	}
}
