package pairs

import (
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Vertex is the store's dense vertex index.
type Vertex = graphstore.Vertex

// Whole is the freshness of a label if the prediction of its vertex is still that of the pair.
const Whole = 1 << 8

// Pair has the prediction and the surroundings of a labelled vertex when its prediction was
// replaced. It is immutable except for Fresh.
type Pair struct {
	Version    uint32             // of the model, index in graphstore.View.Versions
	Time       event.Time         // of the prediction
	Observed   uint32             // that the prediction rests on; see graphstore.Evidence
	Own        []uint32           // K: the prediction, in units of 2^-30
	Votes      neighborhood.Votes // of the neighbours: their mean as that of one neighbour, or none
	Neighbours uint32             // that say Next: 0 where there are none, or too many
	Next       []uint32           // K: sums over the neighbours' neighbours; see AddNext
	Labels     []uint32           // K: calibration labels among the neighbours, in units of 1/Whole
	Walks      []uint32           // K: labels two steps away, likewise; see AddNext
	Fresh      uint32             // as of the last prediction, at most Whole
}

// Weight is how much a calibration label says of its vertex: nothing where there is none, or
// nothing to pair it with.
type Weight struct {
	Class event.Class // NoClass: there is none
	Units uint32      // of 1/Whole
}

var noWeight = Weight{Class: event.NoClass}

// Change is a change of the label of V or of its pair.
type Change struct {
	V      Vertex
	Before Weight
	After  Weight
	Fresh  uint32 // before, of a label of any role; see Fresh
	Moved  uint64 // how far the prediction that it is paired with moved, in units of 2^-30
}

// Pairs holds the pairs of all labels. One goroutine owns it; between two updates any number may
// read it.
type Pairs struct {
	classes int
	hard    bool // whether pairs keep the majority class of the neighbours

	frozen  map[Vertex]*Pair
	waits   map[Vertex]uint32 // predictions for which a label waits; see noteContradiction
	held    map[Vertex]*Pair  // see Hold; nil where the log decides
	weights []Weight          // n
	counts  []uint32          // n x K: labels among the neighbours, in units of 1/Whole
	present map[Vertex]uint32 // Fresh of every label; nil where labels do not age, see LetAge
	active  uint32            // the model version in use as of the last update
	labels  uint64            // calibration labels that have a pair
	units   uint64            // the sum of their weights, in units of 1/Whole

	halfLife time.Duration // of labels; 0: they do not age
	at       event.Time    // as of when they have their age

	changes     []Change // of the last update, by vertex
	newlyFrozen []*Pair  // in this update, in the order of unfinished
	unfinished  []Vertex // vertices of newlyFrozen
	touched     []Vertex // of the next update; see Hold
}

// New returns the pairs of an empty graph with K classes. hard has them keep the neighbours'
// majority class, as neighborhood.New.
func New(classes int, hard bool) *Pairs {
	return &Pairs{
		classes: classes,
		hard:    hard,
		frozen:  map[Vertex]*Pair{},
		waits:   map[Vertex]uint32{},
		active:  noVersion,
	}
}

// noVersion is the index of no model version.
const noVersion = ^uint32(0)

func (p *Pairs) grow(n int) {
	if have := len(p.weights); n > have {
		p.weights = append(p.weights, slices.Repeat([]Weight{noWeight}, n-have)...)
		p.counts = append(p.counts, make([]uint32, (n-have)*p.classes)...)
	}
}

// Hold gives the label of v this frozen pair from the next update on, or nil: it then reads the
// vertex as it is. From the first call on the log freezes and ends no pair.
func (p *Pairs) Hold(v Vertex, pair *Pair) {
	if p.held == nil {
		p.held = map[Vertex]*Pair{}
	}
	p.held[v] = pair
	p.touched = append(p.touched, v)
}

// SetClock makes log time the time of all frozen pairs that are later.
func (p *Pairs) SetClock(now event.Time) {
	for v, pair := range p.frozen {
		if pair.Time > now {
			earlier := *pair
			earlier.Time = now
			p.frozen[v] = &earlier
		}
	}
}

// Same reports whether two frozen pairs, nil for none, are equal apart from freshness.
func (a *Pair) Same(b *Pair) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Own, b.Own) && a.Votes.Mass == b.Votes.Mass &&
		slices.Equal(a.Votes.Sum, b.Votes.Sum) && slices.Equal(a.Votes.Hard, b.Votes.Hard) &&
		a.Neighbours == b.Neighbours && slices.Equal(a.Next, b.Next) &&
		slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Walks, b.Walks)
}

// Frozen returns the frozen pair of the label of v, nil where it reads the vertex as it is.
func (p *Pairs) Frozen(v Vertex) *Pair { return p.frozen[v] }

// Len returns the number of frozen pairs.
func (p *Pairs) Len() int { return len(p.frozen) }

// Calibrates returns the class of v if it is a calibration label that has a pair, else NoClass.
func (p *Pairs) Calibrates(v Vertex) event.Class {
	if int(v) >= len(p.weights) {
		return event.NoClass
	}
	return p.weights[v].Class
}

// Labels returns the calibration labels among the neighbours of v by class, K, in units of
// 1/Whole. It is read-only.
func (p *Pairs) Labels(v Vertex) []uint32 { return p.counts[int(v)*p.classes:][:p.classes] }

// Prediction returns the prediction that the label of v is paired with, nil for none.
func (p *Pairs) Prediction(view graphstore.View, v Vertex) []uint32 {
	if pair := p.frozen[v]; pair != nil {
		return pair.Own
	}
	return view.Prediction(v)
}

// Version returns the model version that made it.
func (p *Pairs) Version(view graphstore.View, v Vertex) uint32 {
	if pair := p.frozen[v]; pair != nil {
		return pair.Version
	}
	return view.Version(v)
}

// Observed returns how many observations it rests on.
func (p *Pairs) Observed(view graphstore.View, v Vertex) uint32 {
	if pair := p.frozen[v]; pair != nil {
		return pair.Observed
	}
	return view.Evidence(v).Observations
}

// Votes returns the neighbours' votes at the time of the pair.
func (p *Pairs) Votes(sums *neighborhood.Sums, v Vertex) neighborhood.Votes {
	if pair := p.frozen[v]; pair != nil {
		return pair.Votes
	}
	return sums.Votes(v)
}

// Fresh returns the freshness of the label of v, of any role, in units of 1/Whole; 0 without a
// label.
func (p *Pairs) Fresh(view graphstore.View, v Vertex) uint32 {
	switch pair := p.frozen[v]; {
	case view.Label(v).Class == event.NoClass:
		return 0
	case p.present != nil:
		return p.present[v]
	case pair != nil:
		return pair.Fresh
	}
	return Whole
}

// setWeight notes the weight of the label of v.
func (p *Pairs) setWeight(v Vertex, w Weight) {
	if p.weights[v].Class != event.NoClass {
		p.labels, p.units = p.labels-1, p.units-uint64(p.weights[v].Units)
	}
	if p.weights[v] = w; w.Class != event.NoClass {
		p.labels, p.units = p.labels+1, p.units+uint64(w.Units)
	}
}

// Freshness returns the mean freshness of the calibration labels that have a pair: 1 without any.
func (p *Pairs) Freshness() float64 {
	if p.labels == 0 {
		return 1
	}
	return float64(p.units) / (Whole * float64(p.labels))
}

// Changes lists the changes of the last Update, by vertex. It includes every vertex with a changed
// label or prediction, also if its pair is equal. It is read-only.
func (p *Pairs) Changes() []Change { return p.changes }

// freshness returns 1 - |now - then|/2 in units of 1/Whole.
func freshness(now, then []uint32) uint32 {
	return uint32((Whole*(event.One-apart(now, then)) + event.One/2) / event.One)
}

// apart returns half the sum of the differences of two predictions, in units of 2^-30.
func apart(a, b []uint32) (distance uint64) {
	for i, x := range a {
		distance += uint64(max(x, b[i]) - min(x, b[i]))
	}
	return distance / 2
}
