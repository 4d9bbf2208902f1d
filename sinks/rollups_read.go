package sinks

import (
	"context"
	"math"
	"slices"
	"time"
)

// RollupQuery asks for roll-ups of a community by a method.
type RollupQuery struct {
	Community, Method string
	From, To          time.Time // of log time; zero: the first or the last that there is
	Points            int       // at most this many, unless there are more days
}

// RollupAnswer holds the roll-ups found, oldest first; Resolution is empty if there are none.
type RollupAnswer struct {
	Resolution Resolution
	Rollups    []Rollup
}

// Read returns the roll-ups of the finest resolution that fits the requested number of points and
// reaches as far back as the next coarser one. Any goroutine may call it. It reads a few messages
// for every hour, day or month of its answer.
func (r *Rollups) Read(ctx context.Context, q RollupQuery) (answer RollupAnswer, err error) {
	for i, row := range resolutions {
		list, fits, err := r.read(ctx, i, q)
		if i < notes && fits &&
			len(list) > 0 { // the broker may have removed older ones, by its clock
			before := q
			before.Points, before.To = 0, list[0].Time.Add(-resolutions[i+1].period)
			coarser, _, failed := r.read(ctx, i+1, before)
			fits, err = len(coarser) == 0, failed
		}
		if err != nil {
			return answer, err
		}
		if fits && len(list) > 0 {
			return RollupAnswer{row.name, list}, nil
		}
	}
	return answer, nil
}

// read returns the stored roll-ups of one resolution. fits is false if they are too many; the rest
// may be missing then.
func (r *Rollups) read(
	ctx context.Context,
	i int,
	q RollupQuery,
) (list []Rollup, fits bool, err error) {
	var under []Rollup // that no chunk holds yet
	r.mu.Lock()
	if at, found := r.find(q.Community, q.Method); found {
		under = slices.Clone(r.state.Series[at].Rollups[i])
	}
	r.mu.Unlock()
	row, most := resolutions[i], q.Points
	if row.keep == 0 {
		most = math.MaxInt
	}
	stored := r.reading(i,
		r.config.Streams.Names.historySubject(row.name, q.Community, q.Method))
	after := uint64(0)
	if !q.From.IsZero() {
		before, _, err := stored.lastUpTo(ctx, (*rollupChunk).ends, q.From.UnixNano()-1)
		if err != nil {
			return nil, false, err
		}
		after = before.sequence
	}
	err = stored.each(ctx, after, func(c rollupChunk) (further bool) {
		for _, one := range c.Rollups {
			if q.covers(&one) &&
				// the chunk may have been published meanwhile
				(len(under) == 0 || one.Time.Before(under[0].Time)) {
				list = append(list, one)
			}
		}
		return len(list) <= most &&
			(len(c.Rollups) == 0 || q.To.IsZero() || !c.Rollups[0].Time.After(q.To))
	})
	for _, one := range under {
		if q.covers(&one) {
			list = append(list, one)
		}
	}
	return list, len(list) <= most, err
}

// covers reports whether a question is about a part of the period of a roll-up.
func (q *RollupQuery) covers(one *Rollup) bool {
	return (q.From.IsZero() || !one.Until.Before(q.From)) &&
		(q.To.IsZero() || !one.Time.After(q.To))
}

// reading reads the chunks of a resolution on a subject.
func (r *Rollups) reading(i int, subject string) reading[rollupChunk] {
	return reading[rollupChunk]{r.config.JS, r.stored[i].name, r.config.Log, []string{subject}}
}

// Recent visits the roll-ups of the last day or two of log time of each community by each method,
// oldest first: of hours, and of minutes in the hour under way. It waits until the roll-ups are
// open.
func (r *Rollups) Recent(
	ctx context.Context,
	visit func(community, method string, list []Rollup),
) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.opened:
	}
	const hour = 1 // of resolutions
	under := map[[2]string][]Rollup{}
	r.mu.Lock()
	for _, s := range r.state.Series {
		underWay := func(one Rollup) bool {
			return len(s.Rollups[0]) > 0 && !one.Until.Before(s.Rollups[0][0].Time)
		}
		under[[2]string{s.Community, s.Method}] = append(
			slices.DeleteFunc(slices.Clone(s.Rollups[hour]), underWay),
			s.Rollups[0]...)
	}
	r.mu.Unlock()
	stored := r.reading(hour, r.config.Streams.Names.subjects+".history."+string(hours)+".*.*")
	err := stored.newest(ctx, func(c rollupChunk) bool {
		key := [2]string{c.Community, c.Method}
		visit(c.Community, c.Method, append(c.Rollups, under[key]...))
		delete(under, key)
		return true
	})
	for key, list := range under {
		visit(key[0], key[1], list)
	}
	return err
}

// Notes returns at most that many of the newest stored notes, oldest first.
func (r *Rollups) Notes(ctx context.Context, most int) (list []Note, err error) {
	stored := reading[Note]{
		r.config.JS,
		r.stored[notes].name,
		r.config.Log,
		[]string{r.config.Streams.Names.noteSubject()},
	}
	err = stored.each(ctx, 0, func(n Note) bool {
		list = append(list, n)
		list = list[max(0, len(list)-most):]
		return true
	})
	return list, err
}
