package incremental

import (
	"math"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
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
		view, d := core.View(), core.masses.(*sharedDual)
		var due []dueRefresh
		for id := range graphstore.Community(view.Communities()) {
			due = append(due, dueRefresh{id, true})
		}
		solve := func() (se []float64) {
			for _, x := range due {
				core.published[x.id].snapshots = nil
				se = append(se, core.solve(x.id, view, &core.solvers[0], true)[0].SE...)
			}
			return se
		}
		for part := range slices.Chunk(due, 4) {
			core.refreshBlock(part, view)
		}
		want := solve()
		if d.sketchDue(core, 0, due, view) == 0 {
			t.Fatalf("%+v: nothing was estimated", shape)
		}
		got := solve()
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
