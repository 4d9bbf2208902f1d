package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// lanes is the number of systems that a block solves together: their numbers of a vertex lie
// in half a cache line, so that a pass over the graph fetches a neighbour once for all.
const lanes = 4

type lane = [lanes]float64

// block runs conjugate gradients on up to four systems (D - (1-a) A) x = b, each with coefficients
// of its own but one pass over the graph for all, which costs less than two passes for one. The
// caller sets diagonal and r, 0 where a lane is idle. Memory: 104 bytes a vertex.
type block struct {
	keep     float64
	diagonal []float64 // n: d - keep
	r, p, q  []lane    // n: residual, direction, and the matrix times the direction
}

func newBlock(n int, keep float64) *block {
	memory := make([]lane, 3*n)
	return &block{
		keep: keep, diagonal: make([]float64, n),
		r: memory[:n:n], p: memory[n : 2*n : 2*n], q: memory[2*n:],
	}
}

// doneShare is the share of its first squared residual at which a system has no digit
// left to gain; going on with numbers that small would end in zero by zero.
const doneShare = 1e-34

// Each lane keeps step and direction to itself, so its result does not depend on who else is
// in the block, but for the pass at which all stop.

// run improves the solutions x, of which width lie side by side every stride numbers,
// until every lane has all |r|/d within top, and returns
// how many passes that took. It leaves what the recurrence knows of the residual in r.
func (b *block) run(view graphstore.View, x []float64, stride, width int, top float64) (passes uint64) {
	var rho, done, next, curvature lane
	for v := range b.r {
		r, p, inverse := &b.r[v], &b.p[v], 1/b.diagonal[v]
		for i, c := range r {
			p[i] = c * inverse
			rho[i] += c * p[i]
		}
	}
	for i := range rho {
		done[i] = doneShare * rho[i]
	}
	for passes < uint64(stepsPerDigit*digits/math.Sqrt(1-b.keep)) {
		b.apply(view, &curvature)
		passes++
		for i := range rho {
			if rho[i] > done[i] && curvature[i] > 0 {
				curvature[i] = rho[i] / curvature[i]
			} else {
				curvature[i] = 0 // rounding is all that is left of this system
			}
		}
		if b.descend(x, stride, width, &curvature, &next) <= top {
			break
		}
		b.turn(&rho, &next)
		rho = next
	}
	return passes
}

// apply writes the matrix times p to q, and p . q of every lane to dots.
func (b *block) apply(view graphstore.View, dots *lane) {
	var d0, d1, d2, d3 float64
	for i := range b.p {
		v := Vertex(i)
		var s lane
		if weights := view.Weights(v); weights == nil {
			s = gatherLanes(b.p, view.Neighbors(v))
		} else {
			s = gatherLanesWeighted(b.p, view.Neighbors(v), weights)
		}
		p, q, diagonal := &b.p[i], &b.q[i], b.diagonal[i]
		q[0] = diagonal*p[0] - b.keep*s[0]
		q[1] = diagonal*p[1] - b.keep*s[1]
		q[2] = diagonal*p[2] - b.keep*s[2]
		q[3] = diagonal*p[3] - b.keep*s[3]
		d0, d1, d2, d3 = d0+p[0]*q[0], d1+p[1]*q[1], d2+p[2]*q[2], d3+p[3]*q[3]
	}
	*dots = lane{d0, d1, d2, d3}
}

// gatherLanes returns the sums of x over the neighbours.
func gatherLanes(x []lane, neighbors []Vertex) lane {
	var s0, s1, s2, s3, t0, t1, t2, t3 float64
	for len(neighbors) >= 2 {
		p, q := &x[neighbors[0]], &x[neighbors[1]]
		s0, s1, s2, s3 = s0+p[0], s1+p[1], s2+p[2], s3+p[3]
		t0, t1, t2, t3 = t0+q[0], t1+q[1], t2+q[2], t3+q[3]
		neighbors = neighbors[2:]
	}
	for _, u := range neighbors {
		p := &x[u]
		s0, s1, s2, s3 = s0+p[0], s1+p[1], s2+p[2], s3+p[3]
	}
	return lane{s0 + t0, s1 + t1, s2 + t2, s3 + t3}
}

// gatherLanesWeighted returns the sums of weight times x over the neighbours.
func gatherLanesWeighted(x []lane, neighbors []Vertex, weights []float64) (s lane) {
	weights = weights[:len(neighbors)]
	for i, u := range neighbors {
		p, w := &x[u], weights[i]
		s[0] += w * p[0]
		s[1] += w * p[1]
		s[2] += w * p[2]
		s[3] += w * p[3]
	}
	return s
}

// descend steps along p. It returns the largest |r|/d of all lanes, and writes r . r / diagonal
// of every lane to rho.
func (b *block) descend(x []float64, stride, width int, step, rho *lane) (most float64) {
	*rho = lane{}
	for v := range b.r {
		r, p, q, diagonal := &b.r[v], &b.p[v], &b.q[v], b.diagonal[v]
		to := x[v*stride:][:width]
		for i := range to {
			to[i] += step[i] * p[i]
		}
		inverse, top := 1/diagonal, 0.0
		for i := range r {
			c := r[i] - step[i]*q[i]
			r[i] = c
			rho[i] += c * c * inverse
			top = max(top, math.Abs(c))
		}
		most = max(most, top/(diagonal+b.keep))
	}
	return most
}

// turn makes the next directions, conjugate to those before.
func (b *block) turn(before, after *lane) {
	var beta lane
	for i := range beta {
		if before[i] > 0 {
			beta[i] = after[i] / before[i]
		}
	}
	for v := range b.r {
		r, p, inverse := &b.r[v], &b.p[v], 1/b.diagonal[v]
		for i := range p {
			p[i] = r[i]*inverse + beta[i]*p[i]
		}
	}
}
