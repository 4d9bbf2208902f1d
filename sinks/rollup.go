package sinks

import (
	"math"
	"slices"
	"time"

	"gqlstream/quant"
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
	chunk  time.Duration // roll-ups of so long a time are one message, or several of many classes
	keep   time.Duration // that the stream of a community has at least; 0: for good
}

// resolutions are in order from the finest.
var resolutions = [...]resolutionRow{
	{minutes, time.Minute, time.Hour, 35 * 24 * time.Hour},
	{hours, time.Hour, 24 * time.Hour, 2 * 366 * 24 * time.Hour},
	{days, 24 * time.Hour, 8 * 24 * time.Hour, 0},
}

const notes = len(
	resolutions) - 1 // index of the resolution with the stream of the notes, for good as well

// rollupDecimals is one over the unit of rounded shares in roll-ups.
const rollupDecimals = 1e6

// Rollup summarises the records of a community and method in a period of log time. Low is the least
// lower bound and High the largest upper bound of each class; both are empty if no record had an
// interval. Moved, Revised and Counted are sums over the records, so that a chart can shift earlier
// shares by later corrections; their errors are the roots of the sums of the squared errors. Shares
// have six decimals.
type Rollup struct {
	Time     time.Time `json:"time"`     // beginning of the period
	Until    time.Time `json:"until"`    // log time of the last record
	Position uint64    `json:"position"` // of the last record
	Count    uint64    `json:"count"`    // records
	Last     []float64 `json:"last"`
	Mean     []float64 `json:"mean"`
	Low      []float64 `json:"low,omitempty"`
	High     []float64 `json:"high,omitempty"`
	Moved    []float64 `json:"moved,omitempty"`
	Revised  []float64 `json:"revised,omitempty"`
	Counted  []float64 `json:"counted,omitempty"`
	Flags    []string  `json:"flags,omitempty"` // met, sorted

	SEChange  []float64 `json:"se_change,omitempty"` // of Moved
	SERevised []float64 `json:"se_revised,omitempty"`
	SECounted []float64 `json:"se_counted,omitempty"`

	ModelVersion string `json:"model_version,omitempty"` // of the last record
	Posterior    uint64 `json:"posterior,omitempty"`     // the same
}

// periodStart returns the beginning of the period or chunk of a length that contains a time.
func periodStart(at int64, length time.Duration) int64 { return at - at%int64(length) }

// periodSums holds the exact sums over the records of a period, K each. Those with an error are
// empty in a period that a release without them began.
type periodSums struct {
	Shares, Moved, Revised, Counted []float64
	Squares                         [3][]float64 // of the errors of Moved, Revised and Counted
}

func newPeriodSums(classes int) (sums periodSums) {
	for _, list := range []*[]float64{
		&sums.Shares, &sums.Moved, &sums.Revised, &sums.Counted,
		&sums.Squares[0], &sums.Squares[1], &sums.Squares[2],
	} {
		*list = make([]float64, classes)
	}
	return sums
}

// addRecord adds a record of the period. sums has the sums of earlier records, and is updated.
// The lists of the roll-up are newly allocated, because readers may keep them.
func (r *Rollup) addRecord(e *quant.Estimate, at int64, sums *periodSums) {
	addTo(sums.Shares, e.Prevalence)
	addTo(sums.Moved, e.Moved)
	addTo(sums.Revised, e.Revised)
	addTo(sums.Counted, e.Counted)
	for i, errors := range [][]float64{e.SEChange, e.SERevised, e.SECounted} {
		for k := range min(len(sums.Squares[i]), len(errors)) {
			sums.Squares[i][k] += float64(errors[k] * errors[k])
		}
	}
	r.Until = time.Unix(0, at).UTC()
	r.Position = e.Position
	r.Count = r.Count + 1
	r.Last, r.Mean = rounded(e.Prevalence, 1), rounded(sums.Shares, float64(r.Count))
	if len(e.Moved) > 0 {
		r.Moved, r.Revised = rounded(sums.Moved, 1), rounded(sums.Revised, 1)
		r.SEChange, r.SERevised = roots(sums.Squares[0]), roots(sums.Squares[1])
	}
	if len(e.Counted) > 0 {
		r.Counted, r.SECounted = rounded(sums.Counted, 1), roots(sums.Squares[2])
	}
	r.ModelVersion, r.Posterior = e.ModelVersion, e.Posterior
	if low, high := rounded(e.Low, 1), rounded(e.High, 1); len(low) == len(r.Last) &&
		len(high) == len(r.Last) {
		for k := range r.Low {
			low[k] = min(low[k], r.Low[k])
			high[k] = max(high[k], r.High[k])
		}
		r.Low, r.High = low, high
	}
	r.Flags = slices.Concat(r.Flags, e.Flags)
	slices.Sort(r.Flags)
	r.Flags = slices.Compact(r.Flags)
}

// addTo adds a list. Either may be empty.
func addTo(sum, list []float64) {
	for k := range min(len(sum), len(list)) {
		sum[k] += list[k]
	}
}

// roots returns the square roots, rounded.
func roots(squares []float64) []float64 {
	out := slices.Clone(squares)
	for k, x := range out {
		out[k] = math.Sqrt(x)
	}
	return rounded(out, 1)
}

func rounded(list []float64, divisor float64) []float64 {
	out := make([]float64, len(list))
	for k, x := range list {
		out[k] = math.Round(x/divisor*rollupDecimals) / rollupDecimals
	}
	return out
}

// rolled is one community by one method: for each resolution the roll-ups that are in no chunk yet,
// oldest first, and the sums over the last one, which may still take records.
type rolled struct {
	Community, Method string
	Rollups           [len(resolutions)][]Rollup
	Sums              [len(resolutions)]periodSums
}

// rollupChunk is a message of a stream of roll-ups, packed with gzip.
type rollupChunk struct {
	Community  string     `json:"community"`
	Method     string     `json:"method"`
	Resolution Resolution `json:"resolution"`
	Rollups    []Rollup   `json:"rollups"`
}

// ends returns the log time of the last record; without roll-ups it is nothing of ours, and 0.
func (c *rollupChunk) ends() int64 {
	if len(c.Rollups) == 0 {
		return 0
	}
	return c.Rollups[len(c.Rollups)-1].Until.UnixNano()
}

// add adds a record. A record with another number of classes restarts its periods.
func (s *rolled) add(e *quant.Estimate, at int64) {
	for i, row := range resolutions {
		start := time.Unix(0, periodStart(at, row.period)).UTC()
		n := len(s.Rollups[i])
		if n == 0 || s.Rollups[i][n-1].Time.Before(start) {
			s.Rollups[i] = append(s.Rollups[i], Rollup{Time: start})
			s.Sums[i] = newPeriodSums(len(e.Prevalence))
			n++
		}
		last := &s.Rollups[i][n-1]
		if len(s.Sums[i].Shares) != len(e.Prevalence) {
			*last, s.Sums[i] = Rollup{Time: last.Time}, newPeriodSums(len(e.Prevalence))
		}
		last.addRecord(e, at, &s.Sums[i])
	}
}

// setClock drops the roll-ups of periods that begin later.
func (s *rolled) setClock(now int64) {
	for i := range s.Rollups {
		kept := s.Rollups[i]
		for len(kept) > 0 && kept[len(kept)-1].Time.UnixNano() > now {
			kept = kept[:len(kept)-1]
		}
		if len(kept) == len(s.Rollups[i]) {
			continue
		}
		if s.Rollups[i] = slices.Clone(kept); len(kept) > 0 {
			s.Sums[i] = kept[len(kept)-1].sums()
		}
	}
}

// sums returns the sums over the records of a period, to the precision of the roll-up.
func (r *Rollup) sums() periodSums {
	sums := newPeriodSums(len(r.Last))
	for k := range r.Mean {
		sums.Shares[k] = r.Mean[k] * float64(r.Count)
	}
	addTo(sums.Moved, r.Moved)
	addTo(sums.Revised, r.Revised)
	return sums
}

// chunkSharesMax keeps a chunk with many classes within the size of a message.
const chunkSharesMax = 8192

// messages returns how many roll-ups a chunk may have.
func (row *resolutionRow) messages(classes int) int64 {
	each := (chunkSharesMax-1)/max(classes, 1) + 1 // roll-ups
	return (int64(row.chunk/row.period)-1)/int64(each) + 1
}

// complete returns the chunk of a resolution if it is over at a log time, or cannot grow.
func (s *rolled) complete(i int, now int64) (chunk rollupChunk, ok bool) {
	list := s.Rollups[i]
	if len(list) == 0 {
		return chunk, false
	}
	row, n := resolutions[i], len(list)
	if list[n-1].Time.UnixNano()+int64(row.period) > now {
		n-- // the last one still takes records
	}
	end := periodStart(list[0].Time.UnixNano(), row.chunk) + int64(row.chunk)
	if n == 0 || end > now && n*len(list[0].Last) < chunkSharesMax {
		return chunk, false
	}
	s.Rollups[i] = slices.Clone(list[n:])
	return rollupChunk{s.Community, s.Method, row.name, list[:n]}, true
}
