package posterior

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

const (
	// movedShare is the change since the last fit that causes a new one: the share of labels that
	// changed (they or their predictions), or the relative change of the number of open vertices or
	// edges.
	movedShare = 0.1
	// epochMax bounds the log time of an epoch.
	epochMax = time.Hour
	// listedPart: if more than this part of all vertices is touched, a scan finds them.
	listedPart = 64
)

// State holds the posteriors of all vertices and follows the graph. One goroutine owns
// it; between two changes any number may read it.
//
// Update notes what changed. Ready computes the posteriors of labels and members whose own inputs
// changed, for the graph as it is; see Update. Changes two steps away are read with the next such
// computation, at the latest by Flush: after it, all posteriors equal those of Rebuild under the
// same epoch bit for bit.
type State struct {
	classes int
	pairs   *pairs.Pairs
	labels  func() []Vertex // L, sorted
	drawn   Drawn           // how labels were drawn, as a user declares
	inside  inside
	// since the last fit: labels that came, went or changed, predictions of labels by their
	// distance; in 1/event.One
	changed uint64

	massesAt event.Time // as of when predictions have their masses

	epoch         *Epoch               // nil while there is no label
	held          bool                 // whether the epoch stays until the next Hold
	version       uint32               // of the last epoch
	features      featureRows          // of the epoch
	rowBefore     []int16              // F: scratch
	contributions []contribution       // n: how communities count the vertex
	labelPi       map[Vertex][]float64 // K each: posteriors of the labels

	inputChanges []causes // n: why g or c1/d may be another one than at the last Flush
	// n: why the posterior may be another one than was computed, 0: it is not
	dirty []causes
	// vertices with many neighbours: how far their predictions moved since Hubs
	hubs     map[Vertex]float64
	touched  []Vertex  // the dirty vertices
	computed []Vertex  // by the last computeTouched
	moves    []float64 // how far each of them moved
	pi, root []float64 // scratch
}

// New returns the state of an empty graph with K classes. labels lists L, the calibration labels
// that have a pair, by vertex.
func New(classes int, drawn Drawn, pairs *pairs.Pairs, labels func() []Vertex) *State {
	return &State{
		classes: classes, drawn: drawn, pairs: pairs, labels: labels,
		inside: newInside(classes), labelPi: map[Vertex][]float64{}, hubs: map[Vertex]float64{},
		pi: make([]float64, classes), root: make([]float64, classes),
	}
}

// Rebuild computes everything from the graph, with coefficients fitted on the labels that there are
// now: the start of a cold core.
func (s *State) Rebuild(
	view graphstore.View, sums *neighborhood.Sums, weight Weight, now event.Time,
) {
	version := s.version
	*s = *New(s.classes, s.drawn, s.pairs, s.labels)
	s.version, s.massesAt = version, sums.At()
	s.recount(view)
	s.begin(view, sums, weight, now)
}

// recount counts everything but the posteriors again.
func (s *State) recount(view graphstore.View) {
	s.grow(view.Vertices())
	s.inside.recount(view)
}

func (s *State) grow(n int) {
	if have := len(s.contributions); n > have {
		s.inputChanges = append(s.inputChanges, make([]causes, n-have)...)
		s.contributions = append(s.contributions, make([]contribution, n-have)...)
		s.dirty = append(s.dirty, make([]causes, n-have)...)
		s.features.grow(n)
	}
}

// model returns the version that most of the labels have a prediction of, the first of equals.
func (s *State) model(view graphstore.View) (version uint32) {
	counts := make([]int, len(view.Versions())+1)
	for _, v := range s.labels() {
		counts[s.pairs.Version(view, v)]++
	}
	for i, n := range counts {
		if n > counts[version] {
			version = uint32(i)
		}
	}
	return version
}

// begin starts an epoch: coefficients from the labels as they are, and all posteriors.
func (s *State) begin(
	view graphstore.View, sums *neighborhood.Sums, weight Weight, now event.Time,
) {
	s.changed = 0
	s.useFeatures(view, s.chooseFeatures(view))
	if s.epoch = fitted(s, view, sums, weight); s.epoch == nil {
		s.useFeatures(view, nil)
	}
	s.compute(view, sums, func() {
		open := s.makeCells(view, sums)
		if s.judge(view, sums, s.epoch.meanOf(open), weight) {
			open = s.makeCells(view, sums)
		}
		s.measure(view, open)
		s.epoch.Agreement = s.epoch.agreement(view, s.Reader(view, sums))
	})
	if s.epoch == nil {
		return
	}
	s.version++
	s.epoch.Version, s.epoch.Began, s.epoch.Model = s.version, now, s.model(view)
	s.epoch.Open = uint64(s.inside.open)
}

// compute sorts all vertices into the cells of the epoch, as sort does it, and computes the
// posteriors of the labels.
func (s *State) compute(view graphstore.View, sums *neighborhood.Sums, sort func()) {
	clear(s.contributions)
	clear(s.dirty)
	clear(s.labelPi)
	s.touched = s.touched[:0]
	clear(s.inputChanges)
	if s.epoch != nil {
		sort()
		reader := s.Reader(view, sums)
		for _, v := range s.labels() {
			s.labelPi[v] = make([]float64, s.classes)
			reader.labelPosterior(s.labelPi[v], v)
		}
	}
	s.countMembers(view)
}

// sortVertices sorts all vertices into the cells that there are.
func (s *State) sortVertices(view graphstore.View, sums *neighborhood.Sums) {
	parallel.Ranges(view.Vertices(), func(from, to int) {
		reader := s.Reader(view, sums)
		pi := make([]float64, s.classes)
		root := make([]float64, s.classes)
		for v := Vertex(from); v < Vertex(to); v++ {
			if reader.Posterior(pi, v) {
				s.contributions[v] = s.contributionOf(view, v, pi, root)
			}
		}
	})
}

// due reports whether another epoch is due: a tenth of the labels or of their predictions changed,
// the number of open vertices or edges changed by a tenth, most labels have a prediction of another
// model version, or an hour has passed.
func (s *State) due(view graphstore.View, now event.Time) bool {
	e := s.epoch
	if s.held || e == nil {
		return !s.held && len(s.labels()) > 0
	}
	return float64(s.changed) > movedShare*event.One*float64(e.Count) ||
		moved(s.inside.open, e.Open) ||
		moved(view.Edges(), e.Edges) ||
		s.model(view) != e.Model ||
		now-e.Began >= event.Time(epochMax)
}

// moved reports whether a count differs by movedShare from its former value.
func moved(now int, then uint64) bool {
	return math.Abs(float64(now)-float64(then)) > movedShare*float64(then)
}

// Ready computes the posteriors of labels and of members of communities where their inputs changed.
// It returns those vertices, valid until the next call, and whether an epoch began; then it
// computed all. ends is called before an epoch ends, while all counts are still those of its cells,
// with the vertices that were computed under it.
func (s *State) Ready(
	view graphstore.View, sums *neighborhood.Sums, weight Weight, now event.Time,
	ends func(computed []Vertex),
) (computed []Vertex, began bool) {
	due := s.due(view, now)
	if !due || s.epoch != nil {
		s.computeTouched(view, sums)
	}
	if !due {
		return s.computed, false
	}
	if s.epoch != nil {
		ends(s.computed)
	}
	s.begin(view, sums, weight, now)
	return nil, true
}

// sortTouched sorts the touched vertices, so that memory is read from front to back. If they are a
// large part of all vertices, a scan of all takes a tenth of the time.
func (s *State) sortTouched() {
	if len(s.touched)*listedPart < len(s.dirty) {
		slices.Sort(s.touched)
		return
	}
	s.touched = s.touched[:0]
	for v, why := range s.dirty {
		if why != 0 {
			s.touched = append(s.touched, Vertex(v))
		}
	}
}

// Flush computes all posteriors that are read, for the present graph, as Restore does. So the log
// after this point gives the same bits with and without a restart. It returns the vertices that it
// computed.
func (s *State) Flush(view graphstore.View, sums *neighborhood.Sums) (computed []Vertex) {
	for v, why := range s.inputChanges {
		if why != 0 {
			for _, u := range view.Neighbors(Vertex(v)) {
				s.touch(u, why)
			}
		}
	}
	clear(s.inputChanges)
	s.computeTouched(view, sums)
	return s.computed
}

// touch marks v for computation, if it is read.
func (s *State) touch(v Vertex, why causes) {
	if s.dirty[v] == 0 {
		s.touched = append(s.touched, v)
	}
	s.dirty[v] |= why
}

// computeTouched computes the posteriors of touched vertices that are read. Another vertex is
// touched again when it becomes a label or a member.
func (s *State) computeTouched(view graphstore.View, sums *neighborhood.Sums) {
	s.computed, s.moves = s.computed[:0], s.moves[:0]
	s.sortTouched()
	if s.epoch != nil {
		reader := s.Reader(view, sums)
		for _, v := range s.touched {
			s.computeRead(reader, view, v, s.dirty[v])
		}
	}
	for _, v := range s.touched {
		s.dirty[v] = 0
	}
	s.touched = s.touched[:0]
}

// computeRead computes the posterior of a label or a member.
func (s *State) computeRead(reader *Reader, view graphstore.View, v Vertex, why causes) {
	label := s.pairs.Calibrates(v) != event.NoClass
	if !label {
		delete(s.labelPi, v)
		if len(view.MemberOf(v)) == 0 {
			return
		}
	}
	now, moved := contribution{}, 0.0
	if reader.Posterior(s.pi, v) {
		now = s.contributionOf(view, v, s.pi, s.root)
	}
	if label {
		reader.labelPosterior(s.pi, v)
		moved = farthest(s.labelPi[v], s.pi)
		s.labelPi[v] = append(s.labelPi[v][:0], s.pi...)
	}
	moved = max(moved, s.countAs(view, v, now, why))
	s.computed, s.moves = append(s.computed, v), append(s.moves, moved)
}

// Hold replaces the epoch by another one of the same classes, which stays until the next Hold. With
// nil the next Ready fits an epoch on the present graph, which ends as usual.
func (s *State) Hold(view graphstore.View, e *Epoch) {
	s.held = e != nil
	if s.held && e == s.epoch {
		return
	}
	s.epoch = e
	if e == nil {
		s.useFeatures(view, nil)
	} else {
		s.useFeatures(view, e.Features)
	}
	s.countFeatures(view)
	for v := range Vertex(view.Vertices()) {
		s.touch(v, byNews)
	}
}

// Held reports whether Hold decides which epoch there is.
func (s *State) Held() bool { return s.held }

// Epoch returns the epoch, nil while there is no label.
func (s *State) Epoch() *Epoch { return s.epoch }

// LabelPosterior returns the posterior of a calibration label, K, computed from the inputs of its
// pair; nil for other vertices. It is read-only.
func (s *State) LabelPosterior(v Vertex) []float64 { return s.labelPi[v] }

// Epochs returns the epoch as the one row of a table, without a prior if there is no label: with
// the graph, the input of Restore.
func (s *State) Epochs() []Epoch {
	if s.epoch == nil {
		return []Epoch{{Version: s.version}}
	}
	e := *s.epoch
	e.Changed = s.changed
	return []Epoch{e}
}

// Restore returns the state of the graph of view under the epoch that Epochs returned; see New.
func Restore(
	classes int, drawn Drawn, pairs *pairs.Pairs, labels func() []Vertex, e Epoch,
	view graphstore.View, sums *neighborhood.Sums,
) (*State, error) {
	s := New(classes, drawn, pairs, labels)
	s.recount(view)
	s.version, s.massesAt = e.Version, sums.At()
	if len(e.Prior) == 0 {
		return s, nil
	}
	views := Views + 2*len(e.Features)*classes
	side := views + classes
	if len(e.Prior) != classes || len(e.B) != classes || len(e.Theta) != views ||
		len(e.Covariance) != side*side || len(e.Roots) != cellsOf(classes)*classes ||
		len(e.Means) != len(e.Roots) || len(e.Views) != views*len(e.Roots) ||
		len(e.Mass) != classes || len(e.Shares) != classes || len(e.Said) != classes*classes ||
		len(e.SaidNoise) != classes ||
		len(e.SharesNoise) != classes*classes || len(e.Tops) != classes ||
		len(e.Sizes) != cellsOf(classes) ||
		len(e.Pairs) != classes*classes || len(e.Agreement) != 2 ||
		len(e.FeatureMeans) != len(e.Features) || len(e.FeatureVariances) != len(e.Features) {
		return nil, fmt.Errorf("posteriors: the epoch is not one of %d classes", classes)
	}
	s.epoch, s.changed = &e, e.Changed
	s.useFeatures(view, e.Features)
	s.compute(view, sums, func() { s.sortVertices(view, sums) })
	return s, nil
}
