package diffusion

import (
	"math"
	"slices"

	"gqlstream/graphstore"
)

// lanes is the number of functions that a block solves for together: their values at a vertex lie
// in half a cache line, so that a pass over the graph fetches a neighbour once for all.
const lanes = 4

type lane = [lanes]float64

// block solves for up to four functions by successive over-relaxation (Young, 1954): vertex after
// vertex it sets y(v) to the value for which R(v) is zero, and some way beyond. It needs only y, no
// sums over vertices, and the graph may change between its steps.
//
// No eigenvalue of the Jacobi iteration is above 1-a. With the over-relaxation that is best for
// 1-a, and a matrix such as ours, symmetric and positive definite without positive values off the
// diagonal, each late pass multiplies the error by a factor between overshoot and its square root
// (Kahan, 1958; Varga, Matrix Iterative Analysis, theorem 4.9). The square root is the factor of
// Chebyshev's iteration, and the worst one of conjugate gradients. On simulated networks, with a =
// .1, these took 9 to 14 passes and over-relaxation 6 to 10, without writing three further vectors.
// With a = .01 they took 14 to 20, over-relaxation 15 to 31; on uniformly random graphs 8 and 11.
type block struct {
	keep  float64
	y     []lane   // by vertex
	at    []Vertex // ascending: where a function is not zero
	f     []lane   // there
	omega float64  // 1 + overshoot
}

func newBlock(keep float64) block { return block{keep: keep, omega: 1 + overshoot(keep)} }

// overshoot returns the additional part of a relaxation step beyond the step that makes R(v) zero.
func overshoot(keep float64) float64 { return 2/(1+math.Sqrt(1-keep*keep)) - 1 }

// Bounds of relaxation: stepsPerDigit/sqrt(a) passes gain more than a digit, and a float has 16
// digits. The certificate includes the remaining error.
const (
	stepsPerDigit = 2
	digits        = 18
)

// digitPasses is the number of passes that gain at least one digit, passesMax the number that gains
// all 16.
func digitPasses(keep float64) int { return int(math.Ceil(stepsPerDigit / math.Sqrt(1-keep))) }

func passesMax(keep float64) int { return digits * digitPasses(keep) }

// relax takes a step at the vertices from first to end, in order, and returns the largest |R(v)| /
// (a d(v)) that it met.
func (b *block) relax(view graphstore.View, first, end int) (most float64) {
	alpha := 1 - b.keep
	next, _ := slices.BinarySearch(b.at, Vertex(first))
	for i := first; i < end; i++ {
		v := Vertex(i)
		var s lane
		if weights := view.Weights(v); weights == nil {
			s = gatherLanes(b.y, view.Neighbors(v))
		} else {
			s = gatherLanesWeighted(b.y, view.Neighbors(v), weights)
		}
		y, d := &b.y[i], view.Degree(v)+1
		diagonal := d - b.keep
		step := b.omega / diagonal
		r := lane{
			float64(b.keep*s[0]) - float64(diagonal*y[0]),
			float64(b.keep*s[1]) - float64(diagonal*y[1]),
			float64(b.keep*s[2]) - float64(diagonal*y[2]),
			float64(b.keep*s[3]) - float64(diagonal*y[3]),
		}
		if next < len(b.at) && b.at[next] == v {
			for j, f := range b.f[next] {
				r[j] += float64(alpha * d * f)
			}
			next++
		}
		y[0] += float64(step * r[0])
		y[1] += float64(step * r[1])
		y[2] += float64(step * r[2])
		y[3] += float64(step * r[3])
		top := max(math.Abs(r[0]), math.Abs(r[1]), math.Abs(r[2]), math.Abs(r[3]))
		if top > most*d {
			most = top / d
		}
	}
	return most / alpha
}

// gatherLanes returns the sums of y over the neighbours.
func gatherLanes(y []lane, neighbors []Vertex) lane {
	var s0, s1, s2, s3, t0, t1, t2, t3 float64
	for len(neighbors) >= 2 {
		p, q := &y[neighbors[0]], &y[neighbors[1]]
		s0, s1, s2, s3 = s0+p[0], s1+p[1], s2+p[2], s3+p[3]
		t0, t1, t2, t3 = t0+q[0], t1+q[1], t2+q[2], t3+q[3]
		neighbors = neighbors[2:]
	}
	for _, u := range neighbors {
		p := &y[u]
		s0, s1, s2, s3 = s0+p[0], s1+p[1], s2+p[2], s3+p[3]
	}
	return lane{s0 + t0, s1 + t1, s2 + t2, s3 + t3}
}

// gatherLanesWeighted returns the sums of weight times y over the neighbours.
func gatherLanesWeighted(y []lane, neighbors []Vertex, weights []float64) (s lane) {
	weights = weights[:len(neighbors)]
	for i, u := range neighbors {
		p, w := &y[u], weights[i]
		s[0] += w * p[0]
		s[1] += w * p[1]
		s[2] += w * p[2]
		s[3] += w * p[3]
	}
	return s
}
