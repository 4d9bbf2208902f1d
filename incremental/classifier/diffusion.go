package classifier

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
)

const (
	// Alpha is the teleport probability of the field: walks of two steps on average. Shorter walks
	// than those of the kernels are more informative about a single vertex.
	Alpha = 0.5
	// Tolerance bounds the error of a value of the field, a probability.
	Tolerance = 1e-5
	// Prior is the probability that is spread over the classes in addition to the walks. So a
	// vertex with almost no walk to a source has an almost uniform prediction, and the error of a
	// share is below 2 % for any number of walks.
	Prior = 64 * Tolerance
	// Lag bounds the movement of a share of a class that a prediction does not follow.
	Lag = 1.0 / (1 << 8)
)

// Diffusion predicts a vertex by where walks from it stop: with y_i(v) the probability that a walk
// from v stops at a source of class i, the share of class i is (y_i(v) + Prior/K) / (sum y(v) +
// Prior). Sources are the labels of role train and half of the others, by a hash of their name;
// sources have no prediction, because they would judge their own labels. It follows every step and
// changes predictions at emissions. One goroutine owns it.
type Diffusion struct {
	classes int
	dual    *diffusion.Dual

	// vertices with a prediction that may change at the next emission, in no order, with repeats
	pending []Vertex
	changes []diffusion.ValueChange
	one     []float64 // K: function of a source
	list    []graphstore.Derived
	units   []uint32 // backing of list
	shares  []float64
}

// New returns the classifier of the graph of view, solved without a start. It panics if K < 1.
func New(classes int, view graphstore.View) *Diffusion {
	dual, err := diffusion.NewDual(config(classes))
	if err != nil {
		panic(fmt.Sprintf("classifier: %v", err)) // K is out of range
	}
	d := newDiffusion(dual, view)
	for _, v := range d.pending {
		d.updateSource(view, v)
	}
	dual.Solve(view, d.changes, Tolerance)
	return d
}

func config(classes int) diffusion.Config {
	return diffusion.Config{Alpha: Alpha, Tolerance: Tolerance, Functions: classes}
}

// newDiffusion returns a classifier that looks at every vertex at the next emission.
func newDiffusion(dual *diffusion.Dual, view graphstore.View) *Diffusion {
	k := dual.Functions()
	d := &Diffusion{classes: k, dual: dual, one: make([]float64, k), shares: make([]float64, k)}
	for v := range Vertex(view.Vertices()) {
		d.pending = append(d.pending, v)
	}
	return d
}

// Update updates the field to view, the graph after delta.
func (d *Diffusion) Update(view graphstore.View, delta *graphstore.Delta) {
	d.changes = d.changes[:0]
	for _, l := range delta.Labels {
		d.updateSource(view, l.V)
		d.pending = append(d.pending, l.V)
	}
	for _, p := range delta.Predictions { // it may not be the classifier's any more, or be again
		d.pending = append(d.pending, p.V)
	}
	d.pending = append(d.pending, delta.Reused...)
	for v := delta.FirstVertex; int(v) < view.Vertices(); v++ {
		d.pending = append(d.pending, v)
	}
	d.dual.Update(view, delta, d.changes)
	d.pending = append(d.pending, d.dual.Touched()...)
}

// updateSource makes v a source or none, by its present label.
func (d *Diffusion) updateSource(view graphstore.View, v Vertex) {
	var function []float64
	if class := sourceClass(view, v); class != event.NoClass {
		function = d.one
		clear(function)
		function[class] = 1
	}
	d.changes = diffusion.AppendChange(d.changes, v, d.dual.Function(v), function)
}

// sourceClass returns the class of v as a source, NoClass when it is none.
func sourceClass(view graphstore.View, v Vertex) event.Class {
	label := view.Label(v)
	if label.Class == event.NoClass || label.Role == event.Calibrate && !votes(view.ID(v)) {
		return event.NoClass
	}
	return label.Class
}

// votes draws half of the vertices by name, so that the draw outlives an index.
func votes(id event.ID) bool { return xxhash.Sum64String(id.String())&1 == 0 }

// Derive returns the predictions that change now, sorted by vertex. The result is
// valid until the next call.
func (d *Diffusion) Derive(view graphstore.View) []graphstore.Derived {
	version, made := view.DerivedVersion(Name)
	slices.Sort(d.pending)
	d.list, d.units = d.list[:0], slices.Grow(d.units[:0], len(d.pending)*d.classes)
	for _, v := range slices.Compact(d.pending) {
		held := view.Prediction(v)
		if view.Erased(v) || held != nil && !(made && view.Version(v) == version) {
			continue // an erased vertex has no prediction, and an outside one wins
		}
		source := sourceClass(view, v) != event.NoClass
		d.writeShares(v)
		switch {
		case source && held != nil:
			d.list = append(d.list, graphstore.Derived{V: v})
		case !source && (held == nil || d.differs(held)):
			at := len(d.units)
			d.units = d.units[:at+d.classes]
			units := d.units[at : at+d.classes : at+d.classes]
			if err := event.Quantise(units, d.shares); err != nil {
				panic(err) // shares sum to one
			}
			d.list = append(d.list, graphstore.Derived{V: v, Units: units})
		}
	}
	d.pending = d.pending[:0]
	return d.list
}

// writeShares writes the shares of v.
func (d *Diffusion) writeShares(v Vertex) {
	sum := Prior
	for i, y := range d.dual.Values(v) {
		y = max(y, 0) // an error within the tolerance may be negative
		d.shares[i] = y + Prior/float64(d.classes)
		sum += y
	}
	for i := range d.shares {
		d.shares[i] /= sum
	}
}

// differs reports whether the shares differ from a prediction by Lag or more.
func (d *Diffusion) differs(units []uint32) bool {
	for i, unit := range units {
		if off := d.shares[i] - float64(unit)/event.One; cmp.Compare(max(off, -off), Lag) >= 0 {
			return true
		}
	}
	return false
}

// State returns the state of the dual; with the graph and its predictions a restored classifier
// continues with the same bits. It is valid until the next change.
func (d *Diffusion) State() []diffusion.DualState { return d.dual.State() }

// Restore makes a classifier from the parts of its state and the view of its graph at that time. It
// reads every vertex again at the next emission; that changes no prediction that would not have
// changed anyway.
func Restore(classes int, view graphstore.View, parts []diffusion.DualState) (*Diffusion, error) {
	dual, err := diffusion.RestoreDual(config(classes), view, parts)
	if err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	return newDiffusion(dual, view), nil
}
