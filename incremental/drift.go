package incremental

import (
	"math"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// lagLeast and lagMost bound the standard error of an estimate for being behind, over its drift D.
// Let T be the mean age of the members' evidence, and A the mean age of the movement. Shares that
// move at a constant speed have A = T and are behind by D. After a jump that members report one by
// one, at a rate of 1/T, an estimate has followed 1 - exp(-t/T) of it: A is t/2, D is (t/T)
// exp(-t/T), and the estimate is behind by T/t times D. The standard error is T/A times D, which is
// twice that, and at least 1.5 D: some people speak more seldom than others.
const lagLeast, lagMost = 1.5, 5.0

// drift is the recent movement of the estimate of a community: the sum of Moved over its records,
// each with the weight exp(-age/T), where T is the mean age of the members' evidence.
type drift struct {
	Drift   []float64  // K; nil: none
	Moment  []float64  // K: the same sum of Moved times its age in seconds
	DriftAt event.Time // log time of the sums
}

// at returns the drift at a later time.
func (d drift) at(now event.Time, evidence time.Duration) drift {
	past, left := time.Duration(now-d.DriftAt).Seconds(), 0.0
	if evidence > 0 {
		left = math.Exp(-past / evidence.Seconds())
	}
	later := drift{DriftAt: now}
	for i, x := range d.Drift {
		later.Drift = append(later.Drift, float64(left*x))
		later.Moment = append(later.Moment, float64(left*(d.Moment[i]+float64(past*x))))
	}
	return later
}

// moved returns the drift after another record with its movement of the shares; nil: not known.
func (d drift) moved(by []float64) drift {
	if len(d.Drift) == 0 {
		d.Drift, d.Moment = make([]float64, len(by)), make([]float64, len(by))
	}
	for i, x := range by {
		d.Drift[i] += x
	}
	return d
}

// lag returns the standard errors of how far shares may be behind, K; nil if they did not move.
func (d drift) lag(evidence time.Duration) []float64 {
	if !slices.ContainsFunc(d.Drift, func(x float64) bool { return x != 0 }) {
		return nil
	}
	lag := make([]float64, len(d.Drift))
	for i, x := range d.Drift {
		lag[i] = math.Abs(x) * lagMost
		if age := d.Moment[i] / x; age > 0 {
			lag[i] = math.Abs(x) * max(lagLeast, min(lagMost, evidence.Seconds()/age))
		}
	}
	return lag
}
