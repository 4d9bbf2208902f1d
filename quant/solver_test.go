package quant_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/solve"
)

// instances is how many random problems the solvers face; one in every referenceEvery faces a
// reference that runs until nothing moves. With 1,000,000 (46 s and 15 s) the same claims held.
const (
	instances      = 100_000 / stride
	referenceEvery = 1000

	referenceRounds     = 50 // of the reference for every instance
	referenceRoundsMost = 20_000
)

// quadraticOf returns G and b of the regularised least squares of the classes that
// have a column, written out from the definition.
func quadraticOf(in instance) (class []int, g, b []float64) {
	for i := range in.k {
		var total float64
		for z := range in.z {
			total += in.c[z*in.k+i]
		}
		if total > 0 {
			class = append(class, i)
		}
	}
	n := len(class)
	g, b = make([]float64, n*n), make([]float64, n)
	var diagonal, held float64
	for a, i := range class {
		for c, j := range class {
			for z := range in.z {
				g[a*n+c] += in.c[z*in.k+i] * in.c[z*in.k+j]
			}
		}
		for z := range in.z {
			b[a] += in.c[z*in.k+i] * in.p[z]
		}
		diagonal += g[a*n+a]
		held += in.shares[i]
	}
	pull := 1e-9 * diagonal / float64(n)
	for a, i := range class {
		g[a*n+a] += pull
		b[a] += pull * in.shares[i] / held
	}
	return class, g, b
}

// violation is the largest violation of the optimality conditions at q.
func violation(g, b, q []float64) float64 {
	n := len(q)
	level, total, worst := math.Inf(1), 0.0, 0.0
	gradient := make([]float64, n)
	for a := range q {
		gradient[a] = -b[a]
		for c := range q {
			gradient[a] += g[a*n+c] * q[c]
		}
		level = min(level, gradient[a])
		total += q[a]
		worst = max(worst, -q[a])
	}
	for a, x := range q {
		if x > 0 {
			worst = max(worst, gradient[a]-level)
		}
	}
	return max(worst, math.Abs(total-1))
}

// The least-squares solver must meet the optimality conditions to 1e-12 on every
// kind of matrix, and no accelerated projected gradient may find a better point.
func TestLeastSquaresIsOptimal(t *testing.T) {
	var w quant.Solver
	worst, above := 0.0, math.Inf(-1)
	for seed := range uint64(instances) {
		in := draw(seed)
		q := make([]float64, in.k)
		reported := w.LeastSquares(q, in.c, in.p, in.shares)
		class, g, b := quadraticOf(in)
		at := make([]float64, len(class))
		for a, i := range class {
			at[a] = q[i]
		}
		v := violation(g, b, at)
		worst = max(worst, v, reported)
		if !(v <= 1e-12) || !(reported <= 1e-12) || math.Abs(total(q)-1) > 1e-12 {
			t.Fatalf(
				"seed %d (K %d, Z %d, %s): violation %g, reported %g, q %v", seed, in.k, in.z,
				in.flaw, v, reported, q,
			)
		}
		rounds := referenceRounds
		if seed%referenceEvery == 0 {
			rounds = referenceRoundsMost
		}
		gap := objective(g, b, at) - objective(g, b, projectedGradient(g, b, rounds))
		above = max(above, gap)
		if !(gap <= 1e-10) {
			t.Fatalf(
				"seed %d (K %d, Z %d, %s): objective above the reference by %g", seed, in.k, in.z,
				in.flaw, gap,
			)
		}
	}
	t.Logf(
		"%d instances: worst violation %.1e; worst objective above the reference %.1e", instances,
		worst, above,
	)
}

// objective is 1/2 q'Gq - b'q.
func objective(g, b, q []float64) float64 {
	var v float64
	for a, x := range q {
		v -= b[a] * x
		for c, y := range q {
			v += x * g[a*len(q)+c] * y / 2
		}
	}
	return v
}

// projectedGradient is the reference: FISTA with a simplex projection by bisection.
func projectedGradient(g, b []float64, rounds int) []float64 {
	n := len(b)
	var lipschitz float64
	for a := range n {
		lipschitz += g[a*n+a]
	}
	q, last, at := make([]float64, n), make([]float64, n), make([]float64, n)
	for a := range q {
		q[a] = 1 / float64(n)
	}
	copy(last, q)
	momentum := 1.0
	for range rounds {
		next := (1 + math.Sqrt(1+4*momentum*momentum)) / 2
		for a := range at {
			at[a] = q[a] + (momentum-1)/next*(q[a]-last[a])
		}
		copy(last, q)
		for a := range q {
			gradient := -b[a]
			for c := range at {
				gradient += g[a*n+c] * at[c]
			}
			q[a] = at[a] - gradient/lipschitz
		}
		bisect(q)
		momentum = next
	}
	return q
}

// bisect projects x on the simplex by searching for the threshold.
func bisect(x []float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range x {
		low, high = min(low, v-1), max(high, v)
	}
	for range 60 {
		middle := (low + high) / 2
		var s float64
		for _, v := range x {
			s += max(v-middle, 0)
		}
		if s > 1 {
			low = middle
		} else {
			high = middle
		}
	}
	for i := range x {
		x[i] = max(x[i]-(low+high)/2, 0)
	}
	normalise(x)
}

// total is the sum of x.
func total(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}

// The likelihood solver must close its duality gap to 1e-10, checked from the
// definition, and beat a long run of expectation maximisation.
func TestMaximumLikelihoodIsOptimal(t *testing.T) {
	var w quant.Solver
	worst, slack := 0.0, math.Inf(-1)
	for seed := range uint64(instances / 2) {
		in := draw(seed)
		q := make([]float64, in.k)
		value, reported := w.MaximumLikelihood(q, in.c, in.p, in.shares)
		c, class := smoothed(in)
		at := make([]float64, len(class))
		for a, i := range class {
			at[a] = q[i]
		}
		exact, gap := likelihoodAt(c, in.p, at)
		worst = max(worst, gap, reported)
		if !(gap <= 2e-10) || !(reported <= 1e-10) || math.Abs(value-exact) > 1e-9 ||
			math.Abs(total(q)-1) > 1e-12 {
			t.Fatalf("seed %d (K %d, Z %d, %s): gap %g, reported %g, value %v against %v, q %v",
				seed, in.k, in.z, in.flaw, gap, reported, value, exact, q)
		}
		if seed%referenceEvery == 0 {
			reference := make([]float64, len(class))
			for a := range reference {
				reference[a] = 1 / float64(len(class))
			}
			for range 5000 {
				expectationStep(c, in.p, reference)
			}
			best, _ := likelihoodAt(c, in.p, reference)
			slack = max(slack, best-exact)
			if !(best-exact <= 1e-10) {
				t.Fatalf(
					"seed %d (K %d, Z %d, %s): below expectation maximisation by %g", seed, in.k,
					in.z, in.flaw, best-exact,
				)
			}
		}
	}
	t.Logf(
		"%d instances: worst gap %.1e; worst below expectation maximisation %.1e", instances/2,
		worst, slack,
	)
}

// smoothed returns the columns of C that are not empty, smoothed, class-major.
func smoothed(in instance) (c [][]float64, class []int) {
	for i := range in.k {
		column := make([]float64, in.z)
		for z := range column {
			column[z] = in.c[z*in.k+i]
		}
		if total(column) == 0 {
			continue
		}
		for z := range column {
			column[z] += 1e-9
		}
		c, class = append(c, normalise(column)), append(class, i)
	}
	return c, class
}

// likelihoodAt returns sum p log Cq and the duality gap.
func likelihoodAt(c [][]float64, p, q []float64) (value, gap float64) {
	fit := make([]float64, len(p))
	for a, column := range c {
		for z, x := range column {
			fit[z] += q[a] * x
		}
	}
	for z, x := range p {
		if x > 0 {
			value += x * math.Log(fit[z])
		}
	}
	gap = math.Inf(-1)
	for _, column := range c {
		var s float64
		for z, x := range column {
			s += p[z] * x / fit[z]
		}
		gap = max(gap, s-total(p))
	}
	return value, gap
}

// expectationStep is one step of expectation maximisation.
func expectationStep(c [][]float64, p, q []float64) {
	fit := make([]float64, len(p))
	for a, column := range c {
		for z, x := range column {
			fit[z] += q[a] * x
		}
	}
	for a, column := range c {
		var s float64
		for z, x := range column {
			s += p[z] * x / fit[z]
		}
		q[a] *= s
	}
	normalise(q)
}

// Few labels of hard predictions leave classes that hardly differ, and cells that no label shows:
// the likelihood must reach its maximum there too.
func TestLikelihoodOfHardCellsIsOptimal(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 77))
		k := 2 + int(seed%7)
		c, p, shares := make([]float64, k*k), make([]float64, k), make([]float64, k)
		right := r.Float64()
		for i := range k {
			n := 1 + r.IntN(60)
			for range n {
				z := i
				if r.Float64() > right {
					z = r.IntN(k)
				}
				c[z*k+i] += 1 / float64(n)
			}
			shares[i] = 1 / float64(k)
		}
		main := r.IntN(k)
		for range 100 {
			z := main
			if r.Float64() < 0.2 {
				z = r.IntN(k)
			}
			p[z] += 0.01
		}
		q := make([]float64, k)
		_, gap := new(quant.Solver).MaximumLikelihood(q, c, p, shares)
		if gap > 1e-10 {
			t.Fatalf("seed %d, %d classes: gap %v at %v", seed, k, gap, q)
		}
	}
}

// The projection must be the nearest point: no step towards a vertex of the
// simplex may come closer.
func TestProjectSimplexIsNearest(t *testing.T) {
	for seed := range uint64(instances) {
		rng := rand.New(rand.NewPCG(seed, 5))
		v := make([]float64, 1+rng.IntN(13))
		for i := range v {
			v[i] = rng.NormFloat64() * math.Pow(10, float64(rng.IntN(5)-2))
		}
		x := solve.ProjectSimplex(make([]float64, len(v)), v)
		if math.Abs(total(x)-1) > 1e-9 {
			t.Fatalf("seed %d: sum %v", seed, total(x))
		}
		var along float64
		for i := range v {
			along += (v[i] - x[i]) * x[i]
		}
		for i := range v {
			if excess := (v[i] - x[i]) - along; x[i] < 0 || excess > 1e-9*(1+math.Abs(along)) {
				t.Fatalf("seed %d: %v is not nearest to %v (class %d, %g)", seed, x, v, i, excess)
			}
		}
	}
}
