package explain

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// tolerance bounds the certificates of the estimates that are compared.
const tolerance = 1e-8

// copyEventsMax bounds the facts in a batch of the copy.
const copyEventsMax = 1 << 14

// ErrUnknown is matched when a state does not have the community.
var ErrUnknown = errors.New("the community is not known")

// Options say what is explained. The zero value of each optional field has the meaning given.
type Options struct {
	Config    incremental.Config // of the pipeline; what it tracks and publishes is not read
	Community string
	Estimate  quant.Options
	Classes   []string // names for the details; nil: none

	// SameFit says that the pipeline did not fit the coefficients of auto anew in between.
	SameFit bool

	Named      int                  // changes named for each cause; 0 names none
	Candidates int                  // changes looked at alone for each cause; 0 is 32
	Progress   func(done, most int) // called now and then; nil: nobody listens
}

const candidatesDefault = 32

// config returns the configuration of the copy: the one community, explicit, the one
// method, no floor, and kernels as good as exact.
func (o *Options) config() incremental.Config {
	c := o.Config
	c.Communities = []graphstore.Rule{{Name: o.Community}}
	c.Estimates = []quant.Options{o.Estimate}
	c.Tolerance, c.MembersMin, c.CompactEvery = tolerance, 0, -1
	c.Missed = -1                                              // a combination is worth the same whichever way led to it
	c.Emit = incremental.Emit{}                                // the second state is estimated however little has moved
	c.Limits, c.Windows = event.Limits{}, graphstore.Windows{} // nothing ends on the way
	c.Engine = incremental.EnginePrimal                        // no second moments that are old
	return c
}

// Walk is a copy of a state on its way to another one. One goroutine owns it.
type Walk struct {
	options Options
	core    *incremental.Core
	from    quant.ExplanationEnd
	version string // of the predictions in the first state
	batch   event.Batch
	last    quant.Estimate // of the state that the copy is in
	done    int            // estimates
	most    int

	// Of auto: what it decided at both ends, what it is to decide now, and whether it
	// decides anew for every combination instead.
	ends    [2]incremental.Reading
	reading incremental.Reading
	refit   bool
}

// Begin copies the state of a view, which stands at p, for one community. The view
// is not needed afterwards. Close frees the copy.
func Begin(ctx context.Context, view graphstore.View, p Place, o Options) (*Walk, error) {
	if o.Candidates == 0 {
		o.Candidates = candidatesDefault
	}
	community, known := view.FindCommunity(o.Community)
	if !known {
		return nil, ErrUnknown
	}
	core, err := incremental.New(o.config())
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	w := &Walk{options: o, core: core}
	here := read(view, community)
	if err := w.copy(ctx, here); err != nil {
		w.Close()
		return nil, err
	}
	w.version = here.version
	w.from = w.end(p, w.version)
	return w, nil
}

// Close releases the copy's memory.
func (w *Walk) Close() { w.core.Close() }

// copy asserts every fact of a state and estimates.
func (w *Walk) copy(ctx context.Context, s state) error {
	facts := 0
	put := func(f fact) error {
		f.assert(&w.batch, w.options.Community, after)
		if facts++; facts < copyEventsMax {
			return nil
		}
		facts = 0
		return w.step(ctx, false)
	}
	for v := range graphstore.Vertex(s.view.Vertices()) {
		if s.view.Erased(v) {
			continue
		}
		if err := s.each(v, put); err != nil {
			return err
		}
	}
	return w.step(ctx, true)
}

// each visits the facts about v, edges at their later end.
func (s *state) each(v graphstore.Vertex, visit func(fact) error) error {
	id := s.view.ID(v)
	var errs []error
	put := func(f fact) { errs = append(errs, visit(f)) }
	if m := s.member(v); m > 0 {
		put(fact{kind: event.KindMember, u: id, multiplicity: [2]uint32{after: m}})
	}
	if l := s.label(v); l != nothingKnown {
		at := [2]event.Time{after: s.asserted(v)}
		put(fact{kind: event.KindLabel, u: id, label: [2]known{after: l}, asserted: at})
	}
	if units := s.prediction(v); units != nil {
		put(fact{kind: event.KindPrediction, u: id, units: [2][]uint32{after: units}})
	}
	s.neighbors(v, func(u graphstore.Vertex, weight float64) {
		if u < v {
			put(fact{kind: event.KindEdge, u: id, v: s.view.ID(u), weight: [2]float64{after: weight}})
		}
	})
	return errors.Join(errs...)
}

// endOfTime is the log's time on a walk whose labels age: no label is younger than the
// log, and those of both states are known from the start.
const endOfTime event.Time = math.MaxInt64 / 2

// step takes the batch that was filled and empties it, and keeps the estimate when
// one is asked for and has moved.
func (w *Walk) step(ctx context.Context, emit bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if emit && w.refit {
		w.core.Hold(incremental.Reading{})
	}
	at := w.core.Position() + 1
	w.batch.First, w.batch.Last, w.batch.Emit = at, at, emit
	if w.options.Config.HalfLife > 0 {
		w.batch.Time = endOfTime
	}
	result := w.core.Step(&w.batch)
	w.batch.Reset()
	if len(result.Refused) > 0 { // the states hold nothing that was not accepted once
		return fmt.Errorf("explain: the copy refused %s %s: %s", result.Refused[0].Kind,
			result.Refused[0].Original, result.Refused[0].Reason)
	}
	for _, e := range result.Estimates {
		w.last = e
	}
	if emit {
		w.done++
		if w.options.Progress != nil && w.most > 0 {
			w.options.Progress(w.done, w.most)
		}
	}
	return nil
}

// put asserts one side of facts, and estimates when told to.
func (w *Walk) put(ctx context.Context, groups []group, side int, emit bool) error {
	for _, g := range groups {
		for i := range g {
			g[i].assert(&w.batch, w.options.Community, side)
		}
	}
	return w.step(ctx, emit)
}

// turn puts a cause in place or takes it back, and estimates.
func (w *Walk) turn(ctx context.Context, c *cause, side int) error {
	switch c.kind {
	case quant.CauseCoefficients:
		w.reading.Epoch = w.ends[side].Epoch
		w.core.Hold(w.reading)
	case quant.CauseGamma:
		w.reading.Gamma = w.ends[side].Gamma
		w.core.Hold(w.reading)
	}
	return w.put(ctx, c.groups, side, true)
}
