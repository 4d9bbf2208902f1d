package incremental

import (
	"math"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// lagLeast and lagMost bound the standard error of an estimate for being behind, over its drift D
// by members who changed.
// Let T be the mean age of the members' evidence, and A the mean age of the movement. Shares that
// move at a constant speed have A = T and are behind by D. After a jump that members report one by
// one, at a rate of 1/T, an estimate has followed 1 - exp(-t/T) of it: A is t/2, D is (t/T)
// exp(-t/T), and the estimate is behind by T/t times D. The standard error is T/A times D, which is
// twice that, and at least 1.5 D: some people speak more seldom than others.
const lagLeast, lagMost = 1.5, 5.0

// drift is the recent movement of a community: sums over its records, each with the weight
// exp(-age/T), where T is the mean age of the members' evidence.
type drift struct {
	Drift        []float64  // K: the sum of Moved; nil: none
	Moment       []float64  // K: of Moved times its age in seconds
	DriftCounted []float64  // K: of the movement of the plain count
	DriftChanged []float64  // K: of the part of it by members who changed
	DriftAt      event.Time // log time of the sums
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
		later.DriftCounted = append(later.DriftCounted, float64(left*d.DriftCounted[i]))
		later.DriftChanged = append(later.DriftChanged, float64(left*d.DriftChanged[i]))
	}
	return later
}

// moved returns the drift after another record with its movement of the shares, and that of the
// plain count with the part of it that comes from members who joined, left, or were predicted for
// the first time. Each is K long, or nil if it is not known.
func (d drift) moved(by, counted, composition []float64) drift {
	if len(d.Drift) == 0 {
		sums := make([]float64, 4*len(by))
		part := func(i int) []float64 { return sums[i*len(by) : (i+1)*len(by) : (i+1)*len(by)] }
		d.Drift, d.Moment, d.DriftCounted, d.DriftChanged = part(0), part(1), part(2), part(3)
	}
	for i, x := range by {
		d.Drift[i] += x
		if len(counted) > 0 && len(composition) > 0 {
			d.DriftCounted[i] += counted[i]
			d.DriftChanged[i] += counted[i] - composition[i]
		}
	}
	return d
}

// lag returns the standard errors of how far shares may be behind, K, with the sign of their
// movement; nil if they did not move.
func (d drift) lag(evidence time.Duration) []float64 {
	if !slices.ContainsFunc(d.Drift, func(x float64) bool { return x != 0 }) {
		return nil
	}
	lag := make([]float64, len(d.Drift))
	for i, x := range d.Drift {
		lag[i] = x * lagMost
		if age := d.Moment[i] / x; age > 0 {
			lag[i] = x * max(lagLeast, min(lagMost, evidence.Seconds()/age))
		}
		lag[i] *= d.byChange(i)
	}
	return lag
}

// byChange returns the part of the movement of a share that comes from members who changed: their
// part in the movement of the count, 1 if the count did not move. Others who joined, left, or were
// predicted for the first time are no sign that members have changed and not said so yet.
func (d drift) byChange(class int) float64 {
	changed := math.Abs(d.DriftChanged[class])
	if all := max(changed, math.Abs(d.DriftCounted[class])); all > 0 {
		return changed / all
	}
	return 1
}
