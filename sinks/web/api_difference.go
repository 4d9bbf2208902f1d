package web

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"gqlstream/quant"
)

// differenceAnswer is by how much a community exceeds another one, or itself at an earlier
// time, as one record.
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
	other, method, at := q.query.Get("other"), q.query.Get("method"), q.time("at")
	q.word("format", formats...)
	if q.err != nil {
		return nil, q.err
	}
	if other == "" && at.IsZero() {
		other = "everyone"
	}
	inForce := func(name string, until time.Time) (*quant.Estimate, error) {
		part, ok := v.memory(name, method, time.Time{}, until)
		if n := len(part.records); ok && n > 0 {
			return &part.records[n-1].estimate, nil
		}
		return nil, refuse(http.StatusNotFound, "%s has no estimate by this method, or none that is so old", name)
	}
	since := at
	if other == "" {
		other, at = q.name, time.Time{} // with itself at an earlier time
	}
	a, err := inForce(q.name, at)
	if err != nil {
		return nil, err
	}
	b, err := inForce(other, since)
	if err != nil {
		return nil, err
	}
	d, err := quant.Difference(a, b)
	if err != nil {
		return nil, refuse(http.StatusConflict, "%v", err)
	}
	return differenceAnswer{d}, nil
}
