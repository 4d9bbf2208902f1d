package quant

// Solver holds the workspaces of the quantifiers. The zero value is ready; what iterations use grows to the
// largest problem seen and is reused. A Solver belongs to one goroutine at a time and carries nothing from one call
// to the next except what Snapshot reads: results do not depend on what was solved before.
type Solver struct {
	scratch
	ans   answer     // of the method
	check auditCheck // of auto against the audit labels

	// What Snapshot reads besides ans.
	solved         bool
	open, profiled float64
	coverage       float64
	se, prevalence []float64
}

// scratch is the workspace of the mathematics, which knows nothing of the record.
type scratch struct {
	qp         quadratic
	shares     []float64 // class shares of the calibration labels
	grid       [len(lambdaGrid) + 1]answer
	one, other answer // of diff and of sis in the diagnosis

	posterior posteriorScratch // of auto
	sketching bool             // shares and effective labels are wanted, and nothing else; see Movement
}

// input is the input of one solve.
type input struct {
	cells   *Cells
	p       []float64
	sample  float64 // effective number of members
	weights weighting

	likelihood, hard bool

	rows    func(func(Row)) // nil: stand-in variances
	moments *Moments        // instead
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

// adjusted fills ans with the adjusted count of one recipe under one weighting:
// least squares or likelihood, and the variances. start, if not nil, is a guess of
// the shares of all classes that a likelihood starts from.
func (w *scratch) adjusted(ans *answer, s *Statistics, r recipe, weights weighting, start []float64) {
	in := &input{cells: s.cells(r), sample: s.sample(), weights: weights, likelihood: r.likelihood, hard: r.hard}
	if in.p = in.cells.P; !r.hard {
		in.rows, in.moments = s.Rows, s.Moments
	}
	ans.reset(s.K)
	ans.lambda = weights.lambda
	smooth := 0.0
	if r.likelihood {
		smooth = smoothing
	}
	m := in.cells.weigh(s.K, weights, smooth)
	if m.k == 0 {
		copy(ans.q, w.shares)
		copy(ans.free, w.shares)
		return
	}
	var q []float64
	if r.likelihood {
		q = w.start(m, start)
		ans.logLikelihood, _ = m.likelihood(q, in.p)
		ans.logLikelihood *= s.Profiled
	} else {
		q = w.leastSquares(m, in.p, w.shares)
	}
	for b, i := range m.class {
		ans.q[i] = q[b]
	}
	w.variances(ans, in, m, q)
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
func (w *scratch) start(m *confusion, guess []float64) []float64 {
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
