package diffusion

import (
	"math"

	"gqlstream/graphstore"
)

// scratchBytesMax bounds what conjugate gradients take beside the dual, 24 bytes a vertex and
// function: above it the functions are solved for in blocks, each with passes of its own.
const scratchBytesMax = 1 << 30

func (g *Dual) scratchMax() int {
	if g.config.scratchBytesMax > 0 {
		return g.config.scratchBytesMax
	}
	return scratchBytesMax
}

// doneShare is the share of its first squared residual at which a function has no digit
// left to gain; going on with numbers that small would end in zero by zero.
const doneShare = 1e-34

// conjugate is Field.conjugate for the functions first to last-1, side by side, until
// all their residuals are within goal. It leaves R in the cells as it was.
func (g *Dual) conjugate(view graphstore.View, first, last int, goal float64) {
	n, l := len(g.rows), last-first
	memory := make([]float64, 3*n*l+4*l)
	r, p, q := memory[:n*l], memory[n*l:2*n*l], memory[2*n*l:3*n*l]
	rho, next, curvature := memory[3*n*l:][:l], memory[3*n*l+l:][:l], memory[3*n*l+2*l:][:l]
	done := memory[3*n*l+3*l:]
	for v := range g.rows {
		d, from := g.residuals(Vertex(v))
		for i, x := range from[first:last] {
			r[v*l+i] = x
			p[v*l+i] = x / (d - g.keep)
			rho[i] += x * x / (d - g.keep)
		}
	}
	for i, x := range rho {
		done[i] = doneShare * x
	}
	for range int(stepsPerDigit * digits / math.Sqrt(g.alpha)) {
		g.apply(view, p, q, curvature)
		g.work.Iterations++
		for i := range rho {
			next[i] = 0
			if rho[i] > done[i] && curvature[i] > 0 {
				curvature[i] = rho[i] / curvature[i]
			} else {
				curvature[i] = 0 // rounding is all that is left of this function
			}
		}
		if g.descend(first, curvature, r, p, q, next) <= goal {
			return
		}
		g.turn(rho, next, p, r)
		rho, next = next, rho
	}
}

// apply writes (D - (1-a) A) p to q, and p . q of every function to dots.
func (g *Dual) apply(view graphstore.View, p, q, dots []float64) {
	clear(q)
	clear(dots)
	l := len(dots)
	for v := range g.rows {
		d := g.cells[v*g.stride]
		to, from := q[v*l:][:l], p[v*l:][:l]
		g.addNeighbors(view, Vertex(v), p, to)
		for i, x := range from {
			to[i] = (d-g.keep)*x - g.keep*to[i]
			dots[i] += x * to[i]
		}
	}
}

// descend steps along p, in the functions from first on, and returns the largest |r| / (a d); it adds r . r / diag
// of every function to rho.
func (g *Dual) descend(first int, step, r, p, q, rho []float64) float64 {
	top := 0.0
	for v := range g.rows {
		d, y := g.cells[v*g.stride], g.y[v*g.l+first:]
		for i := range step {
			at := v*len(step) + i
			y[i] += step[i] * p[at]
			x := r[at] - step[i]*q[at]
			r[at] = x
			rho[i] += x * x / (d - g.keep)
			top = max(top, math.Abs(x)/d)
		}
	}
	return top / g.alpha
}

// turn makes the next directions, conjugate to those before.
func (g *Dual) turn(before, after, p, r []float64) {
	for v := range g.rows {
		inverse := 1 / (g.cells[v*g.stride] - g.keep)
		for i := range before {
			beta := 0.0
			if before[i] > 0 {
				beta = after[i] / before[i]
			}
			at := v*len(before) + i
			p[at] = r[at]*inverse + beta*p[at]
		}
	}
}
