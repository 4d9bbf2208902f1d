package posterior

import (
	"math"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/parallel"
	"gqlstream/quant/adjusted"
	"gqlstream/quant/stats"
)

// Drawn is the user's declaration of the draw of calibration labels.
type Drawn string

// The ways that can be declared.
const (
	drawnUnknown  Drawn = ""          // the labels themselves tell, see judge
	drawnAtRandom Drawn = "at-random" // their shares are those of the graph
	drawnByClass  Drawn = "by-class"  // they say nothing of the shares of the graph
)

// DrawnWays lists the ways that can be declared.
var DrawnWays = []Drawn{drawnAtRandom, drawnByClass}

const (
	// atypicalOdds are the odds, before T is seen, that labels are not typical.
	atypicalOdds = 0.25
	// atypicalSpread is the standard deviation of T, beside the error of the labels, if they are
	// not typical.
	atypicalSpread = 6.0
)

// correctionLeast is the correction of a share, as a part of it, below which there is none: it
// costs a second pass over all vertices.
const correctionLeast = 1e-3

// judge tests whether the calibration labels are typical of the open vertices, given the mean
// posterior of the latter, and corrects the posteriors if they are not. With T the largest
// difference of a class between that mean and the mean posterior of the labelled vertices, in
// standard errors of the latter, the shares of the graph are taken to be
//
//	q_G = pi0 + f (q - pi0),
//
// with q the adjusted count of the posteriors by the pairs of the labels, and f from
// correctionFactor, near 0 for T below 2 and near 1 above 3. T reads both sides as
// they are predicted now: if opinions have moved since the labels were given, the labelled vertices
// have moved as others, which does not make them untypical. A posterior is multiplied by q_G/pi0,
// and a label of class y weighs as much. It reports whether that changes anything.
func (s *State) judge(
	view graphstore.View, sums *neighborhood.Sums, open []float64, weight Weight,
) bool {
	k, e := s.classes, s.epoch
	e.Said, e.SaidNoise = make([]float64, k*k), make([]float64, k)
	said, present, pi := newMoments(k), newMoments(k), make([]float64, k)
	if weight == nil {
		weight = func(Vertex) float64 { return 1 }
	}
	reader := s.Reader(view, sums)
	for _, v := range s.labels() {
		reader.labelPosterior(pi, v)
		w, class := weight(v), int(view.Label(v).Class)
		said.add(pi, w)
		for i, p := range pi {
			e.Said[i*k+class] += float64(w * p)
		}
		if reader.Posterior(pi, v) {
			present.add(pi, w)
		}
	}
	for i := range k {
		_, e.SaidNoise[i] = said.mean(i)
	}
	e.Atypical = present.distance(open)
	corrects := false
	e.SharesNoise = make([]float64, k*k)
	if e.Shares, corrects = e.correction(open, s.drawn); !corrects {
		return false
	}
	e.SharesNoise = e.correctionNoise(open, s.drawn)
	for i, q := range e.Shares {
		e.B[i] += math.Log(q / e.Prior[i])
	}
	return true
}

// moments are the weighted sums of posteriors of some vertices.
type moments struct {
	sum, squares           []float64 // K
	weight, squaredWeights float64
}

func newMoments(k int) *moments {
	return &moments{sum: make([]float64, k), squares: make([]float64, k)}
}

func (m *moments) add(pi []float64, w float64) {
	m.weight, m.squaredWeights = m.weight+w, m.squaredWeights+float64(w*w)
	for i, p := range pi {
		m.sum[i] += float64(w * p)
		m.squares[i] += float64(w * float64(p*p))
	}
}

// mean returns the mean probability of a class and the variance of its error.
func (m *moments) mean(class int) (mean, noise float64) {
	if !(m.weight > 0) {
		return 0, 0
	}
	mean = m.sum[class] / m.weight
	noise = max(m.squares[class]/m.weight-float64(mean*mean), 0) * m.squaredWeights /
		(m.weight * m.weight)
	return mean, noise
}

// distance returns how far the mean is from another one that has no error: the largest difference
// of a class in standard errors.
func (m *moments) distance(from []float64) (most float64) {
	if !(m.weight > 0) || !(total(from) > 0) {
		return 0
	}
	for i, x := range from {
		mean, noise := m.mean(i)
		if off := math.Abs(x - mean); off > 0 {
			most = max(most, off/math.Sqrt(max(noise, 1e-12)))
		}
	}
	return most
}

// correction returns the shares q_G for a mean posterior of the open vertices before any
// correction, and whether they are others than the prior; see judge.
func (e *Epoch) correction(open []float64, drawn Drawn) (shares []float64, corrects bool) {
	shares = append([]float64(nil), e.Prior...)
	if !(total(e.Said) > 0) || !(total(open) > 0) {
		return shares, false
	}
	probability, shrinkage := correctionFactor(e.Atypical, drawn)
	factor := probability * shrinkage
	cells := &stats.Cells{Z: len(shares), P: open, N: e.Said}
	for i, q := range adjusted.AdjustedCount(cells, e.Prior) {
		prior := e.Prior[i]
		shares[i] = max(prior+float64(factor*(q-prior)), prior*probabilityMin)
		corrects = corrects || math.Abs(shares[i]/prior-1) > correctionLeast
	}
	if !corrects {
		return append(shares[:0], e.Prior...), false
	}
	scale := 1 / total(shares)
	for i := range shares {
		shares[i] *= scale
	}
	return shares, true
}

// correctionFactor returns the two factors of f in judge. The first is the probability that the
// labels are not typical, given T. Their T is then normal with the variance 1 + atypicalSpread²,
// else 1. The second is the part of T that is not error if they are not typical. Both are 0 for T
// below 1, where the difference is less than its error.
func correctionFactor(atypical float64, drawn Drawn) (probability, shrinkage float64) {
	switch drawn {
	case drawnAtRandom:
		return 0, 0
	case drawnByClass:
		return 1, 1
	}
	if atypical <= 1 {
		return 0, 0
	}
	const variance = atypicalSpread * atypicalSpread
	shrinkage = variance / (1 + variance)
	against := math.Sqrt(1+variance) / atypicalOdds *
		math.Exp(-shrinkage*float64(atypical*atypical)/2)
	return 1 / (1 + against), shrinkage
}

// correctionNoise returns the covariance of the error of the corrected shares, K x K. With p and s
// the factors of correctionFactor, x = q - pi0 the correction of judge, and Cov(q) from the mean
// posteriors of the labels, it is that of a normal mean given an observation of it (empirical
// Bayes), and that of not knowing whether there is anything to correct:
//
//	p s Cov(q) + p (1 - p) s² x x'
func (e *Epoch) correctionNoise(open []float64, drawn Drawn) []float64 {
	k := len(e.Prior)
	noise := make([]float64, k*k)
	probability, shrinkage := correctionFactor(e.Atypical, drawn)
	add := func(factor float64, off []float64) {
		for i, x := range off {
			for j, y := range off {
				noise[i*k+j] += float64(factor * float64(x*y))
			}
		}
	}
	cells := &stats.Cells{Z: k, P: open, N: e.Said}
	at := adjusted.AdjustedCount(cells, e.Prior)
	off := make([]float64, k)
	for i, q := range at {
		off[i] = shrinkage * (q - e.Prior[i])
	}
	add(probability*(1-probability), off)
	for class, variance := range e.SaidNoise {
		moved := append([]float64(nil), open...)
		for i := range moved {
			moved[i] -= math.Sqrt(variance) / float64(k)
		}
		moved[class] += math.Sqrt(variance)
		cells.P = moved
		off := adjusted.AdjustedCount(cells, e.Prior)
		for i := range off {
			off[i] -= at[i]
		}
		add(probability*shrinkage, off)
	}
	return noise
}

// Followed returns the epoch as it would be if it corrected for the open vertices of now: the same
// coefficients, labels and T, other shares of the graph. The correction follows the graph, so that
// its change between two epochs is movement, and all else revision.
func (s *State) Followed(view graphstore.View, sums *neighborhood.Sums) *Epoch {
	e, k := *s.epoch, s.classes
	mean := make([]float64, k)
	pi := make([]float64, k)
	for z, n := range s.openByCell(view, sums) {
		for i, p := range e.Means[z*k : (z+1)*k] {
			pi[i] = p * e.Prior[i] / e.Shares[i]
		}
		scale := float64(n) / total(pi)
		for i, p := range pi {
			mean[i] += float64(scale * p)
		}
	}
	if sum := total(mean); sum > 0 {
		for i := range mean {
			mean[i] /= sum
		}
	}
	e.Shares, _ = e.correction(mean, s.drawn)
	e.Means = append([]float64(nil), e.Means...)
	for z := range len(e.Means) / k {
		row := e.Means[z*k : (z+1)*k]
		for i := range row {
			row[i] *= e.Shares[i] / s.epoch.Shares[i]
		}
		scale := 1 / total(row)
		for i := range row {
			row[i] *= scale
		}
	}
	return &e
}

// openByCell counts the open vertices in each cell. The posteriors of vertices without a community
// are computed here: stored ones date from their last read, and a restart does not know that time.
func (s *State) openByCell(view graphstore.View, sums *neighborhood.Sums) []uint64 {
	open := make([]uint64, len(s.epoch.Means)/s.classes)
	var lock sync.Mutex
	parallel.Ranges(view.Vertices(), func(from, to int) {
		reader, counts := s.Reader(view, sums), make([]uint64, len(open))
		pi, root := make([]float64, s.classes), make([]float64, s.classes)
		for v := Vertex(from); v < Vertex(to); v++ {
			if !isOpen(view, v) {
				continue
			}
			if len(view.MemberOf(v)) > 0 {
				if z := s.contributions[v].cell; z > 0 {
					counts[z-1]++
				}
			} else if reader.Posterior(pi, v) {
				counts[s.epoch.cell(pi, root)]++
			}
		}
		lock.Lock()
		defer lock.Unlock()
		for z, n := range counts {
			open[z] += n
		}
	})
	return open
}

// meanOf returns the mean posterior of the open vertices, given their number in each cell.
func (e *Epoch) meanOf(open []uint64) []float64 {
	mean, k := make([]float64, len(e.Prior)), len(e.Prior)
	for z, n := range open {
		for i, p := range e.Means[z*k : (z+1)*k] {
			mean[i] += float64(float64(n) * p)
		}
	}
	if sum := total(mean); sum > 0 {
		for i := range mean {
			mean[i] /= sum
		}
	}
	return mean
}

// LabelWeights returns by how much a label of each class weighs, K: q_G/pi0; see judge.
func (e *Epoch) LabelWeights() []float64 {
	weights := make([]float64, len(e.Prior))
	for i, q := range e.Shares {
		weights[i] = q / e.Prior[i]
	}
	return weights
}
