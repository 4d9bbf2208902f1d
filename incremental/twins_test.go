package incremental

import (
	"math"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/posterior"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/lab/campaign"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// historyOf returns a history of everything that can happen, or of a larger graph.
func historyOf(seed uint64) (h history, classes int) {
	if seed%3 == 1 {
		return newTown(seed, 2+int(seed%4), 300, 3), 2 + int(seed%4)
	}
	stream := eventtest.New(seed, eventtest.Config{
		Weighted: seed%2 == 0, Erase: seed%5 == 0, TTL: seed%7 == 0, Withdraw: seed%4 == 0,
		RollOuts: seed%4 == 1, Attributes: seed%2 == 1,
	})
	return stream, stream.Config.Classes
}

// autoAlone is a configuration with all data and settings that auto can use.
func autoAlone(seed uint64, classes int) Config {
	return Config{
		Classes: classes, Estimates: []quant.Options{quant.DefaultOptions()},
		Engine: []string{"", EnginePrimal, EngineDual}[seed/3%3], HalfLife: halfLifeOf(seed / 9),
		Communities:  []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
		Evidence:     graphstore.EvidenceConfig{Attributes: []string{"language", "age"}},
		CompactEvery: -1, // at a checkpoint all is computed
	}
}

// After every batch of a random history posteriors and tallies must equal a recount, except
// for those that wait for the next flush; at the end estimates must as well. A restart must
// leave no trace. GQLSTREAM_POSTERIORS sets the number of histories (make soak: 1,000).
func TestPosteriorsAndEstimatesEqualTheirTwins(t *testing.T) {
	histories := campaign.Size(t, "GQLSTREAM_POSTERIORS", 60)
	compared, late := 0, 0
	for seed := campaign.Seed(t, 0); seed < uint64(histories); seed++ {
		stream, classes := historyOf(seed)
		config := autoAlone(seed, classes)
		core := newCore(t, config)
		latest := map[string]quant.Estimate{}
		for i := range 14 {
			batch := stream.Next()
			batch.Emit = batch.Emit || i == 13
			for _, e := range checkedStep(t, seed, i, core, batch).Estimates {
				latest[e.Community] = e
			}
		}
		n, apart := compareToTwin(t, seed, core, latest)
		compared += n
		if apart > 0 {
			late++
		}
		core.Close()
		stream, _ = historyOf(seed)
		restarts{batches: 12, every: 4}.leaveNoTrace(t, seed, stream, config)
	}
	if compared < histories || late < histories/6 {
		t.Errorf(
			"%d histories: %d estimates were compared, in %d histories something was late",
			histories, compared, late,
		)
	}
	t.Logf("%d histories: %d estimates, something was late in %d", histories, compared, late)
}

// compareToTwin compares the latest estimates with those from posteriors that are computed
// from scratch. It returns their number, and the largest error of a posterior.
func compareToTwin(
	t *testing.T, seed uint64, core *Core, latest map[string]quant.Estimate,
) (n int, apart float64) {
	t.Helper()
	view, mine := core.View(), core.posteriors
	epoch := mine.state.Epoch()
	if epoch == nil {
		return 0, 0
	}
	state, err := posterior.Restore(
		core.config.Classes, "", core.pairs, core.tallies.Rows, *epoch, view, core.sums,
	)
	if err != nil {
		t.Fatal(err)
	}
	twin := &posteriors{core: core, state: state}
	twin.countResiduals(view)
	twin.within = func() []float64 { return state.Within(view) }
	twin.sample = func() *stats.LabelSample { return twin.draw(view) }
	k := core.config.Classes
	have, want := make([]float64, k), make([]float64, k)
	for v := range graphstore.Vertex(view.Vertices()) {
		h, w := mine.state.LabelPosterior(v), state.LabelPosterior(v)
		for i := range w {
			apart = max(apart, math.Abs(h[i]-w[i]))
		}
	}
	for id := range graphstore.Community(view.Communities()) {
		h, w := mine.state.Histogram(id).Cells(), state.Histogram(id).Cells()
		members := 0.0
		clear(have)
		clear(want)
		for z, n := range w {
			members += n
			for i, p := range epoch.Means[z*k : (z+1)*k] {
				want[i] += n * p
				have[i] += h[z] * p
			}
		}
		for i := range want {
			apart = max(apart, math.Abs(have[i]-want[i])/max(members, 1))
		}
	}
	sumAgain(core)
	for name, e := range latest {
		id, known := view.FindCommunity(name)
		if !known || e.Suppressed {
			continue
		}
		read := core.kernels.Statistics(id, view)
		read.Posterior = twin.of(id, view, read.Statistics)
		var want quant.Estimate
		err := new(quant.Solver).Estimate(&want, read.Statistics, core.config.Estimates[0])
		if err != nil {
			t.Fatal(err)
		}
		n++
		for i, q := range want.Prevalence {
			// Where classes are hard to tell apart, a small change of the posteriors moves
			// the shares by a multiple of it.
			if off := math.Abs(q - e.Prevalence[i]); off > 1e-6+200*apart {
				t.Errorf(
					"seed %d: %s: share %d is %v, from posteriors computed anew %v; those are "+
						"off by %g",
					seed,
					name,
					i,
					e.Prevalence[i],
					q,
					apart,
				)
			}
		}
	}
	return n, apart
}

// The label of a vertex must not influence the views of its own posterior, neither directly
// nor through the built-in classifier, which predicts from other labels.
func TestOwnLabelNeverReachesOwnPosterior(t *testing.T) {
	for _, name := range []string{"", classifier.Name} {
		world := newTown(5, 3, 80, 2)
		config := Config{Classes: 3, Classifier: name, CompactEvery: -1}
		core := newCore(t, config)
		defer core.Close()
		start := world.start()
		if name != "" {
			start.Predictions = nil
		}
		core.Step(start)
		core.Hold(
			Choices{Epoch: core.Coefficients()},
		) // otherwise a changed label would cause a new fit
		labels, triangles := slices.Clone(core.tallies.Rows()), 0
		for _, v := range labels {
			was := core.View().Label(v).Class
			views := func() []float64 {
				x := make([]float64, posterior.Views*3)
				if !core.posteriors.state.Reader(core.View(), core.sums).Views(x, v) {
					t.Fatalf("%q: label %d has no views", name, v)
				}
				return x
			}
			before := views()
			at := core.Position() + 1
			core.Step(
				&event.Batch{
					First:  at,
					Last:   at,
					Emit:   true,
					Labels: []event.Label{{Vertex: core.View().ID(v), Class: (was + 1) % 3}},
				},
			)
			if after := views(); !slices.Equal(before, after) {
				t.Errorf(
					"%q: the label of %d moves its own views from %v to %v", name, v, before, after,
				)
			}
			for _, u := range core.View().Neighbors(v) {
				for _, w := range core.View().Neighbors(u) {
					if slices.Contains(core.View().Neighbors(v), w) {
						triangles++
					}
				}
			}
		}
		if len(labels) < 3 || triangles == 0 {
			t.Fatalf("%q: %d labels, %d triangles", name, len(labels), triangles)
		}
	}
}
