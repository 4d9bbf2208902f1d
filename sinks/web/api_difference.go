package web

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"sort"

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
// time if one is given; without another community, the latest record with that one.
func askDifference(_ context.Context, v *view, q *asked) (any, error) {
	other, method, at := q.query.Get("other"), q.query.Get("method"), q.time("at")
	q.word("format", formats...)
	if q.err == nil && other == "" && at.IsZero() {
		q.bad("other: name a community to compare with, or a time with at")
	}
	if q.err != nil {
		return nil, q.err
	}
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	inForce := func(name string, past bool) (*quant.Estimate, error) {
		c := v.store.byName[name]
		if c == nil {
			return nil, refuse(http.StatusNotFound, "no such community: %s", name)
		}
		s := c.find(method)
		if s == nil {
			return nil, refuse(http.StatusNotFound, "%s has no estimate by %s", name, method)
		}
		if !past {
			return &s.latest.estimate, nil
		}
		after := sort.Search(len(s.history), func(i int) bool { return s.history[i].at.After(at) })
		if after == 0 {
			return nil, refuse(http.StatusNotFound, "%s has no estimate that is so old", name)
		}
		return &s.history[after-1].estimate, nil
	}
	a, err := inForce(q.name, other != "" && !at.IsZero())
	if err != nil {
		return nil, err
	}
	if other == "" {
		other = q.name
	}
	b, err := inForce(other, !at.IsZero())
	if err != nil {
		return nil, err
	}
	d, err := quant.Difference(a, b)
	if err != nil {
		return nil, refuse(http.StatusConflict, "%v", err)
	}
	return differenceAnswer{d}, nil
}
