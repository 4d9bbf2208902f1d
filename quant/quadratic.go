package quant

import "math"

const (
	// multiplierTolerance is the distance below zero, relative to the scale of the problem,
	// from which on a multiplier releases its bound.
	multiplierTolerance = 1e-15
	// activeSetRoundsPerClass bounds the rounds of the active set. When it is hit
	// the feasible point reached is returned; its residual tells.
	activeSetRoundsPerClass = 20
)

// quadratic is the workspace of one strictly convex quadratic program over the
// simplex, min 1/2 q'Gq - b'q. Only the lower triangle of g is read by factor;
// the matrix is kept whole for the residuals.
type quadratic struct {
	n    int
	g    []float64 // n x n, symmetric
	b    []float64 // n
	q    []float64 // n: start, then solution
	l    []float64 // factor of the free block
	u, w []float64 // G_FF^-1 b_F and G_FF^-1 1
	r    []float64 // residual or gradient
	x    []float64 // candidate, by class
	free []int     // indices not at their bound, ascending
}

// reserve makes room for n classes.
func (m *quadratic) reserve(n int) {
	m.n = n
	m.g, m.l = resize(m.g, n*n), resize(m.l, n*n)
	m.b, m.q = resize(m.b, n), resize(m.q, n)
	m.u, m.w = resize(m.u, n), resize(m.w, n)
	m.r, m.x = resize(m.r, n), resize(m.x, n)
	if cap(m.free) < n {
		m.free = make([]int, 0, n)
	}
}

// solve leaves the solution in q, which holds a feasible start. It is the primal
// active-set method (Nocedal and Wright, 2006, section 16.5) with a fresh
// Cholesky factor each round. G is positive definite, so the solution is unique.
func (m *quadratic) solve() {
	switch m.n {
	case 1:
		m.q[0] = 1
		return
	case 2:
		m.solvePair()
		return
	}
	m.free = m.free[:0]
	for i, v := range m.q {
		if v > 0 {
			m.free = append(m.free, i)
		}
	}
	added := -1
	for range activeSetRoundsPerClass * m.n {
		nu := m.candidate()
		blocked, step := m.blocking()
		if blocked >= 0 && blocked == added && step == 0 {
			return // the released bound holds at once: its multiplier was rounding
		}
		m.move(step)
		if blocked >= 0 {
			m.drop(blocked)
			added = -1
			continue
		}
		if added = m.release(nu); added < 0 {
			return
		}
	}
}

// solvePair is the closed form for two classes: the unconstrained minimum along
// the segment, clipped. The smaller share is computed, the larger is the rest, so
// that a small one keeps its digits.
func (m *quadratic) solvePair() {
	g, b := m.g, m.b
	curvature := (g[0] - g[1]) + (g[3] - g[2])
	if !(curvature > 0) {
		m.q[0], m.q[1] = 0.5, 0.5
		return
	}
	first := ((b[0] - b[1]) + (g[3] - g[1])) / curvature
	if first <= 0.5 {
		m.q[0] = max(first, 0)
		m.q[1] = 1 - m.q[0]
		return
	}
	m.q[1] = max(((b[1]-b[0])+(g[0]-g[2]))/curvature, 0)
	m.q[0] = 1 - m.q[1]
}

// candidate writes to x the minimum on the free classes under the sum constraint
// alone and returns the common value of the gradient there. One step of iterative
// refinement keeps the residual at rounding level when columns almost coincide.
func (m *quadratic) candidate() (nu float64) {
	f := len(m.free)
	for a, i := range m.free {
		for c, j := range m.free[:a+1] {
			m.l[a*f+c] = m.g[i*m.n+j]
		}
		m.u[a], m.w[a] = m.b[i], 1
	}
	cholesky(m.l, f)
	u, w := m.u[:f], m.w[:f]
	choleskySolve(m.l, f, u)
	choleskySolve(m.l, f, w)
	nu = (1 - sum(u)) / sum(w)
	clear(m.x)
	for a, i := range m.free {
		m.x[i] = u[a] + nu*w[a]
	}
	for a, i := range m.free { // r = b + nu - G x, the error of stationarity
		u[a] = m.b[i] + nu - dot(m.g[i*m.n:i*m.n+m.n], m.x)
	}
	lack := 1 - sum(m.x)
	choleskySolve(m.l, f, u)
	shift := (lack - sum(u)) / sum(w)
	for a, i := range m.free {
		m.x[i] += u[a] + shift*w[a]
	}
	return nu + shift
}

// blocking returns the free class whose bound stops the move from q to x first,
// lowest index on ties, and the step at which it does; -1 and 1 if none does.
func (m *quadratic) blocking() (class int, step float64) {
	class, step = -1, 1
	for _, i := range m.free {
		if x := m.x[i]; x < 0 {
			if s := m.q[i] / (m.q[i] - x); class < 0 || s < step {
				class, step = i, s
			}
		}
	}
	return class, step
}

// move takes q the given part of the way to x.
func (m *quadratic) move(step float64) {
	if step == 1 {
		copy(m.q, m.x)
		return
	}
	for _, i := range m.free {
		m.q[i] = max(m.q[i]+step*(m.x[i]-m.q[i]), 0)
	}
}

// drop puts a class at its bound.
func (m *quadratic) drop(class int) {
	m.q[class] = 0
	kept := m.free[:0]
	for _, i := range m.free {
		if i != class {
			kept = append(kept, i)
		}
	}
	m.free = kept
}

// release frees the class at its bound with the most negative multiplier, lowest
// index on ties, and returns it; -1 when none is negative beyond rounding.
func (m *quadratic) release(nu float64) int {
	best, value := -1, 0.0
	next := 0
	for i := range m.n {
		if next < len(m.free) && m.free[next] == i {
			next++
			continue
		}
		row := m.g[i*m.n : i*m.n+m.n]
		scale := math.Abs(m.b[i]) + math.Abs(nu) + row[i]
		if d := dot(row, m.q) - m.b[i] - nu; d < value && d < -multiplierTolerance*scale {
			best, value = i, d
		}
	}
	if best >= 0 {
		m.free = append(m.free, best)
		for a := len(m.free) - 1; a > 0 && m.free[a-1] > best; a-- {
			m.free[a-1], m.free[a] = m.free[a], m.free[a-1]
		}
	}
	return best
}
