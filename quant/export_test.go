package quant

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// What the tests hold the solvers to with matrices of their own.

// LeastSquares writes to dst the q that minimises |Cq - p|^2 + e |q - shares|^2
// over the simplex, and returns the residual of its optimality conditions, which
// is at most 1e-12 for a confusion matrix. c is Z x K, entry (z, i) at z*K+i, with
// K = len(dst) and Z = len(p); e is 1e-9 times the mean diagonal of C'C. A class
// whose column is zero gets no share; if all are zero the answer is shares.
// It panics on lengths that do not match. Primal active set with Cholesky,
// O(Z K^2 + K^3) a round.
func (w *Solver) LeastSquares(dst, c, p, shares []float64) (residual float64) {
	m := &confusion{}
	if !m.load(dst, c, p, shares) {
		copy(dst, shares)
		return 0
	}
	solved := m.leastSquares(p, shares)
	scatter(dst, m.class, solved.q)
	return solved.residual()
}

// scatter writes the values of the supported classes to their places in dst and
// zero elsewhere.
func scatter(dst []float64, class []int, values []float64) {
	clear(dst)
	for a, i := range class {
		dst[i] = values[a]
	}
}

// load takes a matrix handed in by a caller: it keeps the columns that are not
// zero and reports whether there is one.
func (m *confusion) load(dst, c, p, shares []float64) bool {
	k, z := len(dst), len(p)
	if k == 0 || z == 0 || len(c) != z*k || len(shares) != k {
		panic(fmt.Sprintf("quant: %d entries of C for %d cells and %d classes, %d shares",
			len(c), z, k, len(shares)))
	}
	m.z, m.c = z, make([]float64, z*k)
	for i := range k {
		column := m.c[m.k*z : (m.k+1)*z]
		var weight float64
		for j := range z {
			column[j] = c[j*k+i]
			weight += column[j]
		}
		if weight > 0 {
			m.class = append(m.class, i)
			m.k++
		}
	}
	return m.k > 0
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
	m := &confusion{}
	if !m.load(dst, c, p, shares) {
		copy(dst, shares)
		return math.Inf(-1), 0
	}
	m.smooth()
	w.shares = shares
	q := w.start(m, nil)
	logLikelihood, gap = m.likelihood(q, p)
	scatter(dst, m.class, q)
	return logLikelihood, gap
}

// smooth adds smoothing to every entry and divides every column by its sum.
func (m *confusion) smooth() {
	for a := range m.k {
		column := m.column(a)
		var total float64
		for z := range column {
			column[z] += smoothing
			total += column[z]
		}
		for z := range column {
			column[z] /= total
		}
	}
}

// residual returns the largest violation of the optimality conditions of q: the
// gradient is one value on the support, no smaller elsewhere, and q sums to one.
func (m *quadratic) residual() float64 {
	var level, weight float64
	gradient := make([]float64, m.n)
	for i := range m.n {
		gradient[i] = floats.Dot(m.g[i*m.n:i*m.n+m.n], m.q) - m.b[i]
		level += m.q[i] * gradient[i]
		weight += m.q[i]
	}
	level /= weight
	worst := math.Abs(weight - 1)
	for i, g := range gradient {
		if m.q[i] > 0 {
			worst = max(worst, math.Abs(g-level))
		} else {
			worst = max(worst, level-g)
		}
	}
	return worst
}

// Combine mixes an estimate by audit labels alone into one of auto.
func Combine(q, x, v, vx []float64) (mixed []float64, weight float64, flags []string) {
	k := len(q)
	fill := func(q, v []float64) *answer {
		a := newAnswer(k)
		copy(a.Share, q)
		copy(a.free, q)
		for i := range k {
			a.v[i] = v[i]
		}
		return a
	}
	a := fill(q, v)
	a.combine(fill(x, vx))
	return a.Share, a.auditWeight, a.contradicted(nil)
}

// Influence returns what an estimate of k classes publishes for a covariance of the coefficients and
// the derivative g of the shares by them, k rows.
func Influence(k int, coefficients, g []float64) []float64 {
	return influence(k, coefficients, g)
}

// Add counts a member with its class, its prediction, its multiplicity and the probability
// that it was drawn with.
func (a *Audit) Add(class int, p []float64, multiplicity, pi float64) {
	y := make([]float64, len(p))
	y[class] = 1
	yp := make([]float64, len(p))
	yp[class] = p[class]
	a.Labels++
	a.Expect(y, p, yp, multiplicity, pi, 1)
}

// Weighted returns the effective number of labels of weights g (r a + s), and the variances of their mean residual.
func (l *Residuals) Weighted(r, s float64) (effective float64, variances []float64) {
	w, d := weighting{r: r, s: s}, make([]float64, l.K)
	variances = make([]float64, l.K)
	l.mean(d, w)
	l.variance(variances, d, w)
	return l.effective(w), variances
}

// Times returns the sums of labels that count n times each, with masses scaled by f.
func (r *Residuals) Times(n, f float64) *Residuals {
	times := func(x []float64, by float64) []float64 {
		out := make([]float64, len(x))
		scaleTo(out, by, x)
		return out
	}
	out := *r
	out.Sum, out.Mass, out.First = n*r.Sum, n*f*r.Mass, [2][]float64{times(r.First[0], n), times(r.First[1], n*f)}
	out.Squares = [3]float64{n * r.Squares[0], n * f * r.Squares[1], n * f * f * r.Squares[2]}
	out.weighted = func(w weighting) *Residuals {
		x := *r.weighted(weighting{lambda: w.lambda, r: w.r * f, s: w.s})
		x.Sum, x.Squares[0], x.FirstSquare, x.Second = n*x.Sum, n*x.Squares[0], times(x.FirstSquare, n), times(x.Second, n)
		return &x
	}
	return &out
}

// Quantify is Solver.Estimate with memory of its own.
func Quantify(s *Statistics, o Options) (e Estimate, err error) {
	err = new(Solver).Estimate(&e, s, o)
	return e, err
}

// InverseJacobian returns that of shares q where the mean of R R' is s.
func InverseJacobian(q, s []float64, gamma float64) []float64 { return inverseJacobian(q, s, gamma) }

// SetMembers gives a posterior a cell for every member, of this multiplicity and posterior.
func (p *Posterior) SetMembers(each func(visit func(multiplicity float64, pi []float64))) {
	p.Means, p.Counts, p.Squares = nil, nil, 0
	each(func(multiplicity float64, pi []float64) {
		p.Means = append(p.Means, pi...)
		p.Counts = append(p.Counts, multiplicity)
		p.Squares += multiplicity * multiplicity
	})
}
