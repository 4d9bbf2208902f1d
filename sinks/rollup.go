package sinks

import (
	"math"
	"slices"
	"time"
)

// Resolution names the length of the periods of roll-ups.
type Resolution string

// Resolutions of roll-ups.
const (
	minutes Resolution = "minute"
	hours   Resolution = "hour"
	days    Resolution = "day"
)

// resolutionRow describes how roll-ups of a resolution are made and kept. Every period is a
// whole number of those of the row before.
type resolutionRow struct {
	name   Resolution
	period time.Duration
	chunk  time.Duration // roll-ups of so long a time are one message
	keep   time.Duration // log time; 0: for good
}

// resolutions are in order from the finest.
var resolutions = [...]resolutionRow{
	{minutes, time.Minute, time.Hour, 35 * 24 * time.Hour},
	{hours, time.Hour, 24 * time.Hour, 2 * 366 * 24 * time.Hour},
	{days, 24 * time.Hour, 8 * 24 * time.Hour, 0},
}

const notes = len(resolutions) - 1 // index of the resolution whose stream has the notes, for good as well

// rollupDecimals is one over the unit to which shares in roll-ups are rounded.
const rollupDecimals = 1e6

// Rollup describes what was published of a community by a method in a period of log time.
// Low is the least lower bound and High the largest upper one of each class; both are
// empty where no record had an interval. Shares have six decimals.
type Rollup struct {
	Time     time.Time `json:"time"`     // beginning of the period
	Until    time.Time `json:"until"`    // log time of the last record
	Position uint64    `json:"position"` // of the last record
	Count    uint64    `json:"count"`    // records
	Last     []float32 `json:"last"`
	Mean     []float32 `json:"mean"`
	Low      []float32 `json:"low,omitempty"`
	High     []float32 `json:"high,omitempty"`
	Flags    []string  `json:"flags,omitempty"` // met, sorted
}

// period is a Rollup under way.
type period struct {
	Start, Until    int64 // nanoseconds since 1970
	Position, Count uint64
	Last, Sum       []float64
	Low, High       []float64
	Flags           []string
}

// begin returns the beginning of the period or chunk of a length in which a time lies.
func begin(at int64, length time.Duration) int64 { return at - at%int64(length) }

// merge takes in what another period has, which comes later, into one of a length. It keeps nothing of
// it. One with another number of classes begins the period anew.
func (p *period) merge(q *period, length time.Duration) {
	if q.Count == 0 {
		return
	}
	if p.Count == 0 {
		p.Start = begin(q.Start, length)
	}
	if p.Count == 0 || len(p.Last) != len(q.Last) {
		*p = period{Start: p.Start, Sum: make([]float64, len(q.Last))}
	}
	p.Until, p.Position, p.Count = q.Until, q.Position, p.Count+q.Count
	p.Last = append(p.Last[:0], q.Last...)
	for k, x := range q.Sum {
		p.Sum[k] += x
	}
	p.Low, p.High = choose(p.Low, q.Low, math.Min), choose(p.High, q.High, math.Max)
	for _, f := range q.Flags {
		if at, found := slices.BinarySearch(p.Flags, f); !found {
			p.Flags = slices.Insert(p.Flags, at, f)
		}
	}
}

// choose returns the better of two lists, item by item; an empty one counts for nothing.
func choose(a, b []float64, better func(x, y float64) float64) []float64 {
	if len(a) != len(b) {
		if len(a) > 0 {
			return a
		}
		return slices.Clone(b)
	}
	for k := range a {
		a[k] = better(a[k], b[k])
	}
	return a
}

// rollup returns the period as it is published.
func (p *period) rollup() Rollup {
	return Rollup{
		Time: time.Unix(0, p.Start).UTC(), Until: time.Unix(0, p.Until).UTC(), Position: p.Position, Count: p.Count,
		Last: rounded(p.Last, 1), Mean: rounded(p.Sum, float64(p.Count)), Low: rounded(p.Low, 1), High: rounded(p.High, 1),
		Flags: slices.Clone(p.Flags),
	}
}

func rounded(list []float64, divisor float64) []float32 {
	if len(list) == 0 {
		return nil
	}
	out := make([]float32, len(list))
	for k, x := range list {
		out[k] = float32(math.Round(x/divisor*rollupDecimals) / rollupDecimals)
	}
	return out
}

// rolled is one community by one method: for each resolution the period under way, and
// those of the chunk that is not complete yet.
type rolled struct {
	Community, Method string
	Open              [len(resolutions)]period
	Closed            [len(resolutions)][]Rollup
}

// rollupChunk is a message of a stream of roll-ups, packed with gzip.
type rollupChunk struct {
	Community  string     `json:"community"`
	Method     string     `json:"method"`
	Resolution Resolution `json:"resolution"`
	Rollups    []Rollup   `json:"rollups"`
}

// advance ends the periods that are over at a log time. Each goes into the period of the
// next resolution that holds it.
func (s *rolled) advance(now int64) {
	for i, r := range resolutions {
		p := &s.Open[i]
		if p.Count == 0 || p.Start+int64(r.period) > now {
			continue
		}
		s.Closed[i] = append(s.Closed[i], p.rollup())
		if i+1 < len(resolutions) {
			s.Open[i+1].merge(p, resolutions[i+1].period)
		}
		*p = period{}
	}
}

// complete returns the chunk of a resolution if it is over at a log time, or cannot grow.
func (s *rolled) complete(i int, now int64) (chunk rollupChunk, ok bool) {
	list := s.Closed[i]
	if len(list) == 0 {
		return chunk, false
	}
	end := begin(list[0].Time.UnixNano(), resolutions[i].chunk) + int64(resolutions[i].chunk)
	if end > now && len(list)*len(list[0].Last) < chunkSharesMax {
		return chunk, false
	}
	s.Closed[i] = nil
	return rollupChunk{Community: s.Community, Method: s.Method, Resolution: resolutions[i].name, Rollups: list}, true
}

// chunkSharesMax keeps a chunk of many classes within what a message may hold.
const chunkSharesMax = 8192

// unpublished returns the roll-ups of a resolution that are in no chunk yet. The last one
// is of the period under way.
func (s *rolled) unpublished(i int) []Rollup {
	list := slices.Clone(s.Closed[i])
	var now period
	for j := i; j >= 0; j-- {
		now.merge(&s.Open[j], resolutions[i].period)
	}
	if now.Count > 0 {
		list = append(list, now.rollup())
	}
	return list
}
