package alerts

import "math"

// spread learns how far one series moves by itself: the mean square of its movements over a
// window, beside the variance that the standard errors of the records give for them.
type spread struct {
	Windows  float64 `json:"windows"`  // that were seen, at most a memory of them
	Square   float64 `json:"square"`   // mean of the squared movements
	Expected float64 `json:"expected"` // mean of their variances by the records
}

const (
	// spreadPrior is the number of windows that the errors of the records count for.
	spreadPrior = 5
	// spreadOutlier bounds a movement that is learned, in spreads: news is not noise.
	spreadOutlier = 4
	// ratioMax bounds a movement in units of a spread that is zero.
	ratioMax = 1e6
)

// scale returns the spread of a movement. variance is that of the present window, for the first
// one.
func (s *spread) scale(variance float64) float64 {
	if s.Windows == 0 {
		return math.Sqrt(variance)
	}
	return math.Sqrt((spreadPrior*s.Expected + s.Windows*s.Square) / (spreadPrior + s.Windows))
}

// learn takes a movement and its variance by the records, seen for a part of a window. Windows
// beyond a memory of them are forgotten.
func (s *spread) learn(movement, variance, part, memory float64) {
	most := max(spreadOutlier*s.scale(variance), math.Sqrt(variance))
	square := math.Pow(min(math.Abs(movement), most), 2)
	s.Windows = min(s.Windows+part, memory)
	share := part / s.Windows
	s.Square += share * (square - s.Square)
	s.Expected += share * (variance - s.Expected)
}

// ratio returns a movement in units of a scale.
func ratio(movement, scale float64) float64 {
	if movement == 0 {
		return 0
	}
	return max(-ratioMax, min(ratioMax, movement/max(scale, 1/ratioMax)))
}

// tail learns from all series of a rule how often their statistic rises above a level by itself,
// and how far it then goes. Beyond the level, peaks are taken to be exponential (peaks over
// threshold; Pickands, 1975). From that follow the threshold for a budget of false alarms, and the
// false alarms to expect of a threshold. Before anything is learned, a prior stands for it, which
// counts as tailPrior peaks.
type tail struct {
	Looks  float64 `json:"looks"`  // windows of all series
	Peaks  float64 `json:"peaks"`  // that rose above the level and did not ring
	Excess float64 `json:"excess"` // the sum of their heights above it
}

// shape is how a statistic behaves on changes that are normal and independent.
type shape struct {
	level float64 // above which peaks are learned
	rate  float64 // of such peaks, a window
	mean  float64 // of their heights above the level
}

const (
	tailPrior = 20
	// then half is forgotten, so that a time of much noise does not count for ever
	tailPeaksMax = 1000
	// the largest mean height, as a part of that of the shape: real movements are no noise
	tailMeanMax = 3
	tailQuiet   = 0.1 // the least rate of peaks, as a part of that of the shape
)

// changeShape is that of a change over a window, in spreads: both directions together cross b about
// 2 b phi(b) times a window (Slepian, 1961), phi the normal density.
var changeShape = shape{level: 3, rate: 0.0266, mean: 0.27}

const (
	cusumPeaks = 1e-3  // about, a window: those that are learned from
	cusumEdge  = 1.166 // what Siegmund adds to a threshold for the steps being whole ones
)

// cusumShape is that of a CUSUM with a drift, by Siegmund's approximation of its run length (1985).
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
	rate = max(tailQuiet*s.rate, (tailPrior+t.Peaks)/(tailPrior/s.rate+t.Looks))
	mean = (tailPrior*s.mean + t.Excess) / (tailPrior + t.Peaks)
	return rate, min(mean, tailMeanMax*s.mean)
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

// look counts a part of a window of a series.
func (t *tail) look(part float64) { t.Looks += part }

// peak counts a peak that rang nothing.
func (t *tail) peak(s shape, height float64) {
	if t.Peaks, t.Excess = t.Peaks+1, t.Excess+height-s.level; t.Peaks > tailPeaksMax {
		t.Looks = t.Looks / 2
		t.Peaks = t.Peaks / 2
		t.Excess = t.Excess / 2
	}
}
