package quant

import "gonum.org/v1/gonum/floats"

// Solver holds the workspaces of the quantifiers. The zero value is ready; what members are read
// into grows to the largest community seen and is reused. A Solver belongs to one goroutine at a
// time and carries nothing from one call to the next except what Snapshot reads: results do not
// depend on what was solved before.
type Solver struct {
	shares    []float64 // class shares of the calibration labels
	posterior automatic // workspace of auto
	ans       *answer   // of the method
	last      *Snapshot // of the last Estimate
}

// cells returns the tallies a recipe reads, or nil.
func (s *Statistics) cells(r recipe) *Cells {
	switch {
	case r.hard && r.pair:
		return s.HardPair
	case r.hard:
		return s.Hard
	case r.pair:
		return s.SoftPair
	default:
		return s.Soft
	}
}

// confusion returns that of a recipe under one weighting.
func (s *Statistics) confusion(r recipe, w weighting, smoothing float64) *confusion {
	m := s.cells(r).weigh(s.K, w, smoothing)
	if m.weights = w; !r.hard {
		m.rows = s.Rows
	}
	return m
}

// adjusted returns the adjusted count of one recipe under one weighting:
// least squares or likelihood, and the variances. start, if not nil, is a guess of
// the shares of all classes that a likelihood starts from.
func (w *Solver) adjusted(s *Statistics, r recipe, weights weighting, start []float64) *answer {
	ans, p, smooth := newAnswer(s.K), s.cells(r).P, 0.0
	ans.lambda = weights.lambda
	if r.likelihood {
		smooth = smoothing
	}
	m := s.confusion(r, weights, smooth)
	if m.k == 0 {
		copy(ans.Share, w.shares)
		copy(ans.free, w.shares)
		return ans
	}
	var q []float64
	if r.likelihood {
		q = w.start(m, start)
		ans.logLikelihood, _ = m.likelihood(q, p)
		ans.logLikelihood *= s.Profiled
	} else {
		q = m.leastSquares(p, w.shares).q
	}
	for b, i := range m.class {
		ans.Share[i], ans.NEff[i] = q[b], m.nEff[b]
	}
	w.variances(ans, s, r, m, q)
	return ans
}

const (
	// smoothing is added to every entry of C before a likelihood is taken, so that
	// a cell no label has seen costs a lot instead of everything.
	smoothing = 1e-9
	// startFloor keeps a start of a likelihood away from the bounds, where cells
	// that only one class explains would have nearly no probability.
	startFloor = 1e-2
)

// start returns the start of a likelihood: halfway between the shares of
// the labels and equal ones, or close to a guess.
func (w *Solver) start(m *confusion, guess []float64) []float64 {
	q, equal := make([]float64, m.k), 1/float64(m.k)
	for a, i := range m.class {
		if guess == nil {
			q[a] = (w.shares[i] + equal) / 2
		} else {
			q[a] = max(guess[i], startFloor*equal)
		}
	}
	return q
}

// likelihood moves q, which need not sum to one, to where sum p log Cq is largest.
func (m *confusion) likelihood(q, p []float64) (logLikelihood, gap float64) {
	u, row, even := &mixture{}, make([]float64, m.k), make([]float64, m.k)
	u.clear(m.k)
	for z, x := range p {
		if x > 0 {
			for a := range row {
				row[a] = m.c[a*m.z+z]
			}
			u.add(x, row)
		}
	}
	for a := range even {
		even[a] = 1
	}
	scaleTo(q, 1/sum(q), q)
	gap = u.maximise(q, even, 1, 0, gapTolerance, u)
	return u.logLikelihood(), gap
}

// sample is the effective number of profiled members, (sum m)^2 / sum m^2 over
// their multiplicities m: a vertex counted ten times is one observation, not ten.
func (s *Statistics) sample() float64 {
	if s.Squares > 0 {
		return s.Profiled * s.Profiled / s.Squares
	}
	return s.Profiled
}

// answer holds the estimate of a method for the unlabelled members, before the labelled
// ones are counted in. Vectors have K entries, matrices K x K.
type answer struct {
	k      int
	Share  []float64 // prevalence among the unlabelled
	NEff   []float64 // effective labels of each class
	Member []float64 // variance of each share from one member
	free   []float64 // the shares without the bounds at zero: where intervals centre
	v      []float64 // K: variances of free
	// (i, k) at i*K+k: variance of share k from the labels of class i, were its share one
	spreads []float64
	parts   []float64 // (i, k) at i*K+k: variance of share k from the labels of class i
	holds   []float64 // shares that intervals hold besides Share; nil: none
	lambda  float64
	unseen  float64 // share of the members' profiles that no label shows
	exact   bool    // variances from the profiles themselves, not from the stand-in
	nothing bool    // of counts: the predictions tell nothing of the classes

	logLikelihood float64 // of the members' profiles, where the method has one
	// of auto: (column, k), errors of the coefficients times their effect on share k
	influence []float64

	clustered bool        // of auto: the labels are in few places
	auto      *autoAnswer // what only auto has; nil for other methods

	audited     bool    // audit labels decide, in part at least, so that every class is supported
	auditWeight float64 // of the estimate from them alone
	// K: by which auto differs from that, in standard errors of the difference; nil: not compared
	auditErrors []float64
	auditPoints float64 // the difference of the class where that is largest, in points
}

// newShares returns an answer of zeros without variances.
func newShares(k int) *answer {
	x := make([]float64, 3*k)
	return &answer{k: k, free: x[2*k:], Share: x[:k:k], NEff: x[k : 2*k : 2*k]}
}

// newAnswer returns an answer of zeros.
func newAnswer(k int) *answer { return newShares(k).withVariances() }

// withVariances sets all variances of an answer to zero, and returns it.
func (a *answer) withVariances() *answer {
	k, x := a.k, make([]float64, 2*a.k*(1+a.k))
	a.Member, a.v, a.spreads, a.parts = x[:k:k], x[k:2*k:2*k], x[2*k:2*k+k*k:2*k+k*k], x[2*k+k*k:]
	return a
}

// supported returns the number of classes that have labels of any weight.
func (a *answer) supported() (n int) {
	for _, x := range a.NEff {
		if x > 0 {
			n++
		}
	}
	return n
}

// blend adds x to a with the given weight. Variances of different answers from
// the same data are averaged, never summed.
func (a *answer) blend(weight float64, x *answer) {
	axpy(a.Share, weight, x.Share)
	axpy(a.free, weight, x.free)
	axpy(a.v, weight, x.v)
	axpy(a.spreads, weight, x.spreads)
	axpy(a.parts, weight, x.parts)
	axpy(a.Member, weight, x.Member)
	axpy(a.NEff, weight, x.NEff)
	a.lambda += weight * x.lambda
	a.unseen += weight * x.unseen
	a.exact = x.exact
}

// ridgeShare scales the Tikhonov pull of the least-squares solver: it decides between solutions
// that fit equally well and moves no other by more than ridgeShare / sigma_min^2.
const ridgeShare = 1e-9

// leastSquares returns the program whose solution is the shares of the classes of m.
// shares has an entry for every class, supported or not.
func (m *confusion) leastSquares(p, shares []float64) *quadratic {
	qp := newQuadratic(m.k)
	gram(qp.g, m, nil)
	pull := ridgeShare * trace(qp.g, m.k) / float64(m.k)
	var total float64
	for _, i := range m.class {
		total += shares[i]
	}
	for a, i := range m.class {
		qp.g[a*m.k+a] += pull
		share := 1 / float64(m.k)
		if total > 0 {
			share = shares[i] / total
		}
		qp.b[a] = floats.Dot(m.column(a), p) + pull*share
		qp.q[a] = 1 / float64(m.k)
	}
	qp.solve()
	return qp
}

// gram writes C' diag(weights) C to g, k x k; nil weights are ones.
func gram(g []float64, m *confusion, weights []float64) {
	for a := range m.k {
		left := m.column(a)
		if weights != nil {
			scaled := make([]float64, m.z)
			for z, v := range left {
				scaled[z] = v * weights[z]
			}
			left = scaled
		}
		products(g[a*m.k:a*m.k+a+1], m.c, left)
		for b := range a {
			g[b*m.k+a] = g[a*m.k+b]
		}
	}
}

// trace returns the sum of the diagonal of the n x n matrix a.
func trace(a []float64, n int) float64 {
	var t float64
	for i := range n {
		t += a[i*n+i]
	}
	return t
}

// AdjustedCount returns the shares q, K, on the simplex for which C q is nearest to the mean
// profile P, with C the mean profiles of the labels of each class, which N sums (Gart and Buck,
// 1966; Forman, 2008). shares are the shares of the labels; classes without labels get none.
func AdjustedCount(c *Cells, shares []float64) []float64 {
	k := len(shares)
	cells := *c
	cells.A1, cells.A2 = make([]float64, len(c.N)), make([]float64, len(c.N))
	m, q := cells.weigh(k, constantWeights, 0), make([]float64, k)
	if m.k == 0 {
		return append(q[:0], shares...)
	}
	for b, x := range m.leastSquares(c.P, shares).q {
		q[m.class[b]] = x
	}
	return q
}
