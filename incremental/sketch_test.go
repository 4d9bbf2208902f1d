package incremental

import (
	"math"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
)

// Standard errors from second moments that are estimated for all communities at once must be those from the masses of
// each: within a twelfth in 96 cases of a hundred, and not larger or smaller on the whole.
func TestSketchesGiveTheStandardErrorsOfMasses(t *testing.T) {
	for _, shape := range []struct{ classes, vertices, communities int }{{2, 20000, 40}, {2, 6000, 300}, {2, 6000, 40}, {5, 6000, 100}, {20, 6000, 200}} {
		config := Config{Classes: shape.classes, Engine: EngineDual, Emit: Emit{Threshold: 0.1}}
		core := newCore(t, config)
		for b := range simulatedSteps(t, shape.classes, shape.vertices, shape.communities, .05, 12*time.Second, 5*time.Second) {
			core.Step(b)
		}
		view := core.View()
		solve := func() (se []float64) {
			for id := range graphstore.Community(view.Communities()) {
				core.published[id].snapshots = nil
				se = append(se, core.solve(id, view, &core.solvers[0], true)[0].SE...)
			}
			return se
		}
		for range tally.SketchRounds * shape.classes {
			core.masses.(*sharedDual).sketch(view)
		}
		got := solve()
		for id := range graphstore.Community(view.Communities()) {
			core.tallies.SetSpread(id, exactSpread(core, id))
		}
		want := solve()
		for i := range got {
			if want[i] > 0 || got[i] > 0 { // else all members are labelled
				got[i] = math.Log(got[i] / want[i])
			}
		}
		slices.Sort(got)
		low, middle, high := got[len(got)/50], got[len(got)/2], got[len(got)-1-len(got)/50]
		t.Logf("%+v: logarithm of standard errors %.3f, %.3f, %.3f; from %.3f to %.3f", shape, low, middle, high, got[0], got[len(got)-1])
		if low < -.08 || math.Abs(middle) > .02 || high > .08 {
			t.Errorf("%+v: logarithms of standard errors are from %.3f to %.3f, %.3f in the middle", shape, low, high, middle)
		}
		core.Close()
	}
}

// exactSpread returns the spread of a community over the labels from the masses of its field.
func exactSpread(core *Core, id graphstore.Community) *tally.Spread {
	k, view := core.config.Classes, core.View()
	field := newField(&core.config)
	field.Solve(view, diffusion.Sources(id, view), 1e-6)
	n, a1, a2 := make([]float64, k), make([]float64, k), make([]float64, k)
	for v := range graphstore.Vertex(view.Vertices()) {
		if l := view.Label(v); l.Class != event.NoClass && l.Role == event.Calibrate && view.Prediction(v) != nil {
			a := field.Mass(v)
			n[l.Class], a1[l.Class], a2[l.Class] = n[l.Class]+1, a1[l.Class]+a, a2[l.Class]+a*a
		}
	}
	s := &tally.Spread{Uneven: slices.Repeat([]float64{-1}, k*tally.SketchRounds)}
	for i := range a1 {
		if a1[i] > 0 {
			s.Uneven[i*tally.SketchRounds] = a2[i]*n[i]/(a1[i]*a1[i]) - 1
		}
	}
	return s
}
