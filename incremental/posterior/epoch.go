package posterior

import (
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

const (
	// priorObservations is added to the labels of every class in pi0.
	priorObservations = 0.1
	// fitLabelsMax bounds the labels that coefficients are fitted on; of more, every
	// n-th by vertex is. Views + K numbers need no more.
	fitLabelsMax = 20_000
)

// Epoch is the coefficients of the posterior, and the sums over the whole graph under them. It is
// immutable once made.
type Epoch struct {
	Coefficients
	Cells
	Features   []Feature  `column:"-"` // F: what is read of attributes
	Version    uint32     // from 1
	Began      event.Time // when the coefficients were fitted
	Model      uint32     // the model version that most labels had a prediction of
	Count      uint64     // of the labels
	Changed    uint64     // in a checkpoint: how far they changed since
	Open       uint64     // how many vertices were open
	Edges      uint64     // of the graph
	Covariance []float64  // (V+K)²: of theta, then b
	Prior      []float64  // K: pi0
	Labels     float64    // N: their number, or the sum of their weights
	// K: q_G, the shares of the graph that posteriors are corrected to; see judge
	Shares   []float64
	Atypical float64 // T: how far labels are from typical, in standard errors; see judge
	// K x K: covariance of the error that correcting the shares makes; see correctionNoise
	SharesNoise []float64
	// K x K: mean posteriors of the labels by class, sums over them; see judge
	Said      []float64
	SaidNoise []float64 // K: variances of the mean posterior of the labels

	Mass []float64 // K: sum of pi over the unlabelled vertices
	// K x K: M, the sum of pi(u) pi(v)' over the ordered pairs of unlabelled neighbours
	Pairs     []float64
	Sizes     []float64 // B: how many unlabelled vertices are in each cell
	Vertices  float64   // how many unlabelled vertices have a posterior
	Tops      []float64 // K: of how many of them the prediction is for each class
	LabelGate float64   // how far the labels are scattered: 1 for a uniform sample, see Gate
	// F: of the features of the open vertices
	FeatureMeans, FeatureVariances []float64
	// 2: covariance of classes one step apart and two steps apart, given the observations; see
	// agreement
	Agreement []float64
}

// Same reports whether two epochs give every vertex the same posterior, bit for bit.
func (e *Epoch) Same(other *Epoch) bool {
	return slices.Equal(e.Theta, other.Theta) && slices.Equal(e.B, other.B) &&
		slices.Equal(e.Prior, other.Prior)
}

// Weight returns the weight of a calibration label; nil is one for each.
type Weight func(v Vertex) float64

// fitted returns the epoch of the labels of view, without the sums over the whole graph, or nil
// when no label has weight.
func fitted(s *State, view graphstore.View, sums *neighborhood.Sums, weight Weight) *Epoch {
	classes, labels := s.classes, s.labels()
	if weight == nil {
		weight = func(Vertex) float64 { return 1 }
	}
	e := &Epoch{
		Prior: make([]float64, classes), Count: uint64(len(labels)), Features: s.features.list,
	}
	for _, v := range labels {
		e.Prior[view.Label(v).Class] += weight(v)
	}
	if e.Labels = total(e.Prior); !(e.Labels > 0) {
		return nil
	}
	for i, n := range e.Prior {
		e.Prior[i] = (n + priorObservations) / (e.Labels + priorObservations*float64(classes))
	}
	in := s.newReader(view, sums, e.Prior, nil)
	count := Views + len(in.features)*classes
	l := &sample{classes: classes, count: count, prior: in.logPrior}
	for _, v := range everyNth(labels, fitLabelsMax) {
		in.readLabel(v)
		l.views = append(l.views, make([]float64, count*classes)...)
		in.views(l.views[len(l.views)-count*classes:])
		l.class = append(l.class, int(view.Label(v).Class))
		l.weight = append(l.weight, weight(v))
	}
	e.Coefficients, e.Covariance = fit(l, s.epoch)
	return e
}

// measure sets the sums over the whole graph under the coefficients. Posteriors are those of the
// cells; open is the number of open vertices of each cell.
func (s *State) measure(view graphstore.View, open []uint64) {
	e, k, b := s.epoch, s.classes, len(open)
	e.Edges = uint64(view.Edges())
	e.Mass = make([]float64, k)
	e.Pairs = make([]float64, k*k)
	e.Tops = make([]float64, k)
	e.Sizes = make([]float64, b)
	e.Vertices = 0
	for z, n := range open {
		e.Sizes[z] = float64(n)
		e.Vertices += float64(n)
		for i, p := range e.Means[z*k : (z+1)*k] {
			e.Mass[i] += float64(float64(n) * p)
		}
	}
	rates := s.labelRates(view)
	pairs := make([]uint64, b*b) // ordered pairs of open neighbours, by their cells
	inside, ends := 0.0, 0.0     // edges between labels; twice as many as are expected
	for v := range Vertex(view.Vertices()) {
		z := int(s.contributions[v].cell) - 1
		if z < 0 {
			continue
		}
		open, label := isOpen(view, v), s.pairs.Calibrates(v) != event.NoClass
		near := 0.0
		for _, u := range view.Neighbors(v) {
			y := int(s.contributions[u].cell) - 1
			if y < 0 {
				continue
			}
			near += rates[y]
			if open && isOpen(view, u) {
				pairs[z*b+y]++
			}
			if label && u > v && s.pairs.Calibrates(u) != event.NoClass {
				inside++
			}
		}
		ends += float64(rates[z] * near)
		if open {
			e.Tops[s.contributions[v].top]++
		}
	}
	s.measureFeatures(view)
	e.LabelGate = gate(inside, ends/2)
	for at, n := range pairs {
		if n > 0 {
			x, y := at/b*k, at%b*k
			e.addPairs(float64(n), e.Means[x:x+k], e.Means[y:y+k])
		}
	}
}

// addPairs adds n x y' to Pairs.
func (e *Epoch) addPairs(n float64, x, y []float64) {
	for i, a := range x {
		row := e.Pairs[i*len(y) : (i+1)*len(y)]
		for j, b := range y {
			row[j] += float64(n * float64(a*b))
		}
	}
}

// labelRates returns for each cell the probability that a vertex of it is a label if labels were
// drawn at random within their classes.
func (s *State) labelRates(view graphstore.View) []float64 {
	k, means := s.classes, s.epoch.Means
	rates, all, labels := make([]float64, len(means)/k), make([]float64, k), make([]float64, k)
	counts := make([]uint64, len(rates))
	for v := range Vertex(view.Vertices()) {
		if z := s.contributions[v].cell; z > 0 {
			counts[z-1]++
			if class := s.pairs.Calibrates(v); class != event.NoClass {
				labels[class]++
			}
		}
	}
	for z, n := range counts {
		for i, p := range means[z*k : (z+1)*k] {
			all[i] += float64(float64(n) * p)
		}
	}
	for i := range labels {
		labels[i] = ratio(labels[i], all[i])
	}
	for z := range rates {
		rates[z] = inner(means[z*k:(z+1)*k], labels)
	}
	return rates
}

// Expected returns the number of edges inside a community with this number of different members and
// these shares of the classes, if its members were drawn at random within their classes.
func (e *Epoch) Expected(distinct float64, shares []float64) float64 {
	rates := make([]float64, len(shares))
	for i, q := range shares {
		rates[i] = ratio(distinct*q, e.Mass[i])
	}
	return expected(e.Pairs, rates)
}

// ratio returns a/b, or 0 where there is nothing to draw from.
func ratio(a, b float64) float64 {
	if !(b > 0) {
		return 0
	}
	return a / b
}

// expected returns rates' pairs rates / 2.
func expected(pairs, rates []float64) (edges float64) {
	k := len(rates)
	for i, r := range rates {
		edges += float64(r * inner(pairs[i*k:(i+1)*k], rates))
	}
	return edges / 2
}

// gate compares the edges inside with those expected of members drawn at random within their
// classes: 1 if they are no more than expected and two standard deviations, and towards 0 for
// a place.
func gate(inside, expected float64) float64 {
	if !(inside > 0) {
		return 1
	}
	return min(1, (expected+2*math.Sqrt(expected)+2)/inside)
}

func add(dst, x []float64) {
	for i, v := range x {
		dst[i] += v
	}
}

// Within returns for each class the variances of the posteriors of its labels, over
// their number less one: K x K.
func (s *State) Within(view graphstore.View) []float64 {
	k := s.classes
	sums, squares, counts := make([]float64, k*k), make([]float64, k*k), make([]float64, k)
	for _, v := range s.labels() {
		if p := s.LabelPosterior(v); p != nil {
			at := int(view.Label(v).Class) * k
			counts[at/k]++
			for i, x := range p {
				sums[at+i] += x
				squares[at+i] += float64(x * x)
			}
		}
	}
	for at, sum := range sums {
		n := max(counts[at/k], 1)
		squares[at] = max(0, squares[at]-float64(sum*sum)/n) / (n * max(n-1, 1))
	}
	return squares
}
