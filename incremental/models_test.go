package incremental

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// At any time of a history in which one model version replaces another, estimates must be
// bit-equal to those of a core that got all other events first and then, at once, the
// predictions of the published version alone. No version predicts a vertex twice, because
// labels would be paired with its first prediction.
func TestEstimatesReadOneModelVersion(t *testing.T) {
	switched, rolling := 0, 0
	for seed := range uint64(60) {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%2 == 0, TTL: true, RollOuts: true, Vertices: 12},
		)
		config := allMethods(stream.Config.Classes)
		// no less where labels are far, which takes predictions of these
		config.Tolerance = dualToleranceMin
		core := newCore(t, config)
		log := []*event.Batch{everyVertex(stream)}
		core.Step(log[0])
		// by version: the last that is not older than a switch
		said := map[string]map[event.ID]event.Prediction{}
		active := uint32(noVersion)
		for i := range 12 {
			batch := stream.Next()
			batch.Emit = batch.Emit || i == 11
			batch.Predictions = slices.DeleteFunc(batch.Predictions, func(p event.Prediction) bool {
				_, before := said[p.Version][p.Vertex]
				return before
			})
			for at := range batch.Predictions {
				batch.Predictions[at].TTL = 0
			}
			log = append(log, batch)
			result := core.Step(batch)
			for _, p := range batch.Predictions {
				if said[p.Version] == nil {
					said[p.Version] = map[event.ID]event.Prediction{}
				}
				said[p.Version][p.Vertex] = p
			}
			view := core.View()
			if now, known := view.ActiveVersion(); known && now != active {
				if active != noVersion {
					switched++
				}
				active = now
			}
			if incomingVersion(view) != noVersion {
				rolling++
			}
			if len(result.Estimates) > 0 {
				published := publishedPredictions(t, seed, i, view, said)
				compareWithAlone(t, seed, i, config, log, published, result.Estimates)
			}
		}
		core.Close()
	}
	if switched < 20 || rolling < 80 {
		t.Fatalf(
			"%d switches and %d batches of a roll-out are too few to test them",
			switched,
			rolling,
		)
	}
}

// everyVertex mentions all vertices, so that every core gives them the same indices.
func everyVertex(s *eventtest.Stream) *event.Batch {
	b := &event.Batch{}
	for v := range s.Config.Vertices {
		b.Vertices = append(b.Vertices, event.Vertex{Vertex: s.ID(v)})
	}
	return b
}

// publishedPredictions returns the predictions behind the published estimates, and checks
// that all are of the one version in use. Predictions of a version that was dropped in
// between may be missing.
func publishedPredictions(t *testing.T, seed uint64, batch int, view graphstore.View,
	said map[string]map[event.ID]event.Prediction,
) (all []event.Prediction) {
	t.Helper()
	active, known := view.ActiveVersion()
	if !known {
		return nil
	}
	name := view.Versions()[active]
	for v := range graphstore.Vertex(view.Vertices()) {
		units := view.Prediction(v)
		if units == nil {
			continue
		}
		p, ok := said[name][view.ID(v)]
		if !ok || view.Version(v) != active || !slices.Equal(p.Units, units) {
			t.Fatalf(
				"seed %d batch %d: vertex %d has %v of version %d; version %s said %v", seed, batch,
				v, units, view.Version(v), name, p.Units,
			)
		}
		all = append(all, p)
	}
	return all
}

// compareWithAlone runs the log without its predictions, and those published in the
// last step, through a fresh core.
func compareWithAlone(t *testing.T, seed uint64, batch int, config Config, log []*event.Batch,
	published []event.Prediction, got []quant.Estimate,
) {
	t.Helper()
	alone := newCore(t, config)
	defer alone.Close()
	var want []quant.Estimate
	for i, b := range log {
		bare := *b
		bare.Predictions = nil
		if i == len(log)-1 {
			bare.Predictions = published
			alone.republishAll()
		}
		want = alone.Step(&bare).Estimates
	}
	want = slices.DeleteFunc(want, func(e quant.Estimate) bool {
		return !slices.ContainsFunc(
			got,
			func(g quant.Estimate) bool { return g.Community == e.Community },
		)
	})
	// When coefficients were fitted is part of the log, and another one has predictions later.
	corrected := map[string]bool{} // by coefficients, in either
	for _, e := range slices.Concat(got, want) {
		if slices.Contains(e.Flags, quant.FlagAtypical) {
			corrected[e.Community+e.Method] = true
		}
	}
	fitted := func(e quant.Estimate) bool {
		return e.Method == string(quant.Auto) || corrected[e.Community+e.Method]
	}
	got, want = slices.DeleteFunc(slices.Clone(got), fitted), slices.DeleteFunc(want, fitted)
	for _, list := range [][]quant.Estimate{got, want} {
		for i := range list {
			list[i].Flags = slices.DeleteFunc(
				list[i].Flags,
				func(f string) bool { return f == quant.FlagModelSwitching },
			)
		}
	}
	history := cmpopts.IgnoreFields(quant.Estimate{}, "SEChange", "Moved", "Revised", "SERevised",
		"Counted", "SECounted", "EvidenceAge", "ModelVersion", "ModelComing", "ModelArrived")
	if diff := cmp.Diff(want, got, history); diff != "" {
		t.Fatalf(
			"seed %d batch %d: the published version alone (-), beside others (+):\n%s", seed,
			batch, diff,
		)
	}
}

// Records must name the version in use, and say that another is coming from the
// first notable prediction of it to the first record that is made with it.
func TestRecordsSpeakOfARollOut(t *testing.T) {
	core, err := New(
		Config{
			Classes:     2,
			Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	position := event.Position(0)
	step := func(version string, from, to uint64) []quant.Estimate {
		position++
		b := &event.Batch{First: position, Last: position, Emit: true}
		for i := from; i < to; i++ {
			b.Predictions = append(b.Predictions, event.Prediction{
				Vertex: event.NumberID(
					i,
				), Units: []uint32{event.One, 0}, Version: version, Position: position,
			})
			if position == 1 && i < 100 {
				b.Labels = append(
					b.Labels,
					event.Label{
						Vertex:   event.NumberID(i),
						Class:    event.Class(i % 2),
						Position: position,
					},
				)
			}
		}
		return core.Step(b).Estimates
	}
	for i, want := range []struct {
		version    string
		from, to   uint64
		published  bool
		in, coming string
		arrived    float64
		switching  bool
	}{
		{"a", 0, 1000, true, "a", "", 0, false},
		{"b", 0, 9, false, "", "", 0, false},      // strays
		{"b", 9, 10, true, "a", "b", 0.01, true},  // a roll-out
		{"b", 10, 500, false, "", "", 0, false},   // changes no record
		{"a", 999, 1000, false, "", "", 0, false}, // predicts the same as before
		{"b", 500, 950, true, "b", "", 0, true},   // the first record of b
		{"b", 950, 1000, true, "b", "", 0, false}, // and the next
	} {
		records := step(want.version, want.from, want.to)
		if len(records) != 0 != want.published {
			t.Fatalf("step %d: %d records", i, len(records))
		}
		for _, r := range records {
			if r.ModelVersion != want.in || r.ModelComing != want.coming ||
				r.ModelArrived != want.arrived ||
				slices.Contains(r.Flags, quant.FlagModelSwitching) != want.switching {
				t.Fatalf(
					"step %d: %s, coming %q at %g, flags %v; want %+v", i, r.ModelVersion,
					r.ModelComing, r.ModelArrived, r.Flags, want,
				)
			}
		}
	}
}
