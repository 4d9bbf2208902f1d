package incremental

import (
	"math"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// lagOfDrift is the standard error of an estimate for being behind, over its drift. After a jump
// that members tell of one by one, at a rate of 1/T, an estimate has followed 1 - exp(-t/T) of it,
// and its drift is (t/T) exp(-t/T), so it is behind by T/t times the drift. Intervals of 90 % hold
// the truth from a quarter of T after the jump on.
const lagOfDrift = 2.5

// drift says how far the estimate of a community has moved lately: the sum of Moved over its
// records, each with the weight exp(-age/T), where T is the mean age of the members' evidence.
// Shares that move at a constant speed are behind by their movement within T, which is the drift.
type drift struct {
	Drift   []float64  // K; nil: none
	DriftAt event.Time // log time as of which
}

// at returns the drift at a later time.
func (d drift) at(now event.Time, evidence time.Duration) drift {
	left := 0.0
	if evidence > 0 {
		left = math.Exp(-float64(now-d.DriftAt) / float64(evidence))
	}
	later := drift{DriftAt: now}
	for _, x := range d.Drift {
		later.Drift = append(later.Drift, float64(left*x))
	}
	return later
}

// moved returns the drift after another record, which says how far shares have moved; nil: not
// known.
func (d drift) moved(by []float64) drift {
	if len(d.Drift) == 0 {
		d.Drift = make([]float64, len(by))
	}
	for i, x := range by {
		d.Drift[i] += x
	}
	return d
}

// lag returns the standard errors of how far shares may be behind, K; nil if they did not move.
func (d drift) lag() []float64 {
	if !slices.ContainsFunc(d.Drift, func(x float64) bool { return x != 0 }) {
		return nil
	}
	lag := make([]float64, len(d.Drift))
	for i, x := range d.Drift {
		lag[i] = lagOfDrift * math.Abs(x)
	}
	return lag
}
