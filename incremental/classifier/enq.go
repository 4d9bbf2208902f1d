package classifier

import (
	"cmp"
	"fmt"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Enq predicts every vertex from the labels of its neighbours, of either role:
// with c_i of its n neighbours labelled i, the probability of class i is
//
//	(c_i + 1/K) / (n + 1)
//
// One more vote is spread over the classes, so that a single neighbour is no
// certainty and a vertex without one has a prediction that says nothing. An edge
// counts once, whatever its weight. One goroutine owns it.
type Enq struct {
	classes int
	counts  []uint32 // n x K: labelled neighbours by class
	version uint32   // of its predictions in the store, when made is set
	made    bool

	changed []voter  // by V: vertices whose counts or whose predictor may have changed
	at      []uint32 // n: 1 + index into changed while it is collected
	before  []uint32 // backing of voter.before
	list    []graphstore.Derived
	units   []uint32 // backing of list
	voice   voice
	loo     loo
}

// voter is a vertex whose counts changed, or of which it changed whether Enq predicts it.
type voter struct {
	v       Vertex
	before  int // into Enq.before: its K counts before the step
	was, is bool
}

// NewEnq returns the classifier of an empty graph. It panics if K < 1.
func NewEnq(classes int) *Enq {
	if classes < 1 {
		panic(fmt.Sprintf("classifier: %d classes, want at least 1", classes))
	}
	return &Enq{classes: classes, voice: make(voice, classes), loo: newLOO(classes)}
}

// Recount counts from nothing and returns every prediction that is to change: all
// of them in a store that has none. It is how a cold or restored core starts.
func (e *Enq) Recount(view graphstore.View) []graphstore.Derived {
	*e = *NewEnq(e.classes)
	e.grow(view.Vertices())
	for v := range Vertex(view.Vertices()) {
		if c := view.Label(v).Class; c != event.NoClass {
			for _, u := range view.Neighbors(v) {
				e.counts[int(u)*e.classes+int(c)]++
			}
		}
		e.changed = append(e.changed, voter{v: v})
	}
	e.decide(view, nil)
	e.changed = e.changed[:0]
	return e.list
}

// Update follows the counts from the graph before delta to the graph of view and returns the
// predictions that change, sorted by vertex. The result is valid until the next call.
func (e *Enq) Update(view graphstore.View, delta *graphstore.Delta) []graphstore.Derived {
	e.grow(view.Vertices())
	e.changed, e.before = e.changed[:0], e.before[:0]
	// First the edges, with the labels as they were; then the labels, over the
	// edges as they are: together exactly the new counts.
	for _, c := range delta.Edges {
		if sign := neighborhood.Appeared(c); sign != 0 {
			e.count(c.U, neighborhood.LabelBefore(view, delta, c.V).Class, sign)
			e.count(c.V, neighborhood.LabelBefore(view, delta, c.U).Class, sign)
		}
	}
	for _, l := range delta.Labels {
		if l.Before.Class == l.After.Class {
			continue // only the role changed
		}
		for _, u := range view.Neighbors(l.V) {
			e.count(u, l.Before.Class, -1)
			e.count(u, l.After.Class, 1)
		}
	}
	touchPredicted(view, delta, e.touch)
	slices.SortFunc(e.changed, func(a, b voter) int { return cmp.Compare(a.v, b.v) })
	for i := range e.changed {
		e.at[e.changed[i].v] = 0
	}
	e.decide(view, delta)
	return e.list
}

// touchPredicted touches the vertices whose prediction may be another classifier's now: those
// with another prediction, and those that are new.
func touchPredicted(view graphstore.View, delta *graphstore.Delta, touch func(Vertex)) {
	for _, p := range delta.Predictions {
		touch(p.V)
	}
	for _, v := range delta.Reused {
		touch(v)
	}
	for v := delta.FirstVertex; int(v) < view.Vertices(); v++ {
		touch(v)
	}
}

func (e *Enq) grow(n int) {
	if have := len(e.at); n > have {
		e.at = append(e.at, make([]uint32, n-have)...)
		e.counts = append(e.counts, make([]uint32, (n-have)*e.classes)...)
	}
}

// count adds a labelled neighbour to v, or takes one away.
func (e *Enq) count(v Vertex, class event.Class, sign int) {
	if class != event.NoClass {
		e.touch(v)
		e.counts[int(v)*e.classes+int(class)] += uint32(sign) // two's complement
	}
}

// touch lists v and remembers its counts as they are before the first change.
func (e *Enq) touch(v Vertex) {
	if e.at[v] == 0 {
		e.changed = append(e.changed, voter{v: v, before: len(e.before)})
		e.before = append(e.before, e.row(v)...)
		e.at[v] = uint32(len(e.changed))
	}
}

func (e *Enq) row(v Vertex) []uint32 { return e.counts[int(v)*e.classes : (int(v)+1)*e.classes] }

// decide gives predictions to the changed vertices, or takes them back.
func (e *Enq) decide(view graphstore.View, delta *graphstore.Delta) {
	e.version, e.made = view.DerivedVersion(EnqName)
	e.list, e.units = e.list[:0], slices.Grow(e.units[:0], len(e.changed)*e.classes)
	for i := range e.changed {
		c := &e.changed[i]
		c.was = delta != nil && e.predictedBefore(view, delta, c.v)
		c.is = e.predicts(view, c.v)
		if !c.is {
			continue
		}
		at := len(e.units)
		e.units = e.units[:at+e.classes]
		said := e.units[at:]
		e.voice.say(said, e.row(c.v))
		if slices.Equal(said, view.Prediction(c.v)) {
			e.units = e.units[:at]
			continue
		}
		e.list = append(e.list, graphstore.Derived{V: c.v, Units: said[:e.classes:e.classes]})
	}
}

// predicts reports whether the prediction of v is Enq's to make.
func (e *Enq) predicts(view graphstore.View, v Vertex) bool {
	if view.Prediction(v) == nil {
		return !view.Erased(v)
	}
	return e.made && view.Version(v) == e.version
}

// predictedBefore reports whether v had a prediction of Enq before delta.
func (e *Enq) predictedBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) bool {
	units, version := neighborhood.PredictionBefore(view, delta, v)
	return units != nil && e.made && version == e.version
}

// voice is scratch memory for K probabilities.
type voice []float64

// say writes the prediction that the counts give to dst.
func (p voice) say(dst, counts []uint32) {
	votes, k := uint64(0), uint64(len(counts))
	for _, c := range counts {
		votes += uint64(c)
	}
	for i, c := range counts {
		p[i] = float64(uint64(c)*k+1) / float64(k*(votes+1))
	}
	if err := event.Quantise(dst, p); err != nil {
		panic(err) // shares sum to one
	}
}
