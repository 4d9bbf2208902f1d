package quant

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// Solvers for tests with matrices of their own.

// LeastSquares writes to dst the q that minimises |Cq - p|^2 + e |q - shares|^2 over the simplex,
// and returns the residual of its optimality conditions, which is at most 1e-12 for a confusion
// matrix. c is Z x K, entry (z, i) at z*K+i, with K = len(dst) and Z = len(p); e is 1e-9 times the
// mean diagonal of C'C. A class with a zero column gets no share; if all columns are zero the
// answer is shares. It panics on lengths that do not match. Primal active set with Cholesky, O(Z
// K^2 + K^3) a round.
func (w *Solver) LeastSquares(dst, c, p, shares []float64) (residual float64) {
	m, class := load(dst, c, p, shares)
	if m.K == 0 {
		copy(dst, shares)
		return 0
	}
	solved := m.LeastSquares(p, pick(shares, class))
	scatter(dst, class, solved.Q)
	return violation(solved)
}

// scatter writes the values of the supported classes to their places in dst and
// zero elsewhere.
func scatter(dst []float64, class []int, values []float64) {
	clear(dst)
	for a, i := range class {
		dst[i] = values[a]
	}
}

// pick returns the values of some classes.
func pick(values []float64, class []int) (of []float64) {
	for _, i := range class {
		of = append(of, values[i])
	}
	return of
}

// load takes a matrix handed in by a caller: the columns that are not zero, and which they are.
func load(dst, c, p, shares []float64) (m *solve.Columns, class []int) {
	k, z := len(dst), len(p)
	if k == 0 || z == 0 || len(c) != z*k || len(shares) != k {
		panic(fmt.Sprintf("quant: %d entries of C for %d cells and %d classes, %d shares",
			len(c), z, k, len(shares)))
	}
	m = &solve.Columns{Z: z, C: make([]float64, z*k)}
	for i := range k {
		column, weight := m.C[m.K*z:(m.K+1)*z], 0.0
		for j := range z {
			column[j] = c[j*k+i]
			weight += column[j]
		}
		if weight > 0 {
			class = append(class, i)
			m.K++
		}
	}
	return m, class
}

// MaximumLikelihood writes to dst the q that maximises sum over z of
// p_z log (Cq)_z over the simplex, where C is c with 1e-9 added to every entry
// and its columns divided by their sums. It returns the maximum and the duality
// gap max_i sum_z p_z C_zi/(Cq)_z - sum p, at most 1e-10: no other q is better by more.
// Shapes, zero columns and panics are those of LeastSquares; among equally good
// answers it takes one near shares.
// Sequential quadratic programming with the same active set (Kim, Carbonetto,
// Stephens and Anitescu, 2020). About 5 rounds of O(Z K^2).
func (w *Solver) MaximumLikelihood(dst, c, p, shares []float64) (logLikelihood, gap float64) {
	m, class := load(dst, c, p, shares)
	if m.K == 0 {
		copy(dst, shares)
		return math.Inf(-1), 0
	}
	smooth(m)
	q := pick(shares, class)
	for a := range q {
		q[a] = (q[a] + 1/float64(m.K)) / 2
	}
	logLikelihood, gap = m.Likelihood(q, p)
	scatter(dst, class, q)
	return logLikelihood, gap
}

// smooth adds smoothing to every entry and divides every column by its sum.
func smooth(m *solve.Columns) {
	for a := range m.K {
		column := m.Column(a)
		var total float64
		for z := range column {
			column[z] += 1e-9
			total += column[z]
		}
		for z := range column {
			column[z] /= total
		}
	}
}

// violation returns the largest violation of the optimality conditions of q: the
// gradient is one value on the support, no smaller elsewhere, and q sums to one.
func violation(m *solve.Quadratic) float64 {
	var level, weight float64
	gradient := make([]float64, m.N)
	for i := range m.N {
		gradient[i] = floats.Dot(m.G[i*m.N:i*m.N+m.N], m.Q) - m.B[i]
		level += m.Q[i] * gradient[i]
		weight += m.Q[i]
	}
	level /= weight
	worst := math.Abs(weight - 1)
	for i, g := range gradient {
		if m.Q[i] > 0 {
			worst = max(worst, math.Abs(g-level))
		} else {
			worst = max(worst, level-g)
		}
	}
	return worst
}

// Quantify is Solver.Estimate with memory of its own.
func Quantify(s *stats.Statistics, o Options) (e Estimate, err error) {
	err = new(Solver).Estimate(&e, s, o)
	return e, err
}

// WithoutQuantifier lists the methods of which the row names no quantifier.
func WithoutQuantifier() (list []Method) {
	for i := range methods {
		if methods[i].quantifier == nil {
			list = append(list, methods[i].name)
		}
	}
	return list
}
