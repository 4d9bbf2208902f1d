package quant

import (
	"math"
	"slices"
	"strconv"
)

const (
	// confidenceDefault is the confidence of intervals where none is asked for.
	confidenceDefault = 0.9
	// worstDeviation is the largest standard deviation a share can have: published
	// where nothing is known.
	worstDeviation = 0.5
)

// How the variances of an estimate were computed.
const (
	VarianceExact    = "exact"    // from the profiles of labels and members themselves
	VarianceDiagonal = "diagonal" // from second moments by cell: never too small
)

// clamp cuts x to [0, 1].
func clamp(x float64) float64 { return min(max(x, 0), 1) }

// publish turns w.ans into prevalence, interval and standard errors: the interval centres on the
// solution without bounds, is cut to [0, 1], of which it holds a standard error at least, and
// widened to hold the share (what audit labels say alone too, if they weigh most), and shrinks with
// the share of members whose label is known. What has no support is unknown from 0 to 1, and so is
// everything where one class alone has support.
func (w *Solver) publish(e *Estimate, s *Statistics, r recipe, o Options, solved bool) {
	k := s.K
	e.Prevalence = make([]float64, k)
	e.SE = make([]float64, k)
	e.Low = make([]float64, k)
	e.High = make([]float64, k)
	e.NEff, e.SEChange = slices.Clone(w.ans.NEff), nil
	if solved = solved && !w.ans.nothing && !slices.ContainsFunc(w.ans.v[:k], math.IsNaN); !solved {
		w.ans.influence = nil // an error that is no number is an unknown one
	}
	e.Lambda, e.Gamma, e.Posterior, e.Variance = w.ans.lambda, 0, 0, ""
	if a := w.ans.auto; a != nil {
		e.Gamma, e.Posterior = a.reading.gamma, uint64(s.Posterior.Version)
	}
	w.publishAudit(e, s)
	switch {
	case solved && w.ans.exact:
		e.Variance = VarianceExact
	case solved:
		e.Variance = VarianceDiagonal
	}
	e.Influence = shortened(w.ans.influence, s.open())
	w.intervals(e, s, r, o, solved)
	w.last = w.snapshot(e, s, solved)
}

// Widen widens the intervals of the estimate that was made just before by how far its shares may be
// behind: lag has a standard error for each class, K, or is nil for none. It counts as far as the
// estimate rests on predictions: audit labels are not behind.
func (w *Solver) Widen(e *Estimate, s *Statistics, o Options, lag []float64) {
	if w.ans.auto == nil || !w.last.Solved || len(lag) == 0 || s.open() == 0 {
		return
	}
	lag = slices.Clone(lag)
	for i := range lag {
		lag[i] *= 1 - w.ans.auditWeight
		w.ans.v[i] += square(lag[i] / s.open())
	}
	r, _ := o.Method.recipe()
	w.intervals(e, s, r, o.withDefaults(r), true)
	w.last.SE = slices.Clone(e.SE)
	e.SELag, w.last.Lag = lag, slices.Clone(lag)
}

// intervals fills the shares of all members with their standard errors and intervals.
func (w *Solver) intervals(e *Estimate, s *Statistics, r recipe, o Options, solved bool) {
	k, open := s.K, s.open()
	z := 0.0
	if solved {
		z = o.quantile(k)
	}
	contrast := k == 1 || w.ans.supported() > 1
	for i := range k {
		q := w.ans.Share[i]
		se, low, high := worstDeviation, 0.0, 1.0
		if solved && (r.family == familyCount || w.ans.audited || contrast && w.ans.NEff[i] > 0) {
			se = math.Sqrt(max(w.ans.v[i], 0))
			outside := max(z-1, 0) * se
			centre := min(max(w.ans.free[i], -outside), 1+outside)
			low = min(clamp(centre-z*se), q)
			high = max(clamp(centre+z*se), q)
			if w.ans.holds != nil {
				low, high = min(low, w.ans.holds[i]), max(high, w.ans.holds[i])
			}
		}
		share := clamp(s.prevalence(i, q)) // rounding may take it past the ends
		e.Prevalence[i] = share
		e.Low[i] = clamp(min(s.prevalence(i, low), share))
		e.High[i] = clamp(max(s.prevalence(i, high), share))
		e.SE[i] = open * min(se, worstDeviation)
	}
}

// open returns the share of the members that is estimated, not counted.
func (s *Statistics) open() float64 {
	if s.Members > 0 {
		return clamp((s.Members - s.Labelled) / s.Members)
	}
	return 1
}

// prevalence returns the share of class i among all members if q is its share among the estimated
// ones.
func (s *Statistics) prevalence(i int, q float64) float64 {
	if open := s.open(); open < 1 {
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
		return bonferroni(o.Confidence, k)
	}
	return normalQuantile(o.Confidence)
}

// normalQuantile is the z with P(|t| <= z) = confidence for a standard normal t.
func normalQuantile(confidence float64) float64 {
	return math.Sqrt2 * math.Erfinv(confidence)
}

// bonferroni is the quantile that holds for n normals together, whatever their correlation.
func bonferroni(confidence float64, n int) float64 {
	return normalQuantile(1 - (1-confidence)/float64(n))
}
