package quant

import (
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

const (
	// sampleMembers is the number of members, or up to twice as many, that a solve starts from if
	// there are more.
	sampleMembers = 1000
	// temperedTolerance bounds the duality gap of q(gamma): how far the mean responsibility of a class may exceed
	// its share, as a part of it.
	temperedTolerance = 1e-5
	// shareMin bounds the shares that the Jacobian divides by.
	shareMin = 1e-3
	// shareLeast is the share that is left to a class of which there is no member, so that the class may come back.
	shareLeast = 1e-6
	// singularMin is the smallest singular value of the Jacobian that is inverted, as a share of the largest.
	singularMin = 1e-2
)

// members is the posteriors of a community's unlabelled members, and what an estimate
// makes of them.
type members struct {
	mixture // x are the posteriors, m the multiplicities
	vertex  []uint32
	squares float64   // sum of the squared multiplicities
	mean    []float64 // K: of the posteriors
}

// load copies the posteriors of the members.
func (u *members) load(k int, each func(visit func(vertex uint32, m float64, pi []float64))) {
	u.clear(k)
	u.vertex, u.squares, u.mean = u.vertex[:0], 0, make([]float64, k)
	each(func(vertex uint32, m float64, pi []float64) {
		u.add(m, pi)
		u.vertex = append(u.vertex, vertex)
		u.squares += m * m
		axpy(u.mean, m, pi)
	})
	scaleTo(u.mean, 1/u.all, u.mean)
}

// every returns every n-th of the members, in the memory of part, or all where there are too few.
func (u *members) every(part *members, n int) *members {
	if n <= 1 {
		return u
	}
	part.load(u.k, func(visit func(uint32, float64, []float64)) {
		for l := 0; l < len(u.m); l += n {
			visit(u.vertex[l], u.m[l], u.x[l*u.k:(l+1)*u.k])
		}
	})
	return part
}

// read returns what the members that are loaded say. If there are many, a solve starts from every n-th of them, goes on with
// eight times as many, and ends with all after a few rounds. The first sample also gives the derivatives and the noise of
// one member.
func (x *automatic) read(p *Posterior) *CrowdReading {
	u, k := &x.members, len(p.Prior)
	n := len(u.m) / sampleMembers
	few, some := u.every(&x.few, n), u.every(&x.some, n/8)
	if some == u {
		some = few
	}
	r := &CrowdReading{mean: u.mean, all: u.all, squares: u.squares, s: make([]float64, k*k), a: make([]float64, k*k)}
	solve := func(q []float64, gamma float64) []float64 {
		for i, level := range []*members{few, some, u} {
			from := []*members{few, few, some}[i]
			if i > 0 && level == from {
				continue
			}
			for class, x := range level.mean {
				q[class] = max(q[class], startFloor*x) // a class that the few do not have may come back
			}
			scaleTo(q, 1/sum(q), q)
			level.maximise(q, p.Prior, gamma, shareLeast, temperedTolerance, &from.mixture)
		}
		for i, x := range u.gradient {
			q[i] *= 1 + x // the mean of R, which no floor holds up
		}
		return q
	}
	r.likely = solve(slices.Clone(few.mean), 1)
	r.evidence, r.allowed = r.selectedByClass(p, few), p.allowed(r.likely)
	if r.gamma = p.gamma(r.allowed, byClassOf(r.evidence)); r.gamma > 0 || p.Crowd != nil {
		r.follow(0, r.likely, p.Prior, 1, few)
	}
	r.tempered = slices.Clone(u.mean)
	for i, mean := range u.mean {
		r.tempered[i] += r.gamma * (r.likely[i] - mean) // what it is for gamma 0 and 1, and nearly so between
	}
	if r.gamma > 0 && r.gamma < 1 {
		solve(r.tempered, r.gamma)
	}
	r.follow(1, r.tempered, p.Prior, r.gamma, few)
	few.noise(r.a)
	scaleTo(r.a, u.squares/(u.all*u.all)*few.all*few.all/few.squares, r.a)
	r.moveByGamma(p.Prior)
	if p.Crowd != nil {
		p.Crowd.Fresh = r
	}
	return r
}

// follow sets the factors and J⁺ of q(1) or of q(gamma) = q, and S, the mean of R R' there.
func (r *CrowdReading) follow(which int, q, prior []float64, gamma float64, few *members) {
	few.temper(q, prior, gamma)
	r.Factors[which], r.inverse[which] = slices.Clone(few.factor), make([]float64, len(r.s))
	few.outers(r.s, few.m, few.factor)
	scaleTo(r.s, 1/few.all, r.s)
	pseudoInverse(r.inverse[which], q, r.s, gamma)
}

// noise writes to a the covariance of the mean of the classes that R draws,
// sum m² (diag R - R R')/n², for the factors of the last temper.
func (u *members) noise(a []float64) {
	squares, drawn := make([]float64, len(u.m)), make([]float64, u.k)
	floats.MulTo(squares, u.m, u.m)
	u.outers(a, squares, u.factor)
	u.sums(drawn, squares, u.factor)
	scaleTo(a, -1, a)
	for i, x := range drawn {
		a[i*u.k+i] += x
	}
	scaleTo(a, 1/(u.all*u.all), a)
}

// pseudoInverse writes to dst the pseudo-inverse of
//
//	J = I - gamma (diag q - S) diag(1/max(q, shareMin)),
//
// by which an error of the mean of R is multiplied when q follows it. For gamma 1 small singular values count as
// singularMin of the largest: classes that nobody can tell apart have errors then, not none.
func pseudoInverse(dst, q, s []float64, gamma float64) {
	k := len(q)
	j := mat.NewDense(k, k, dst)
	fill := func() {
		for a := range k {
			for b := range k {
				x := delta(a, b)*q[a] - s[a*k+b]
				dst[a*k+b] = delta(a, b) - gamma*x/max(q[b], shareMin)
			}
		}
	}
	fill()
	norm, pivots, raw := mat.Norm(j, 2), make([]int, k), j.RawMatrix() // not mat's own inverse, half of which goes into a condition number
	if lapack64.Getrf(raw, pivots) && lapack64.Getri(raw, pivots, make([]float64, k), k) && norm*mat.Norm(j, 2) < 1/singularMin {
		return // no singular value is left out
	}
	fill()
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
