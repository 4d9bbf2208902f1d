package web

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gqlstream/quant"
)

// record is one estimate as it was received. It is never changed once stored.
type record struct {
	estimate quant.Estimate
	at       time.Time // log time; zero when the estimate has none
	received time.Time // wall clock
	past     bool      // of Recall: flags and shares alone
}

// newRecord copies an estimate; its flags are those of the previous record if they
// are equal.
func newRecord(e *quant.Estimate, previous *record, received time.Time) *record {
	r := &record{estimate: *e, received: received}
	if e.Suppressed { // whatever else it holds is not for the public
		r.estimate = quant.Estimate{
			Pipeline: e.Pipeline, Community: e.Community, Position: e.Position, Time: e.Time, Method: e.Method, ModelVersion: e.ModelVersion, Config: e.Config, Suppressed: true,
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, e.Time); err == nil {
		r.at = at
	}
	c := &r.estimate
	for _, f := range []*[]float64{&c.Prevalence, &c.Low, &c.High, &c.SE, &c.SEChange, &c.NEff, &c.Influence} {
		*f = append(make([]float64, 0, len(*f)), *f...)
	}
	switch {
	case previous != nil && slices.Equal(previous.estimate.Flags, e.Flags):
		r.estimate.Flags = previous.estimate.Flags
	case len(e.Flags) == 0:
		r.estimate.Flags = []string{}
	default:
		r.estimate.Flags = slices.Clone(e.Flags)
	}
	return r
}

// recordBytes is about what a record of K classes takes in memory.
func recordBytes(k int) int { return 760 + 6*8*k }

// check reports what would make an estimate unfit for JSON or for a page of K
// classes: both are mistakes of the pipeline, not of its input.
func check(e *quant.Estimate, k int) error {
	if len(e.Prevalence) != k && !(e.Suppressed && len(e.Prevalence) == 0) {
		return fmt.Errorf("web: estimate of %q by %q has %d shares, want %d", e.Community, e.Method, len(e.Prevalence), k)
	}
	numbers := []float64{e.Lambda, e.Members, e.Labelled, e.Coverage, e.Confidence, e.Gamma, e.Certificate}
	for _, list := range [][]float64{numbers, e.Prevalence, e.Low, e.High, e.SE, e.SEChange, e.NEff} {
		for _, x := range list {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("web: estimate of %q by %q at position %d holds %v", e.Community, e.Method, e.Position, x)
			}
		}
	}
	return nil
}

// series holds the records in memory of one community by one method.
type series struct {
	method  string
	latest  *record
	history []*record // oldest first, the latest included
	since   time.Time // log time to which history reaches back; zero: the first record
	whole   time.Time // log time from which on it has every record; zero: all of it
	written uint64    // by which write of the store the latest came
}

// add appends a record and keeps at most limit of them.
func (s *series) add(r *record, limit int) {
	s.latest = r
	s.history = append(s.history, r)
	for len(s.history) > max(limit, 1) {
		s.thin()
	}
}

// latestOnly says that memory reaches back to the latest record alone. Others may have its log time.
func (s *series) latestOnly() { s.since, s.whole = s.latest.at, s.latest.at.Add(1) }

// thin drops every second record of the older half, never the first of all or of
// a model version if that can be helped: those are marks in the chart.
func (s *series) thin() {
	half := (len(s.history) + 1) / 2
	whole := s.history[half-1].at.Add(1) // other records may have the same log time
	kept := s.history[:0]
	for i, r := range s.history {
		// The comparison reads record i-1 itself: its slot is overwritten only when
		// all records before i were kept.
		mark := i > 0 && r.estimate.ModelVersion != s.history[i-1].estimate.ModelVersion
		if i >= half || i%2 == 0 || mark {
			kept = append(kept, r)
		}
	}
	if len(kept) == len(s.history) {
		kept = append(s.history[:0], s.history[1:]...)
	}
	clear(s.history[len(kept):])
	if s.history = kept; whole.After(s.whole) {
		s.whole = whole
	}
}

// between returns the records, but for those of Recall, with a log time in [from, to], oldest first; a zero
// time is unbounded. Records without a log time are returned only when both are.
func (s *series) between(from, to time.Time) []*record {
	out := make([]*record, 0, len(s.history))
	for _, r := range s.history {
		if !r.past && (from.IsZero() || !r.at.Before(from)) && (to.IsZero() || !r.at.IsZero() && !r.at.After(to)) {
			out = append(out, r)
		}
	}
	return out
}
