package alerts

import (
	"math"
	"slices"
)

// spread learns the usual movement of one series, in addition to the standard errors of its
// records. News must not widen it: the windows are divided into blocks, and the
// spread is the median of their mean squares (median of means). A few movements are in a few
// blocks, and so are the first records of a log, when everything comes at once.
type spread struct {
	Windows float64 `json:"windows"` // that were seen, at most a memory of them
	Length  float64 `json:"length"`  // of a block, in windows
	Blocks  []block `json:"blocks,omitempty"`
	Open    block   `json:"open"`
	Filled  float64 `json:"filled"` // windows of the open block
}

// block holds means over the windows of a block.
type block struct {
	Square   float64 `json:"square"`   // of the squared movements
	Variance float64 `json:"variance"` // of their variances by the records
}

const (
	// spreadPrior is the number of windows that the errors of the records count for.
	spreadPrior = 5
	// blocksMost is the number of blocks; then two become one, up to the memory of a
	// spread.
	blocksMost = 16
	// blocksLeast is the number of blocks that a median needs; with fewer, the mean is used.
	blocksLeast = 3
	// burstPart is the part of the errors of the records, as far as they have proved
	// right, that a spread is at least: where predictions of many members are made again
	// at once, a series moves further than it does usually.
	burstPart = 0.6
	// ratioMax bounds a movement in units of a spread that is zero.
	ratioMax = 1e6
)

// scale returns the spread of a movement, given its variance in the records.
func (s *spread) scale(variance float64) float64 {
	square, expected := s.typical()
	if s.Windows == 0 {
		return math.Sqrt(max(variance, 0))
	}
	square = (spreadPrior*expected + s.Windows*square) / (spreadPrior + s.Windows)
	known := s.known()
	proved := (spreadPrior + known*s.proved()) / (spreadPrior + known)
	return math.Sqrt(max(square, burstPart*burstPart*min(1, proved)*max(variance, 0)))
}

// known returns the number of windows in blocks with a variance above zero.
func (s *spread) known() (windows float64) {
	for _, b := range s.Blocks {
		if b.Variance > 0 {
			windows += s.Length
		}
	}
	return windows
}

// proved returns the ratio of squared movements to their variances in the records: the median
// over blocks with a variance above zero, 0 if there are none. Most of the
// time nothing moves in a community about which few people post.
func (s *spread) proved() float64 {
	ratios := make([]float64, 0, blocksMost)
	for _, b := range s.Blocks {
		if b.Variance > 0 {
			ratios = append(ratios, b.Square/b.Variance)
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	return median(ratios) / normalMedian(s.Length)
}

// normalMedian is the median of a mean of squares of n normal numbers, as a part of its mean
// (Wilson and Hilferty, 1931).
func normalMedian(n float64) float64 { return math.Pow(1-2/(9*max(n, 1)), 3) }

// typical returns the square of a usual movement, and the usual variance by the records.
func (s *spread) typical() (square, expected float64) {
	n := len(s.Blocks)
	if n < blocksLeast {
		mean, filled := s.Open, s.Filled
		mean.Square, mean.Variance = mean.Square*filled, mean.Variance*filled
		for _, b := range s.Blocks {
			mean.Square += b.Square * s.Length
			mean.Variance += b.Variance * s.Length
			filled += s.Length
		}
		return mean.Square / max(filled, math.SmallestNonzeroFloat64),
			mean.Variance / max(filled, math.SmallestNonzeroFloat64)
	}
	squares, variances := make([]float64, n), make([]float64, n)
	for i, b := range s.Blocks {
		squares[i], variances[i] = b.Square, b.Variance
	}
	return median(squares) / normalMedian(s.Length), median(variances)
}

// median returns the median of a list, which it sorts.
func median(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// learn takes a movement and its variance by the records, seen for a part of a window. Windows
// beyond a memory of them are forgotten.
func (s *spread) learn(movement, variance, part, memory float64) {
	s.Length = max(s.Length, 1)
	s.Windows = min(s.Windows+part, memory)
	s.Filled += part
	share := part / s.Filled
	s.Open.Square += share * (movement*movement - s.Open.Square)
	s.Open.Variance += share * (variance - s.Open.Variance)
	if s.Filled < s.Length-1e-9 {
		return
	}
	s.Blocks = append(s.Blocks, s.Open)
	s.Open, s.Filled = block{}, 0
	switch {
	case len(s.Blocks) < blocksMost:
	case s.Length*blocksMost >= memory:
		s.Blocks = slices.Delete(s.Blocks, 0, 1)
	default:
		for i := range len(s.Blocks) / 2 {
			a, b := s.Blocks[2*i], s.Blocks[2*i+1]
			s.Blocks[i] = block{(a.Square + b.Square) / 2, (a.Variance + b.Variance) / 2}
		}
		s.Blocks = s.Blocks[:len(s.Blocks)/2]
		s.Length *= 2
	}
}

// ratio returns a movement in units of a scale.
func ratio(movement, scale float64) float64 {
	if movement == 0 {
		return 0
	}
	return max(-ratioMax, min(ratioMax, movement/max(scale, 1/ratioMax)))
}

// tail learns from all series of a rule how often their statistic rises above a level by
// itself, and how far it then goes. Beyond the level, peaks are taken to be exponential (peaks
// over threshold; Pickands, 1975). From that follow the threshold for a budget of false
// alarms, and the false alarms to expect of a threshold. Before anything is learned, a prior
// stands for it, which counts as tailPrior peaks.
type tail struct {
	Looks  float64 `json:"looks"`  // windows of all series
	Peaks  float64 `json:"peaks"`  // that rose above the level and did not ring
	Excess float64 `json:"excess"` // the sum of their heights above it

	Evidence []*evidence `json:"evidence,omitempty"` // by span, of rules without a number
}

// shape is how a statistic behaves on changes that are normal and independent.
type shape struct {
	level float64 // above which peaks are learned
	rate  float64 // of such peaks, a window
	mean  float64 // of their heights above the level
	least float64 // part of rate and mean below which nothing is learned
}

const (
	tailPrior    = 60
	tailPeaksMax = 1000 // then half is forgotten: a time of much noise does not count for ever
	// tailMeanMax is the largest mean height, as a part of that of the shape, and tailBend how much
	// of a height counts, as a part of the same: real movements are no noise.
	tailMeanMax = 2
	tailBend    = 5
	tailQuiet   = 0.1 // the least rate of peaks, as a part of that of the shape
)

// changeShape is that of a change over a window, in spreads: both directions together cross b
// about 2 b phi(b) times a window (Slepian, 1961), phi the normal density.
var changeShape = shape{level: 3, rate: 0.0266, mean: 0.27}

const (
	cusumPeaks = 1e-3  // about, per window: peaks that are learned from
	cusumEdge  = 1.166 // Siegmund's correction of a threshold for discrete steps
)

// cusumShape is that of a CUSUM with a drift, by Siegmund's approximation of its run length
// (1985).
func cusumShape(drift float64) shape {
	drift = max(drift, 0.05)
	level := max(0.5, math.Log(4*drift*drift/cusumPeaks)/(2*drift)-cusumEdge)
	x := 2 * drift * (level + cusumEdge)
	return shape{
		level: level,
		rate:  4 * drift * drift / (math.Exp(x) - x - 1),
		mean:  1 / (2 * drift),
	}
}

// fitted returns the rate of peaks above the level, a window, and their mean height above it.
func (t *tail) fitted(s shape) (rate, mean float64) {
	rate = (tailPrior + t.Peaks) / (tailPrior/s.rate + t.Looks)
	mean = (tailPrior*s.mean + t.Excess) / (tailPrior + t.Peaks)
	return max(rate, max(tailQuiet, s.least)*s.rate),
		max(s.least*s.mean, min(mean, tailMeanMax*s.mean))
}

// threshold returns the height that is passed by itself so often a window.
func (t *tail) threshold(s shape, often float64) float64 {
	rate, mean := t.fitted(s)
	return s.level + mean*max(0, math.Log(rate/often))
}

// often returns how often a window a height is passed by itself.
func (t *tail) often(s shape, height float64) float64 {
	rate, mean := t.fitted(s)
	return rate * math.Exp(-max(0, height-s.level)/mean)
}

// countPart counts a part of a window of a series.
func (t *tail) countPart(part float64) { t.Looks += part }

// peak counts a peak that rang nothing.
func (t *tail) peak(s shape, height float64) {
	t.Peaks++
	t.Excess += min(height-s.level, tailBend*s.mean)
	if t.Peaks > tailPeaksMax {
		t.Looks, t.Peaks, t.Excess = t.Looks/2, t.Peaks/2, t.Excess/2
	}
}
