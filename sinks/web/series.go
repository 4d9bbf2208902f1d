package web

import (
	"container/list"
	"math"
	"slices"
	"time"

	"gqlstream/quant"
)

// record is one estimate as it was published. It is never changed once stored.
type record struct {
	estimate quant.Estimate
	at       time.Time // log time; zero when the estimate has none
	received time.Time // wall clock
}

// newRecord takes over an estimate and its lists. Where received is zero, it came at its log time.
func newRecord(e quant.Estimate, received time.Time) *record {
	if e.Suppressed { // the other fields are not public
		e = quant.Estimate{
			Pipeline:     e.Pipeline,
			Community:    e.Community,
			Position:     e.Position,
			Time:         e.Time,
			Method:       e.Method,
			ModelVersion: e.ModelVersion,
			Config:       e.Config,
			Suppressed:   true,
			Flags:        e.Flags,
		}
	}
	for _, f := range []*[]float64{
		&e.Prevalence, &e.Low, &e.High, &e.SE, &e.SEChange, &e.NEff, &e.Influence,
	} {
		if *f == nil {
			*f = []float64{} // not null in JSON
		}
	}
	if e.Flags == nil {
		e.Flags = []string{}
	}
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	switch {
	case received.IsZero() && err == nil:
		received = at
	case received.IsZero():
		received = time.Now()
	}
	return &record{e, at, received}
}

// fits reports whether an estimate has K shares, or none because it is suppressed: the output
// log may have records of other classes. All numbers are finite, or they would not be in JSON.
func fits(e *quant.Estimate, k int) bool {
	return len(e.Prevalence) == k || e.Suppressed && len(e.Prevalence) == 0
}

// series holds the list's figures of one community by one method. Charts read the output log.
type series struct {
	method  string
	latest  *record
	past    []point       // of the last day, oldest first, the latest record included
	step    time.Duration // between two points, at least
	changed uint64        // position of the store when the latest came
	// log time of the newest record with other figures than the one before, wall clock without log
	// time
	evident time.Time
	place   *list.Element // among those of the store

	published uint64 // records that came since the server began
}

// point holds the list's figures of a record that may be deleted.
type point struct {
	at time.Time
	// at in nanoseconds since 1970, or where the log has no times the position in 1e9
	cell   int64
	shares []float64 // empty: suppressed
	se     []float64 // of the shares; empty: not known
	news   []news    // empty: not known
	rests  bool      // on a label
}

// Bounds of past. The bytes are those of all series together, about.
const (
	pastMax      = 2 * trendMax
	pastBytesMax = 64 << 20
	pointBytes   = 80 // without the shares
	pastStepMin  = time.Second
)

// pastLimit returns the number of points that each series may keep.
func pastLimit(series, classes int) int {
	return max(2, min(pastMax, pastBytesMax/(pointBytes+32*classes)/max(series, 1)))
}

// add takes the newest record.
func (s *series) add(r *record, limit int) {
	e := &r.estimate
	if s.latest == nil || differs(&s.latest.estimate, e) {
		s.evident = r.at
		if r.at.IsZero() {
			s.evident = r.received
		}
	}
	s.latest = r
	s.addPoint(
		point{
			at:     r.at,
			cell:   int64(e.Position) * 1e9,
			shares: e.Prevalence,
			se:     withoutLag(e),
			news:   addNews(s.lastNews(), e.Moved, e.SEChange),
			rests:  !r.flagged(quant.FlagNoLabels),
		},
		limit,
	)
}

// withoutLag returns the standard errors of an estimate without the part by which it may be behind.
// That part is large while opinions move, and says nothing about how well the estimate is known.
func withoutLag(e *quant.Estimate) []float64 {
	if len(e.SELag) != len(e.SE) {
		return e.SE
	}
	se := make([]float64, len(e.SE))
	for k, x := range e.SE {
		se[k] = math.Sqrt(max(0, x*x-e.SELag[k]*e.SELag[k]))
	}
	return se
}

// shareVisible is the least change of a share that a reader sees.
const shareVisible = 0.0005

// differs reports whether a reader sees other figures in b than in a: a record that repeats them
// says that nothing has happened.
func differs(a, b *quant.Estimate) bool {
	if a.Members != b.Members || a.Labelled != b.Labelled || a.AuditLabels != b.AuditLabels ||
		a.ModelVersion != b.ModelVersion || a.Suppressed != b.Suppressed {
		return true
	}
	return !slices.EqualFunc(a.Prevalence, b.Prevalence, func(x, y float64) bool {
		return math.Abs(x-y) < shareVisible
	})
}

// lastNews returns the news up to the newest point.
func (s *series) lastNews() []news {
	if len(s.past) == 0 {
		return nil
	}
	return s.past[len(s.past)-1].news
}

// addPoint adds a point in place of one a step before, and makes the steps longer where there
// are too many.
func (s *series) addPoint(p point, limit int) {
	if !p.at.IsZero() {
		p.cell = p.at.UnixNano()
		for n := len(s.past); n > 0 && s.past[n-1].at.After(p.at); n-- {
			s.past = s.past[:n-1] // log time was set back
		}
		old := func(q point) bool { return !q.at.IsZero() && !q.at.After(p.at.Add(-day)) }
		for len(s.past) > 1 && old(s.past[1]) {
			s.past = s.past[1:]
		}
	}
	s.past = append(s.past, p)
	for s.step = max(s.step, pastStepMin); ; s.step *= 2 {
		kept := s.past[:0]
		for i, q := range s.past {
			if i+1 == len(s.past) || q.cell/int64(s.step) != s.past[i+1].cell/int64(s.step) {
				kept = append(kept, q)
			}
		}
		clear(s.past[len(kept):])
		if s.past = kept; len(kept) <= limit {
			return
		}
	}
}

// trend returns up to n shares of a class, evenly spaced over the last day.
func (s *series) trend(class, n int) []float64 {
	if n < 2 || len(s.past) < 2 {
		return nil
	}
	out := make([]float64, 0, n)
	for _, p := range spread(s.past, n) {
		if class < len(p.shares) {
			out = append(out, p.shares[class])
		}
	}
	return out
}

// movement says by how much the share of a class differs from that of an earlier record.
type movement struct {
	Since  time.Time // log time of the earlier record
	Change float64   // of the published share
	Moved  float64   // the part of Change that is news; all of it where records do not say
	Error  float64   // standard error of Moved; 0: not known
}

// settled reports whether a point is beyond the first estimates of a log, which swing because there
// are hardly any labels: its error is at most twice that of now.
func (p *point) settled(now *point, class int) bool {
	return class >= len(p.se) || class >= len(now.se) || p.se[class] <= 2*now.se[class]
}

// dayChange compares the share of a class with that a day of log time before, or with the
// oldest that is kept, rests on a label and is settled; false where there is nothing to
// compare. Where records do not divide their changes, the errors of both count as independent,
// so that Error is not too small.
func (s *series) dayChange(class int) (m movement, ok bool) {
	now := &s.past[len(s.past)-1]
	first := slices.IndexFunc(s.past,
		func(p point) bool { return p.rests && p.settled(now, class) })
	if first < 0 || first == len(s.past)-1 || class >= len(s.past[first].shares) ||
		class >= len(now.shares) {
		return m, false
	}
	then := &s.past[first]
	m = movement{Since: then.at, Change: now.shares[class] - then.shares[class]}
	m.Moved = m.Change
	if class < len(then.se) && class < len(now.se) {
		m.Error = math.Hypot(then.se[class], now.se[class])
	}
	if class < len(then.news) && class < len(now.news) {
		m.Moved = now.news[class].sum - then.news[class].sum
		if v := now.news[class].variance - then.news[class].variance; v > 0 {
			m.Error = math.Sqrt(v)
		}
	}
	return m, true
}

// news is the sum of moved of a share since the first record with that field.
type news struct{ sum, variance float64 }

// addNews returns the news after a record with such parts. Without parts there are none from then
// on until the next that has them: the sums would leave a change out.
func addNews(before []news, moved, se []float64) []news {
	if len(moved) == 0 {
		return nil
	}
	out := make([]news, len(moved))
	copy(out, before)
	for k, x := range moved {
		out[k].sum += x
		if k < len(se) {
			out[k].variance += se[k] * se[k]
		}
	}
	return out
}
