package web

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks"
)

const (
	recordsSpan = 2 * time.Hour // so short a time is answered by records, not by roll-ups
	records     = "record"      // the resolution, then

	// chartRecordsMin thinned records in memory make a chart without a look at the log out.
	chartRecordsMin = 100
)

// rollupAnswer is the series of a community by a method as a chart draws it.
type rollupAnswer struct {
	historyAnswer
	Resolution string         `json:"resolution"` // of Rollups: minute, hour or day; record: of Estimates
	Rollups    []sinks.Rollup `json:"rollups"`
}

func (a rollupAnswer) rows() iter.Seq[row] {
	if a.Resolution == records {
		return a.historyAnswer.rows()
	}
	return func(yield func(row) bool) {
		for i := range a.Rollups {
			r := &a.Rollups[i]
			if !yield(row{r.Time.Format(time.RFC3339), a.Community, a.Method, wide(r.Mean), wide(r.Low), wide(r.High)}) {
				return
			}
		}
	}
}

func wide(list []float32) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = math.Round(float64(x)*1e6) / 1e6
	}
	return out
}

// askHistory answers with records where a short time is asked for, and with roll-ups of
// the resolution that fits elsewhere.
func askHistory(ctx context.Context, v *view, q *asked) (any, error) {
	usual := max(2, 1_500/(len(v.config.Classes)+3)) // some 250 KB: an answer on NATS may have 1 MiB
	from, to, points := q.time("from"), q.time("to"), q.number("points", usual, 2, estimatesMax)
	q.word("format", formats...)
	part, err := v.asked(q, from, to)
	if err != nil {
		return nil, err
	}
	out := rollupAnswer{Resolution: records, Rollups: []sinks.Rollup{}}
	found, err := rollupsOf(ctx, v, part, from, to, points)
	n := len(found.Rollups)
	if err == nil && (n == 0 || found.Rollups[n-1].Until.Sub(found.Rollups[0].Time) <= recordsSpan) {
		out.historyAnswer, err = v.withHistory(ctx, part, from, to, chartRecordsMin)
		if len(out.Estimates) > points {
			out.Estimates = spread(out.Estimates, points)
		}
		if n == 0 || err != nil || len(out.Estimates) > 0 && reachesBack(&out.Estimates[0], found.Rollups) {
			return out, err
		}
	}
	out.Resolution, out.Rollups = string(found.Resolution), found.Rollups
	out.historyAnswer = historyAnswer{Community: part.community, Method: part.method, Estimates: []quant.Estimate{}}
	return out, err
}

// reachesBack reports whether records begin where roll-ups do: not if the log out has discarded
// the first tenth.
func reachesBack(first *quant.Estimate, rollups []sinks.Rollup) bool {
	begin := rollups[0].Until
	at, _ := time.Parse(time.RFC3339Nano, first.Time)
	return !at.After(begin.Add(rollups[len(rollups)-1].Until.Sub(begin) / 10))
}

// rollupsOf returns the roll-ups of a series, but for those from before a change of the number of classes.
func rollupsOf(ctx context.Context, v *view, p memoryPart, from, to time.Time, points int) (found sinks.RollupAnswer, err error) {
	if v.config.Rollups != nil {
		found, err = v.config.Rollups(ctx, sinks.RollupQuery{Community: p.community, Method: p.method, From: from, To: to, Points: points})
	}
	found.Rollups = slices.DeleteFunc(found.Rollups, func(r sinks.Rollup) bool { return len(r.Last) != len(v.config.Classes) })
	return found, err
}
