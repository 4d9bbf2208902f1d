package web

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"gqlstream/incremental/ask"
	"gqlstream/quant"
	"gqlstream/sinks"
)

const (
	recordsSpan = 30 * time.Minute // so short a time is answered by records, not by roll-ups
	records     = "record"         // the resolution, then
)

// rollupAnswer is the series of a community by a method as a chart draws it.
type rollupAnswer struct {
	historyAnswer
	// of Rollups: minute, hour or day; record: of Estimates
	Resolution string         `json:"resolution"`
	Rollups    []sinks.Rollup `json:"rollups"`
}

func (a rollupAnswer) list() []quant.Estimate {
	if a.Resolution == records {
		return a.Estimates
	}
	out := make([]quant.Estimate, len(a.Rollups))
	for i, r := range a.Rollups {
		out[i] = quant.Estimate{
			Time: r.Time.Format(time.RFC3339), Community: a.Community, Method: a.Method,
			Prevalence: r.Mean, Low: r.Low, High: r.High, Moved: r.Moved, Revised: r.Revised,
		}
	}
	return out
}

// askHistory answers with records where a short time is asked for, and with roll-ups of
// the resolution that fits elsewhere.
func askHistory(ctx context.Context, s *Server, q *params) (any, error) {
	usual := max(2,
		1_500/(len(s.config.Classes)+3)) // some 250 KB: an answer on NATS may have 1 MiB
	from := q.time("from")
	to := q.time("to")
	points := q.number("points", usual, 2, estimatesMax)
	latest, err := s.latest(q, q.query.Get("community"))
	if err != nil {
		return nil, err
	}
	out := rollupAnswer{Resolution: records, Rollups: []sinks.Rollup{}}
	found, err := rollupsOf(ctx, s, latest, from, to, points)
	n := len(found.Rollups)
	if err == nil &&
		(n == 0 || found.Rollups[n-1].Until.Sub(found.Rollups[0].Time) <= recordsSpan) {
		if n > 0 && from.IsZero() {
			from = found.Rollups[0].Time
		}
		out.historyAnswer, err = s.records(ctx, latest, from, to, estimatesMax)
		out.Estimates = spread(out.Estimates, points)
		if n == 0 || err != nil ||
			len(out.Estimates) > 0 && reachesBack(&out.Estimates[0], found.Rollups) {
			return out, err
		}
	}
	out.Resolution = string(found.Resolution)
	out.Rollups = found.Rollups
	out.historyAnswer = historyAnswer{
		Community: latest.Community,
		Method:    latest.Method,
		Estimates: []quant.Estimate{},
	}
	return out, err
}

// reachesBack reports whether records begin where roll-ups do: not if the output log has discarded
// the first tenth.
func reachesBack(first *quant.Estimate, rollups []sinks.Rollup) bool {
	begin := rollups[0].Until
	at, _ := time.Parse(time.RFC3339Nano, first.Time)
	return !at.After(begin.Add(rollups[len(rollups)-1].Until.Sub(begin) / 10))
}

// rollupsOf returns the roll-ups of a series, but for those from before a change of the number of
// classes.
func rollupsOf(
	ctx context.Context, s *Server, of *quant.Estimate, from, to time.Time, points int,
) (found sinks.RollupAnswer, err error) {
	found, err = s.config.Rollups(
		ctx,
		sinks.RollupQuery{
			Community: of.Community,
			Method:    of.Method,
			From:      from,
			To:        to,
			Points:    points,
		},
	)
	found.Rollups = slices.DeleteFunc(found.Rollups,
		func(r sinks.Rollup) bool { return len(r.Last) != len(s.config.Classes) })
	return found, err
}

// differenceAnswer is by how much a community exceeds another one, or itself before.
type differenceAnswer struct {
	// shares, ends of intervals and errors are those of the difference
	Estimate quant.Estimate `json:"estimate"`
}

func (a differenceAnswer) list() []quant.Estimate { return []quant.Estimate{a.Estimate} }

// askDifference compares the latest records of two communities, or those in force at a log
// time if one is given; with a time alone, the latest record, or that of another time, with the one
// then, and with neither the community with everyone.
func askDifference(ctx context.Context, s *Server, q *params) (any, error) {
	name := q.query.Get("community")
	other := q.query.Get("other")
	at, until := q.time("at"), q.time("until")
	if !until.IsZero() && (other != "" || !until.After(at) || at.IsZero()) {
		q.contradict("until: the end of a change since at=, later than that, without other=")
	}
	if other == "" && at.IsZero() {
		other = "everyone"
	}
	if other == name {
		q.contradict(
			"other: a community does not differ from itself; give at=, without it, for an " +
				"earlier time")
	}
	names, times := [2]string{name, other}, [2]time.Time{at, at}
	if other == "" {
		names[1] = name
		times[0] = until // with itself at an earlier time
	}
	var of [2]quant.Estimate
	for i, name := range names {
		var err error
		if of[i], err = inForce(ctx, s, q, name, times[i]); err != nil {
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
// at none: that of the output log, or a roll-up if the output log does not reach back so far.
func inForce(
	ctx context.Context, s *Server, q *params, name string, at time.Time,
) (e quant.Estimate, err error) {
	latest, err := s.latest(q, name)
	if err != nil {
		return e, err
	}
	if at.IsZero() {
		return *latest, nil
	}
	if e, ok, err := s.config.InForce(ctx, latest.Community, latest.Method, at); err != nil || ok {
		return e, err
	}
	found, err := rollupsOf(ctx, s, latest, at.Add(-rollupsBack), at, int(rollupsBack/time.Minute))
	if err != nil {
		return e, err
	}
	for _, r := range slices.Backward(found.Rollups) {
		if !r.Until.After(at) && len(r.Low) == len(r.Last) {
			return ofRollup(latest, &r), nil
		}
	}
	return e, refuse(http.StatusNotFound, "%s has no estimate that is so old", name)
}

// ofRollup returns the last record of a period. Its errors are those of the least and the
// largest bound in the period, so they are not too small.
func ofRollup(of *quant.Estimate, r *sinks.Rollup) quant.Estimate {
	confidence := cmp.Or(of.Confidence, quant.DefaultOptions().Confidence)
	e := quant.Estimate{
		Community:  of.Community,
		Method:     of.Method,
		Position:   r.Position,
		Time:       r.Until.Format(time.RFC3339Nano),
		Prevalence: r.Last,
		Low:        r.Low,
		High:       r.High,
		Confidence: confidence,
		Flags:      r.Flags,
	}
	z := math.Sqrt2 * math.Erfinv(confidence)
	for i := range e.Low {
		e.SE = append(e.SE, (e.High[i]-e.Low[i])/(2*z))
	}
	return e
}

const (
	explainWaitMax  = 2 * time.Minute // for an explanation, waiting for its turn included
	explainQueueMax = 4               // that wait while another is made
)

// ExplainQuery asks why an estimate moved. From and To are positions or RFC 3339
// times, as the request gives them.
type ExplainQuery struct {
	Community, Method string
	From, To          string
}

func askExplain(ctx context.Context, s *Server, q *params) (any, error) {
	e := ExplainQuery{From: q.query.Get("from"), To: q.query.Get("to")}
	if e.From == "" || e.To == "" {
		return nil, refuse(http.StatusBadRequest, "from and to: want positions or RFC 3339 times")
	}
	latest, err := s.latest(q, q.query.Get("community"))
	if err != nil {
		return nil, err
	}
	e.Community, e.Method = latest.Community, latest.Method
	return s.inTurn(ctx, func(ctx context.Context) (any, error) {
		defer s.journal.explain("")
		return s.config.Explain(ctx, e, s.journal.explain)
	})
}

// askWhom answers with people to label. It takes turns with explanations, because both need a graph
// of their own.
func askWhom(ctx context.Context, s *Server, q *params) (any, error) {
	question := ask.Question{
		Communities: []string{q.query.Get("community")},
		Count:       q.number("count", 50, 1, 100_000),
		Seed:        1,
	}
	if q.err != nil {
		return nil, q.err
	}
	return s.inTurn(ctx, func(context.Context) (any, error) {
		answer, err := s.config.Ask(question)
		if err != nil {
			err = refuse(http.StatusConflict, "%v", err)
		}
		return answer, err
	})
}
