package posterior

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

const (
	// movedShare is the share by which the number of labels, of open vertices or of edges
	// must differ from that at the last fit before coefficients are fitted anew.
	movedShare = 0.1
	// epochMax is how long an epoch lasts at most, in log time.
	epochMax = time.Hour
)

// State holds the posteriors of all vertices and follows the graph. One goroutine owns
// it; between two changes any number may read it.
//
// A posterior is a function of the graph and of the epoch alone, but for what hubs have not
// told yet (see Hubs). Update marks the ones whose inputs changed, Ready computes those
// again that are read, so that what is read equals what Rebuild would compute under the same
// epoch: bit for bit away from hubs, and always after Flush.
type State struct {
	classes int
	counts  []uint32 // n x K: c1
	labels  []Vertex // L, sorted
	models  []int    // how many of L have a prediction of each model version
	inside  inside

	epoch   *Epoch    // nil while there is no label
	held    bool      // whether the epoch stays whatever the log says, see Hold
	version uint32    // of the last epoch
	pi      []float64 // n x K
	has     []bool    // n: whether the vertex has a posterior
	within  []float64 // see Within

	dirty   []bool   // n: inputs changed since pi was computed
	touched []Vertex // those that the Updates since Ready made dirty, or that are read now
	listed  []bool   // n: in touched
	renewed []Vertex // see Renewed
	recent  []Vertex // touched in the last Update
	now     []bool   // n: in recent
	moved   []Vertex // scratch: whose g, c1 or degree changed
	marked  []bool   // n: in moved

	options Options
	told    map[Vertex][]float64 // what each hub has told its neighbours, see outgoing
	telling []float64            // scratch
}

// Options say how posteriors come about, besides coefficients.
type Options struct {
	Hubs Hubs
	// Echo says that predictions follow from the labels of neighbours. Then the predictions
	// that neighbours of neighbours of v hear include those that v itself voted on, around a
	// triangle, and h is g for every vertex: it would say no more than c2 and g do.
	Echo bool
}

// New returns the state of an empty graph with K classes.
func New(classes int, o Options) *State {
	if o.Hubs == (Hubs{}) {
		o.Hubs = hubsDefault
	}
	return &State{classes: classes, options: o, told: map[Vertex][]float64{}}
}

// Rebuild computes everything from nothing, with coefficients fitted on the labels
// that there are now: the start of a cold core.
func (s *State) Rebuild(view graphstore.View, sums *neighborhood.Sums, weight Weight, now event.Time) {
	version := s.version
	*s = *New(s.classes, s.options)
	s.version = version
	s.recount(view)
	s.begin(view, sums, weight, now)
}

// recount counts everything but the posteriors from nothing.
func (s *State) recount(view graphstore.View) {
	s.grow(view.Vertices())
	s.counts = countLabels(view, s.classes)
	for v := range Vertex(view.Vertices()) {
		if calibrates(view, v) != event.NoClass {
			s.labels = append(s.labels, v)
			s.countModel(view.Version(v), 1)
		}
	}
	s.inside.recount(view)
}

func (s *State) grow(n int) {
	if have := len(s.has); n > have {
		s.counts = append(s.counts, make([]uint32, (n-have)*s.classes)...)
		s.pi = append(s.pi, make([]float64, (n-have)*s.classes)...)
		s.has = append(s.has, make([]bool, n-have)...)
		s.dirty = append(s.dirty, make([]bool, n-have)...)
		s.listed = append(s.listed, make([]bool, n-have)...)
		s.now = append(s.now, make([]bool, n-have)...)
		s.marked = append(s.marked, make([]bool, n-have)...)
	}
}

// countModel counts a label whose prediction is of a model version.
func (s *State) countModel(version uint32, change int) {
	for int(version) >= len(s.models) {
		s.models = append(s.models, 0)
	}
	s.models[version] += change
}

// model returns the version that most of the labels have a prediction of.
func (s *State) model() (version uint32) {
	for i, n := range s.models {
		if n > s.models[version] {
			version = uint32(i)
		}
	}
	return version
}

// begin starts an epoch: coefficients from the labels as they are, and all posteriors.
func (s *State) begin(view graphstore.View, sums *neighborhood.Sums, weight Weight, now event.Time) {
	s.renew(s.labels)
	s.epoch = fitted(s, view, sums, weight)
	s.compute(view, sums)
	if s.epoch == nil {
		return
	}
	s.version++
	s.epoch.Version, s.epoch.Began, s.epoch.Model = s.version, now, s.model()
	s.epoch.Open = uint64(s.inside.open)
	s.epoch.measure(view, s.Posterior)
}

// compute computes the posteriors of all vertices.
func (s *State) compute(view graphstore.View, sums *neighborhood.Sums) {
	clear(s.has)
	clear(s.dirty)
	s.unlist()
	s.tellAll(view, sums)
	if s.epoch == nil {
		return
	}
	reader := s.Reader(view, sums)
	for v := range Vertex(view.Vertices()) {
		s.has[v] = reader.posterior(s.pi[int(v)*s.classes:][:s.classes], v)
	}
	s.within = s.scatter(view)
}

// due reports whether the log wants another epoch: labels, open vertices or edges are a
// tenth more or fewer, most labels have a prediction of another model version, or an hour
// has passed.
func (s *State) due(view graphstore.View, now event.Time) bool {
	e := s.epoch
	if s.held || e == nil {
		return !s.held && len(s.labels) > 0
	}
	return moved(len(s.labels), e.Count) || moved(s.inside.open, e.Open) || moved(view.Edges(), e.Edges) ||
		s.model() != e.Model || now-e.Began >= event.Time(epochMax)
}

// moved reports whether a count differs by movedShare from what it was.
func moved(now int, then uint64) bool {
	return math.Abs(float64(now)-float64(then)) > movedShare*float64(then)
}

// Ready computes the posteriors of labels and of members of communities anew where
// their inputs changed. It reports whether an epoch began, with which all changed.
func (s *State) Ready(view graphstore.View, sums *neighborhood.Sums, weight Weight, now event.Time) (began bool) {
	if s.due(view, now) {
		s.begin(view, sums, weight, now)
		return true
	}
	s.renew(nil)
	s.computeTouched(view, sums)
	s.unlist()
	return false
}

// renew remembers what was touched, and other vertices.
func (s *State) renew(others []Vertex) {
	s.renewed = append(append(s.renewed[:0], s.touched...), others...)
	slices.Sort(s.renewed)
	s.renewed = slices.Compact(s.renewed)
}

// unlist forgets which vertices were touched; they stay dirty.
func (s *State) unlist() {
	for _, v := range s.touched {
		s.listed[v] = false
	}
	s.touched = s.touched[:0]
}

// Hold replaces the epoch by another one of the same classes, which stays whatever the log
// says; nil has the next Ready fit one on the graph as it is, which stays no longer than usual.
func (s *State) Hold(view graphstore.View, e *Epoch) {
	s.held = e != nil
	if s.held && e == s.epoch {
		return
	}
	s.epoch = e
	for v := range Vertex(view.Vertices()) {
		s.Touch(v)
	}
}

// Epoch returns the epoch, nil while there is no label.
func (s *State) Epoch() *Epoch { return s.epoch }

// Labels returns L by vertex. It is read-only.
func (s *State) Labels() []Vertex { return s.labels }

// Renewed lists the vertices, sorted, that were touched before the last Ready, and with
// a new epoch all labels: no other label has another posterior since.
func (s *State) Renewed() []Vertex { return s.renewed }

// Within returns for each class the covariance of the posteriors of its labels, over
// their number less one: K blocks of K x K, lower triangles.
func (s *State) Within() []float64 { return s.within }

// Posterior returns pi(v), nil when v has none. It is read-only.
func (s *State) Posterior(v Vertex) []float64 {
	if int(v) >= len(s.has) || !s.has[v] {
		return nil
	}
	return s.pi[int(v)*s.classes:][:s.classes:s.classes]
}

// scatter computes Within.
func (s *State) scatter(view graphstore.View) []float64 {
	k := s.classes
	within, means, counts := make([]float64, k*k*k), make([]float64, k*k), make([]float64, k)
	for _, v := range s.labels {
		if p := s.Posterior(v); p != nil {
			class := int(view.Label(v).Class)
			counts[class]++
			add(means[class*k:(class+1)*k], p)
		}
	}
	for i, n := range counts {
		for j := range k {
			means[i*k+j] /= max(n, 1)
		}
	}
	off := make([]float64, k)
	for _, v := range s.labels {
		if p := s.Posterior(v); p != nil {
			class := int(view.Label(v).Class)
			for i, x := range p {
				off[i] = x - means[class*k+i]
			}
			for i, x := range off {
				row := within[(class*k+i)*k:][:i+1]
				for j := range row {
					row[j] += float64(x * off[j])
				}
			}
		}
	}
	for i, n := range counts {
		for at := range k * k {
			within[i*k*k+at] /= max(n, 1) * max(n-1, 1)
		}
	}
	return within
}

// insert and remove keep a sorted list.
func insert(list []Vertex, v Vertex) []Vertex {
	at, found := slices.BinarySearch(list, v)
	if found {
		return list
	}
	return slices.Insert(list, at, v)
}

func remove(list []Vertex, v Vertex) []Vertex {
	at, found := slices.BinarySearch(list, v)
	if !found {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// Epochs returns the epoch as the one row of a table, one without a prior where there is
// no label: all that Restore needs beside the graph.
func (s *State) Epochs() []Epoch {
	if s.epoch == nil {
		return []Epoch{{Version: s.version}}
	}
	return []Epoch{*s.epoch}
}

// Restore returns the state of the graph of view under the epoch that Epochs returned.
func Restore(classes int, o Options, e Epoch, view graphstore.View, sums *neighborhood.Sums) (*State, error) {
	s := New(classes, o)
	s.recount(view)
	s.version = e.Version
	if len(e.Prior) == 0 {
		return s, nil
	}
	side := Views + classes
	if len(e.Prior) != classes || len(e.B) != classes || len(e.Theta) != Views || len(e.Covariance) != side*side ||
		len(e.Mass) != classes || len(e.Pairs) != classes*classes {
		return nil, fmt.Errorf("posterior: the epoch is not one of %d classes", classes)
	}
	s.epoch = &e
	s.compute(view, sums)
	return s, nil
}
