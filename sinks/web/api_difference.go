package web

import (
	"context"
	"iter"
	"math"
	"net/http"
	"slices"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// differenceAnswer is by how much a community exceeds another one, or itself before.
type differenceAnswer struct {
	Estimate quant.Estimate `json:"estimate"` // shares, ends of intervals and errors are those of the difference
}

func (a differenceAnswer) rows() iter.Seq[row] {
	return estimateRows(slices.Values([]quant.Estimate{a.Estimate}))
}

// askDifference compares the latest records of two communities, or those in force at a log
// time if one is given; with a time alone, the latest record with the one then, and with
// neither the community with everyone.
func askDifference(ctx context.Context, v *view, q *asked) (any, error) {
	other, at := q.query.Get("other"), q.time("at")
	q.word("format", formats...)
	if other == "" && at.IsZero() {
		other = "everyone"
	}
	if q.err != nil {
		return nil, q.err
	}
	names, times := [2]string{q.name, other}, [2]time.Time{at, at}
	if other == "" {
		names[1], times[0] = q.name, time.Time{} // with itself at an earlier time
	}
	var of [2]quant.Estimate
	for i, name := range names {
		var err error
		if of[i], err = inForce(ctx, v, name, q.query.Get("method"), times[i]); err != nil {
			return nil, err
		}
	}
	d, err := quant.Difference(&of[0], &of[1])
	if err != nil {
		return nil, refuse(http.StatusConflict, "%v", err)
	}
	return differenceAnswer{d}, nil
}

// rollupsBack bounds the age of a roll-up that stands for a time.
const rollupsBack = 7 * 24 * time.Hour

// inForce returns the record of a community that was in force at a log time, or the latest one
// at none: that of memory, of the log out, or what roll-ups say where the log out does not
// reach back so far.
func inForce(ctx context.Context, v *view, name, method string, at time.Time) (e quant.Estimate, err error) {
	part, ok := v.memory(name, method, time.Time{}, at)
	n := len(part.records)
	switch {
	case ok && n > 0 && (at.IsZero() || !part.records[n-1].at.Before(part.whole)):
		return part.records[n-1].estimate, nil
	case ok && v.config.InForce != nil:
		if e, ok, err = v.config.InForce(ctx, part.community, part.method, at); err != nil || ok {
			return e, err
		}
	}
	if part.method != "" {
		found, err := rollupsOf(ctx, v, part, at.Add(-rollupsBack), at, int(rollupsBack/time.Minute))
		if err != nil {
			return e, err
		}
		for _, r := range slices.Backward(found.Rollups) {
			if !r.Until.After(at) && len(r.Low) == len(r.Last) {
				return ofRollup(part, &r), nil
			}
		}
	}
	return e, refuse(http.StatusNotFound, "%s has no estimate by this method, or none that is so old", name)
}

// ofRollup returns the last record of a period. Its errors are those of the least and the
// largest bound in the period, so they are not too small.
func ofRollup(p memoryPart, r *sinks.Rollup) quant.Estimate {
	e := quant.Estimate{
		Community: p.community, Method: p.method, Position: r.Position, Time: r.Until.Format(time.RFC3339Nano),
		Prevalence: wide(r.Last), Low: wide(r.Low), High: wide(r.High), Confidence: p.confidence, Flags: r.Flags,
	}
	z := math.Sqrt2 * math.Erfinv(p.confidence)
	for i := range e.Low {
		e.SE = append(e.SE, (e.High[i]-e.Low[i])/(2*z))
	}
	return e
}
