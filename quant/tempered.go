package quant

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

const (
	// sampleMembers is the number of members, or up to twice as many, that a solve starts from if
	// there are more.
	sampleMembers = 1000
	// temperedTolerance bounds the duality gap of q(gamma): how far the mean responsibility of a class may exceed
	// its share, as a part of it.
	temperedTolerance = 1e-4
	// shareMin bounds the shares that the Jacobian divides by.
	shareMin = 1e-3
	// shareLeast is the share that is left to a class of which there is no member, so that the class may come back.
	shareLeast = 1e-6
	// eigenMin is the smallest eigenvalue of the Jacobian that is inverted.
	eigenMin = 1e-2
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

// read returns what the members that are loaded say. A solve starts from the last estimate, or if there are many from every
// n-th of them, and ends with all after a few rounds. The sample also gives the derivatives and the noise of one member.
func (x *automatic) read(p *Posterior) *CrowdReading {
	u, k := &x.members, len(p.Prior)
	few := u.every(&x.few, len(u.m)/sampleMembers)
	last, start := p.Last, few.mean
	if last != nil && last.Posterior == uint64(p.Version) && len(last.Likely) == len(start) {
		start = last.Likely
	} else {
		last = nil
	}
	r := &CrowdReading{mean: u.mean, all: u.all, squares: u.squares, s: make([]float64, k*k), a: make([]float64, k*k)}
	solve := func(q []float64, gamma float64) []float64 {
		levels := []*members{few, u}
		if few == u || last != nil {
			levels = levels[1:]
		}
		for _, level := range levels {
			for class, x := range level.mean {
				q[class] = max(q[class], startFloor*x) // a class that the few do not have may come back
			}
			scaleTo(q, 1/sum(q), q)
			level.maximise(q, p.Prior, gamma, shareLeast, temperedTolerance, &few.mixture)
		}
		for i, x := range u.gradient {
			q[i] *= 1 + x // the mean of R, which no floor holds up
		}
		return q
	}
	r.likely = solve(slices.Clone(start), 1)
	few.temper(r.likely, p.Prior, 1)
	r.evidence, r.allowed = r.selectedByClass(p, few), p.allowed(r.likely)
	if r.gamma = p.gamma(r.allowed, byClassOf(r.evidence)); r.gamma > 0 || p.Crowd != nil {
		r.follow(0, r.likely, 1, few)
	}
	r.tempered = slices.Clone(u.mean)
	for i, mean := range u.mean {
		r.tempered[i] += r.gamma * (r.likely[i] - mean) // what it is for gamma 0 and 1, and nearly so between
	}
	if r.gamma > 0 && r.gamma < 1 {
		if last != nil { // what that was off then
			axpy(r.tempered, 1, last.Tempered)
			axpy(r.tempered, -1, last.Likely)
			axpy(r.tempered, 1-last.Gamma, last.Apart)
		}
		solve(r.tempered, r.gamma)
	}
	few.temper(r.tempered, p.Prior, r.gamma)
	r.follow(1, r.tempered, r.gamma, few)
	r.noise()
	r.moveByGamma(p.Prior)
	if p.Crowd != nil {
		p.Crowd.Fresh = r
	}
	return r
}

// follow sets the factors and J⁺ of q(1) or of q(gamma) = q, whose factors few has, and S, the mean of R R' there.
func (r *CrowdReading) follow(which int, q []float64, gamma float64, few *members) {
	r.Factors[which], r.inverse[which] = slices.Clone(few.factor), make([]float64, len(r.s))
	few.outers(r.s, few.m, few.factor)
	scaleTo(r.s, 1/few.all, r.s)
	inverseJacobian(r.inverse[which], q, r.s, gamma)
}

// noise sets the covariance of the mean of the classes that R draws, (diag mean R - S) sum m²/(sum m)²: members who count
// more often are like the others.
func (r *CrowdReading) noise() {
	k, scale := len(r.mean), r.squares/(r.all*r.all)
	scaleTo(r.a, -scale, r.s)
	for i := range k {
		r.a[i*k+i] += scale * sum(r.s[i*k:(i+1)*k]) // R sums to one
	}
}

// inverseJacobian writes to dst the inverse of
//
//	J = I - gamma (diag q - S) D⁻¹,   D = diag max(q, shareMin),
//
// by which an error of the mean of R is multiplied when q follows it. D^-1/2 J D^1/2 is symmetric, with eigenvalues
// between 1 - gamma and 1. Those below eigenMin count as eigenMin: the shares of classes that nobody can tell apart are
// uncertain then, not unlimited.
func inverseJacobian(dst, q, s []float64, gamma float64) {
	k := len(q)
	root := make([]float64, k)
	for a, x := range q {
		root[a] = math.Sqrt(max(x, shareMin))
	}
	fill := func(dst []float64, shift float64) {
		for a := range k {
			for b := range k {
				dst[a*k+b] = delta(a, b)*(1-shift) - gamma*(delta(a, b)*q[a]-s[a*k+b])/(root[a]*root[b])
			}
		}
	}
	m := make([]float64, k*k)
	fill(m, eigenMin)
	none := cholesky(m, k) // is below
	if fill(m, 0); none {
		cholesky(m, k)
		choleskyInverse(dst, m, k)
	} else {
		values := eigenvalues(m, k)
		for l, x := range values {
			values[l] = 1 / max(x, eigenMin)
		}
		scaled := slices.Clone(m)
		for a := range k {
			floats.Mul(scaled[a*k:(a+1)*k], values)
		}
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, general(scaled, k, k), general(m, k, k), 0, general(dst, k, k))
	}
	for a := range k {
		for b := range k {
			dst[a*k+b] *= root[a] / root[b]
		}
	}
}
