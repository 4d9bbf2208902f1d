package incremental

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
)

// Standard errors from second moments that are estimated for all communities at once must be those
// from the masses of each: within a twelfth in 96 cases of a hundred, and not larger or smaller on
// the whole.
func TestSketchesGiveTheStandardErrorsOfMasses(t *testing.T) {
	for _, shape := range []struct{ classes, vertices, communities int }{
		{2, 20000, 40},
		{2, 6000, 300},
		{2, 6000, 40},
		{5, 6000, 100},
		{20, 6000, 200},
	} {
		config := Config{Classes: shape.classes, Engine: EngineDual, Emit: Emit{Threshold: 0.1}}
		core := newCore(t, config)
		for b := range simulatedSteps(t, shape.classes, shape.vertices, shape.communities, .05,
			12*time.Second, 5*time.Second) {
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
			core.kernels.(*sharedDual).sketch(view, math.Inf(1))
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
		t.Logf(
			"%+v: logarithm of standard errors %.3f, %.3f, %.3f; from %.3f to %.3f", shape, low,
			middle, high, got[0], got[len(got)-1],
		)
		if low < -.08 || math.Abs(middle) > .02 || high > .08 {
			t.Errorf(
				"%+v: logarithms of standard errors are from %.3f to %.3f, %.3f in the middle",
				shape, low, high, middle,
			)
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
		if l := view.Label(v); l.Class != event.NoClass && l.Role == event.Calibrate &&
			view.Prediction(v) != nil {
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

// A quarter of the labels goes during each sketch. On average, second moments must be those
// of the labels that remain. A vertex whose label has gone is still a source, but its mass
// must not count as that of a label. A single moment can be off by more, because a past
// sketch does not include a label of large mass that came after it.
func TestLabelsThatGoLeaveSketches(t *testing.T) {
	core := newCore(t, Config{Classes: 2, Engine: EngineDual, Emit: Emit{Threshold: 0.1}})
	defer core.Close()
	now := event.Time(0)
	for b := range simulatedSteps(t, 2, 6000, 40, .05, 12*time.Second, 5*time.Second) {
		core.Step(b)
		now = b.Time
	}
	d, view := core.kernels.(*sharedDual), core.View()
	d.signs = nil
	for range tally.SketchRounds * core.config.Classes {
		d.sketch(view, 1)
		b := &event.Batch{Last: core.Position() + 1, Time: now}
		free := graphstore.Vertex(0)
		for i, v := range slices.Clone(core.tallies.Rows()) {
			if i%4 > 0 {
				continue
			}
			for free++; view.Label(free).Class != event.NoClass || view.Prediction(free) == nil; {
				free++
			}
			b.Labels = append(b.Labels, event.Label{Vertex: view.ID(v), Class: event.NoClass},
				event.Label{Vertex: view.ID(free), Class: view.Label(v).Class})
		}
		core.Step(b)
		d.settle(view, d.changes(view))
		d.dual.Prepare(view)
		d.sketch(view, math.Inf(1))
	}
	var ratios []float64
	for id := range graphstore.Community(view.Communities()) {
		for i, uneven := range exactSpread(core, id).Uneven {
			if s := core.tallies.Spread(id); s != nil && uneven >= 0 {
				said := s.Uneven[i : i+tally.SketchRounds]
				ratios = append(
					ratios,
					(1+(said[0]+said[1]+said[2]+said[3])/tally.SketchRounds)/(1+uneven),
				)
			}
		}
	}
	slices.Sort(ratios)
	middle, high := ratios[len(ratios)/2], ratios[len(ratios)-1-len(ratios)/50]
	t.Logf(
		"second moments are %.2f to %.2f of those of the labels, %.2f in the middle", ratios[0],
		high, middle,
	)
	if len(ratios) < 60 || middle > 1.15 || high > 7 {
		t.Errorf(
			"of %d second moments the middle one is %.2f of what it is to be, the largest %.2f",
			len(ratios), middle, high,
		)
	}
}

// A sketch of a graph that is large for the work that emissions earn must be divided over many
// emissions. Each part may exceed the earned work by at most one vertex. A core that is restored
// again and again in the middle of sketches must publish the bits of a core that never stopped.
func TestASketchIsDividedOverEmissions(t *testing.T) {
	const earned = 4000
	config := Config{
		Classes: 2,
		Engine:  EngineDual,
		Work:    Work{Sketches: earned},
		Emit:    Emit{Threshold: 0.1},
	}
	core, twin := newCore(t, config), newCore(t, config)
	unfinished, since, most := 0, 0, 0
	made, credit := uint64(0), math.Inf(1)
	i := 0
	for b := range simulatedSteps(t, 2, 3000, 30, .05, 12*time.Second, 8*time.Second) {
		b.Checkpoint = i%4 == 3
		i++
		a, r := core.Step(b), twin.Step(b)
		if !reflect.DeepEqual(a.Estimates, r.Estimates) {
			t.Fatalf("at %v some records are others with restarts", b.Time)
		}
		if d, shared := core.kernels.(*sharedDual); shared && b.Emit {
			vertex, view := 0, core.View()
			for v := range graphstore.Vertex(view.Vertices()) {
				vertex = max(vertex, 2*len(view.Neighbors(v))+100)
			}
			if spent := credit + sketchArriving*earned - d.Credit; d.Credit < -float64(vertex) ||
				credit <= 0 && spent > 2*sketchArriving*earned {
				t.Errorf(
					"at %v sketches took %v of the work that %v were earned for", b.Time, spent,
					credit,
				)
			}
			if since++; d.Sketches > made {
				made, most, since = d.Sketches, max(most, since), 0
			}
			credit = d.Credit
		}
		if a.Compacted {
			if d, shared := core.kernels.(*sharedDual); shared && d.signs != nil {
				unfinished++
			}
			state := saved(t, 1, twin)
			sameState(t, 1, state, saved(t, 1, core))
			twin.Close()
			twin = restore(t, 1, state, config)
		}
	}
	if unfinished < 10 || most < 8 || made < 8 {
		t.Errorf(
			"%d of the states hold a sketch, %d were made, over at most %d emissions", unfinished,
			made, most,
		)
	}
	core.Close()
	twin.Close()
}
