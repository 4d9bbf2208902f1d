// Package webtest stands for the output log in tests of the page.
package webtest

import (
	"context"
	"sync"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// Log has the records that were added, in their order. It may be used by several goroutines.
type Log struct {
	mu   sync.Mutex
	list []quant.Estimate
}

// Add appends records.
func (l *Log) Add(records ...quant.Estimate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, records...)
}

// Read returns the records that a question asks for.
func (l *Log) Read(
	_ context.Context,
	q sinks.RecordsQuery,
) (list []quant.Estimate, whole bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.list {
		at, _ := time.Parse(time.RFC3339Nano, e.Time)
		if e.Community != q.Community || e.Method != q.Method && e.Method != "" ||
			sinks.Ordinal(l.list, i) > 0 || !q.From.IsZero() && at.Before(q.From) ||
			!q.To.IsZero() && at.After(q.To) {
			continue
		}
		e.Method = q.Method
		list = append(list, e)
	}
	if n := len(list) - q.Most; n > 0 && q.Most > 0 {
		return list[n:], false, nil
	}
	return list, true, nil
}

// InForce returns the last record of a community and method at a time, if there is one.
func (l *Log) InForce(
	ctx context.Context,
	community, method string,
	at time.Time,
) (e quant.Estimate, ok bool, err error) {
	list, _, err := l.Read(ctx, sinks.RecordsQuery{Community: community, Method: method, To: at})
	if len(list) == 0 {
		return e, false, err
	}
	return list[len(list)-1], true, err
}
