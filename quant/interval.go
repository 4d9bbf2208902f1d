package quant

import (
	"math"
	"slices"
	"strconv"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// How the variances of an estimate were computed.
const (
	VarianceExact    = "exact"    // from the profiles of labels and members themselves
	VarianceDiagonal = "diagonal" // from second moments by cell: never too small
)

// clamp cuts x to [0, 1].
func clamp(x float64) float64 { return min(max(x, 0), 1) }

// fill turns w.ans into prevalence, interval and standard errors. The interval centres on the
// solution without bounds and is cut to [0, 1], with a standard error of that range at least. It is
// widened to hold the share, and also the share from audit labels alone if they weigh most. It
// shrinks with the share of labelled members. A class without support is unknown from 0 to 1, and
// so is every class if only one has support.
func (w *Solver) fill(e *Estimate, s *stats.Statistics, o Options, solved bool) {
	k := s.K
	e.Prevalence = make([]float64, k)
	e.SE = make([]float64, k)
	e.Low = make([]float64, k)
	e.High = make([]float64, k)
	e.NEff, e.SEChange = slices.Clone(w.ans.NEff), nil
	if solved = solved && !w.ans.Nothing && !slices.ContainsFunc(w.ans.V[:k], math.IsNaN); !solved {
		w.ans.Influence = nil // an error that is no number is an unknown one
	}
	e.Lambda, e.Gamma, e.Posterior, e.Variance = w.ans.Lambda, 0, 0, ""
	if a := w.ans.Memory; a != nil {
		e.Gamma, e.Posterior = a.Gamma, a.Posterior
	}
	w.publishAudit(e, s)
	switch {
	case solved && w.ans.Exact:
		e.Variance = VarianceExact
	case solved:
		e.Variance = VarianceDiagonal
	}
	e.Influence = shortened(w.ans.Influence, s.Open())
	w.intervals(e, s, o, solved, nil)
	w.last = w.snapshot(e, s, solved)
}

// lagAgainst is the part of the lag that an interval has on the side that its share comes from. A
// share that has moved up is behind upwards; it is behind downwards only if it has turned since.
const lagAgainst = 0.5

// Widen widens the intervals of the estimate that was made just before by how far its shares may be
// behind: lag has a standard error for each class, K, with the sign of the direction, or is nil for
// none. It counts as far as the estimate rests on predictions: audit labels are not behind.
func (w *Solver) Widen(e *Estimate, s *stats.Statistics, o Options, lag []float64) {
	if w.ans.Memory == nil || !w.last.Solved || len(lag) == 0 || s.Open() == 0 {
		return
	}
	behind := make([]float64, len(lag)) // of the members without a label
	e.SELag = make([]float64, len(lag))
	for i, x := range lag {
		x *= 1 - w.ans.AuditWeight
		e.SELag[i], behind[i] = math.Abs(x), x/s.Open()
		w.ans.V[i] += solve.Square(behind[i])
	}
	w.intervals(e, s, o.withDefaults(), true, behind)
	w.last.SE, w.last.Lag = slices.Clone(e.SE), slices.Clone(e.SELag)
}

// intervals fills the shares of all members with their standard errors and intervals. behind is how
// far shares may be behind, K, or nil for not at all; see Widen.
func (w *Solver) intervals(
	e *Estimate, s *stats.Statistics, o Options, solved bool, behind []float64,
) {
	k, open := s.K, s.Open()
	z := 0.0
	if solved {
		z = o.quantile(k)
	}
	contrast := k == 1 || w.ans.Supported() > 1
	for i := range k {
		q := w.ans.Share[i]
		se, low, high := stats.WorstDeviation, 0.0, 1.0
		if solved && (w.ans.Counts || w.ans.Audited || contrast && w.ans.NEff[i] > 0) {
			se = math.Sqrt(max(w.ans.V[i], 0))
			outside := max(z-1, 0) * se
			centre := min(max(w.ans.Free[i], -outside), 1+outside)
			down, up := w.sides(i, behind)
			low = min(clamp(centre-z*down), q)
			high = max(clamp(centre+z*up), q)
			if w.ans.Holds != nil {
				low, high = min(low, w.ans.Holds[i]), max(high, w.ans.Holds[i])
			}
		}
		share := clamp(prevalence(s, i, q)) // rounding may take it past the ends
		e.Prevalence[i] = share
		e.Low[i] = clamp(min(prevalence(s, i, low), share))
		e.High[i] = clamp(max(prevalence(s, i, high), share))
		e.SE[i] = open * min(se, stats.WorstDeviation)
	}
}

// sides returns the standard errors of the share of class i downwards and upwards.
func (w *Solver) sides(i int, behind []float64) (down, up float64) {
	v := max(w.ans.V[i], 0)
	down, up = math.Sqrt(v), math.Sqrt(v)
	if behind == nil {
		return down, up
	}
	against := math.Sqrt(max(0, v-(1-lagAgainst*lagAgainst)*solve.Square(behind[i])))
	if behind[i] < 0 {
		return down, against
	}
	return against, up
}

// prevalence returns the share of class i among all members if q is its share among the estimated
// ones.
func prevalence(s *stats.Statistics, i int, q float64) float64 {
	if open := s.Open(); open < 1 {
		return s.Anchored[i]/s.Members + open*q
	}
	return q
}

// shortened returns a part of the influence, that on the shares shown, in four digits.
func shortened(influence []float64, part float64) (short []float64) {
	for _, x := range influence {
		// it was formatted
		digits, _ := strconv.ParseFloat(strconv.FormatFloat(part*x, 'e', 3, 64), 64)
		short = append(short, digits)
	}
	return short
}

// quantile returns the number of standard errors from the centre to an end of the interval. The
// shares of two classes err alike, so that their intervals hold together anyway. Of more classes it
// is Bonferroni's, which the correlations of the shares could make smaller by a few percent at
// most.
func (o Options) quantile(k int) float64 {
	if o.Simultaneous && k > 2 {
		return solve.Bonferroni(o.Confidence, k)
	}
	return solve.NormalQuantile(o.Confidence)
}

// publishAudit writes the number, the reach and the weight of the audit labels to a record.
func (w *Solver) publishAudit(e *Estimate, s *stats.Statistics) {
	e.AuditLabels, e.AuditReach, e.AuditErrors = 0, 0, 0
	if s.Audit != nil {
		e.AuditLabels = uint64(s.Audit.Labels)
		e.AuditReach, _ = s.Audit.Reach(s.Members - s.Labelled)
	}
	e.AuditWeight, e.AuditPoints = w.ans.AuditWeight, w.ans.AuditPoints
	if w.ans.AuditErrors != nil {
		e.AuditErrors = slices.Max(w.ans.AuditErrors)
	}
}
