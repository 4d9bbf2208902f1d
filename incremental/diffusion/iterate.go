package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// Bounds of the iteration. The condition number of the system scaled by its
// diagonal is below (2-a)/a, so that stepsPerDigit/sqrt(a) steps gain more than a
// digit; 16 digits are all there are. What is left then is in the certificate.
const (
	stepsPerDigit = 2
	digits        = 18
	restartsMax   = 8
	aimShort      = 0.8 // of the goal, for what the recurrence does not see of R
)

// iterate improves z until the certificate is at most goal, or until rounding
// keeps a restart from halving the residual. R must be right; it is again after.
//
// Conjugate gradients keep a residual by recurrence, which drifts from the one by
// definition. So a run aims somewhat below the goal, the residual is then computed from
// nothing and decides: a certificate never rests on the recurrence.
func (f *Field) iterate(view graphstore.View, goal float64) {
	bar := goal * f.alpha * f.sourceSum
	if f.sources == 0 || f.bound() <= bar {
		return
	}
	f.work.Solves++
	for range restartsMax {
		before := f.residual
		f.conjugate(view, aimShort*bar)
		f.rebuild(view)
		if f.bound() <= bar || f.residual > before/2 {
			return
		}
	}
}

// conjugate runs conjugate gradients (Hestenes and Stiefel, 1952), preconditioned
// by the diagonal, from z until the sum of |R| is at most bar. It does not
// change R. Against Gauss-Seidel and successive over-relaxation it needs a
// third to a sixth of the passes on graphs that mix well, and never many more.
func (f *Field) conjugate(view graphstore.View, bar float64) {
	n := len(f.z)
	memory := make([]float64, 4*n)
	r, p, q, inverse := memory[:n], memory[n:2*n], memory[2*n:3*n], memory[3*n:]
	rho := 0.0 // r . inverse r
	for v := range r {
		inverse[v] = 1 / (f.d[v] - f.keep)
		r[v] = f.r[v]
		p[v] = r[v] * inverse[v]
		rho += r[v] * p[v]
	}
	for range int(stepsPerDigit * digits / math.Sqrt(f.alpha)) {
		curvature := f.apply(view, p, q)
		f.work.Iterations++
		if !(curvature > 0) {
			return // p is zero: r is, to rounding
		}
		size, next := descend(rho/curvature, f.z, r, p, q, inverse)
		if size <= bar {
			return
		}
		turn(next/rho, p, r, inverse)
		rho = next
	}
}

// apply writes (D - (1-a) A) p to q and returns p . q.
func (f *Field) apply(view graphstore.View, p, q []float64) float64 {
	dot := 0.0
	for v := range p {
		sum := neighborSum(view, p, Vertex(v))
		q[v] = (f.d[v]-f.keep)*p[v] - f.keep*sum
		dot += p[v] * q[v]
	}
	return dot
}

// descend steps along p and returns the sums of |r| and of r . inverse r.
func descend(step float64, z, r, p, q, inverse []float64) (size, rho float64) {
	r, p, q, inverse = r[:len(z)], p[:len(z)], q[:len(z)], inverse[:len(z)]
	for v := range z {
		z[v] += step * p[v]
		x := r[v] - step*q[v]
		r[v] = x
		size += math.Abs(x)
		rho += x * x * inverse[v]
	}
	return size, rho
}

// turn makes the next direction, conjugate to those before.
func turn(beta float64, p, r, inverse []float64) {
	r, inverse = r[:len(p)], inverse[:len(p)]
	for v := range p {
		p[v] = r[v]*inverse[v] + beta*p[v]
	}
}

// R is computed from nothing once pushes have visited rebuildPasses times as many
// neighbours as that takes, or once the bound on rounding exceeds roundingShare of
// what the tolerance allows (and twice what a rebuild leaves of it).
const (
	rebuildPasses = 64
	roundingShare = 1e-2
)

func (f *Field) rebuildDue(view graphstore.View) bool {
	passes := uint64(rebuildPasses * (2*view.Edges() + view.Vertices()))
	if f.work.Traversals-f.work.RebuiltAt > passes+1<<20 {
		return true
	}
	allowed := roundingShare * f.config.Tolerance * f.alpha * f.sourceSum
	return f.rounding*unitRoundoff > allowed && f.rounding > 2*f.floor
}

// rebuild computes degrees, R and all sums from z, the source and the graph.
func (f *Field) rebuild(view graphstore.View) {
	f.residual, f.signed, f.rounding, f.sourceSum = 0, 0, 0, 0
	for i := range f.z {
		v := Vertex(i)
		d := view.Degree(v) + 1
		r, rounding := f.residualAt(view, v, d)
		f.r[v], f.d[v] = r, d
		f.residual += math.Abs(r)
		f.signed += r
		f.rounding += rounding
		f.sourceSum += f.source[v]
	}
	f.rounding += float64(len(f.z)) * f.residual
	f.floor = f.rounding
	f.stale = false
	f.work.Rebuilds++
	f.work.RebuiltAt = f.work.Traversals
}

// residualAt returns R(v) by definition, and a bound on its rounding error in units of 2^-53.
func (f *Field) residualAt(view graphstore.View, v Vertex, d float64) (r, rounding float64) {
	neighbors, weights := view.Neighbors(v), view.Weights(v)
	var sum, size float64
	for i, u := range neighbors {
		x := f.z[u]
		if weights != nil {
			x *= weights[i]
		}
		sum += x
		size += math.Abs(x)
	}
	z, m := f.z[v], f.source[v]
	r = f.alpha*m - (d-f.keep)*z + f.keep*sum
	terms := float64(len(neighbors) + 8)
	return r, terms * (f.alpha*m + d*math.Abs(z) + f.keep*size)
}
