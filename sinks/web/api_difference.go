package web

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"gqlstream/quant"
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
func askDifference(_ context.Context, v *view, q *asked) (any, error) {
	other, at := q.query.Get("other"), q.time("at")
	q.word("format", formats...)
	if other == "" && at.IsZero() {
		other = "everyone"
	}
	names, times := [2]string{q.name, other}, [2]time.Time{at, at}
	if other == "" {
		names[1], times[0] = q.name, time.Time{} // with itself at an earlier time
	}
	var of [2]*quant.Estimate
	for i, name := range names {
		part, ok := v.memory(name, q.query.Get("method"), time.Time{}, times[i])
		if !ok || len(part.records) == 0 {
			return nil, refuse(http.StatusNotFound, "%s has no estimate by this method, or none that is so old", name)
		}
		of[i] = &part.records[len(part.records)-1].estimate
	}
	d, err := quant.Difference(of[0], of[1])
	if err != nil {
		return nil, refuse(http.StatusConflict, "%v", err)
	}
	return differenceAnswer{d}, nil
}
