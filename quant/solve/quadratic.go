package solve

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	// multiplierTolerance bounds how far below zero a multiplier may be before it releases its
	// bound, relative to the scale of the problem.
	multiplierTolerance = 1e-15
	// activeSetRoundsPerClass bounds the rounds of the active set. When it is hit
	// the feasible point reached is returned; its residual tells.
	activeSetRoundsPerClass = 20
)

// Quadratic is the workspace of one strictly convex quadratic program over the
// simplex, min 1/2 q'Gq - b'q.
type Quadratic struct {
	N    int
	G    []float64 // N x N, symmetric
	B    []float64 // N
	Q    []float64 // N: start, then solution
	l    []float64 // factor of the free block
	u, w []float64 // G_FF^-1 b_F and G_FF^-1 1
	x    []float64 // candidate, by class
	free []int     // indices not at their bound, ascending
}

// newQuadratic returns a program of n classes, all zeros.
func newQuadratic(n int) *Quadratic {
	one := func() []float64 { return make([]float64, n) }
	all := func() []float64 { return make([]float64, n*n) }
	return &Quadratic{
		N:    n,
		G:    all(),
		B:    one(),
		Q:    one(),
		l:    all(),
		u:    one(),
		w:    one(),
		x:    one(),
		free: make([]int, 0, n),
	}
}

// Solve leaves the solution in Q, which holds a start. Classes with a negative share go to their
// bound together. Classes with a negative multiplier come back one by one. Each round takes a fresh
// Cholesky factor (Lawson and Hanson, 1974, chapter 23). G is positive definite, so the solution is
// unique.
func (m *Quadratic) Solve() {
	m.free = m.free[:0]
	for i, v := range m.Q {
		if v > 0 {
			m.free = append(m.free, i)
		}
	}
	released := -1
	for round := range activeSetRoundsPerClass * m.N {
		nu := m.candidate()
		all, least := len(m.free), slices.Min(m.x)
		m.free = slices.DeleteFunc(m.free, func(i int) bool {
			// one alone where several go round in circles
			return m.x[i] < 0 && (round < 2*m.N || m.x[i] == least)
		})
		switch {
		case len(m.free) == all:
			copy(m.Q, m.x)
			if released = m.release(nu); released < 0 {
				return
			}
		case released >= 0 && m.x[released] < 0 && len(m.free) == all-1:
			return // the released bound holds at once: its multiplier was rounding
		default:
			released = -1
		}
	}
}

// candidate writes to x the minimum on the free classes under the sum constraint
// alone and returns the common value of the gradient there. One step of iterative
// refinement keeps the residual at rounding level when columns almost coincide.
func (m *Quadratic) candidate() (nu float64) {
	f := len(m.free)
	for a, i := range m.free {
		for c, j := range m.free[:a+1] {
			m.l[a*f+c] = m.G[i*m.N+j]
		}
		m.u[a], m.w[a] = m.B[i], 1
	}
	Cholesky(m.l, f)
	u, w := m.u[:f], m.w[:f]
	choleskySolve(m.l, f, u)
	choleskySolve(m.l, f, w)
	nu = (1 - Sum(u)) / Sum(w)
	clear(m.x)
	for a, i := range m.free {
		m.x[i] = u[a] + nu*w[a]
	}
	for a, i := range m.free { // r = b + nu - G x, the error of stationarity
		u[a] = m.B[i] + nu - floats.Dot(m.G[i*m.N:i*m.N+m.N], m.x)
	}
	lack := 1 - Sum(m.x)
	choleskySolve(m.l, f, u)
	shift := (lack - Sum(u)) / Sum(w)
	for a, i := range m.free {
		m.x[i] += u[a] + shift*w[a]
	}
	return nu + shift
}

// release frees the class at its bound with the most negative multiplier, lowest
// index on ties, and returns it; -1 when none is negative beyond rounding.
func (m *Quadratic) release(nu float64) int {
	best, value := -1, 0.0
	next := 0
	for i := range m.N {
		if next < len(m.free) && m.free[next] == i {
			next++
			continue
		}
		row := m.G[i*m.N : i*m.N+m.N]
		scale := math.Abs(m.B[i]) + math.Abs(nu) + row[i]
		if d := floats.Dot(row, m.Q) - m.B[i] - nu; d < value && d < -multiplierTolerance*scale {
			best, value = i, d
		}
	}
	if best >= 0 {
		at, _ := slices.BinarySearch(m.free, best)
		m.free = slices.Insert(m.free, at, best)
	}
	return best
}
