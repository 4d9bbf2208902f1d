package incremental

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// crowd makes a batch with vertices, predictions, labels and so many communities.
func crowd(position event.Position, communities int) *event.Batch {
	b := &event.Batch{First: position, Last: position, Time: event.Time(position) * 1e8, Emit: true}
	for v := range uint64(50) {
		id := event.NumberID(v)
		b.Edges = append(b.Edges, event.Edge{Src: id, Dst: event.NumberID((v + 7) % 50), Weight: 1})
		b.Predictions = append(b.Predictions, event.Prediction{Vertex: id, Units: []uint32{event.One / 4, event.One - event.One/4}})
		if v%5 == 0 {
			b.Labels = append(b.Labels, event.Label{Vertex: id, Class: event.Class(v / 5 % 2)})
		}
	}
	for i := range communities {
		b.Members = append(b.Members, event.Member{Community: fmt.Sprint("c", i), Vertex: event.NumberID(uint64(i % 50)), Multiplicity: 1})
	}
	return b
}

// Fields must serve a core until it has more communities than fieldsMax, and the dual from
// then on, also when the communities are gone.
func TestADualServesManyCommunities(t *testing.T) {
	core := newCore(t, Config{Classes: 2})
	defer core.Close()
	for i, step := range []struct {
		communities int
		want        string
	}{{5, EnginePrimal}, {fieldsMax + 2, EnginePrimal}, {fieldsMax + 3, EngineDual}, {3, EngineDual}} {
		b := crowd(event.Position(i+1), step.communities)
		core.Step(b)
		if got := core.engine(); got != step.want {
			t.Errorf("%d communities: engine %s, want %s", step.communities, got, step.want)
		}
		if fields := core.FieldBytes() / fieldBytes / core.View().Vertices(); (fields > 0) != (step.want == EnginePrimal) {
			t.Errorf("%d communities, engine %s: memory of %d fields", step.communities, step.want, fields)
		}
	}
	cold := newCore(t, Config{Classes: 2})
	defer cold.Close()
	cold.Step(crowd(1, fieldsMax+3))
	if got := cold.engine(); got != EngineDual {
		t.Errorf("a cold core begins with the engine %s", got)
	}
}

// With as many labels as a record of auto can read fields must make way for a dual, however few communities there
// are; but not where methods weigh cells, of which a dual keeps nothing.
func TestADualServesManyLabels(t *testing.T) {
	for _, method := range []quant.Method{quant.Auto, quant.SISNACC} {
		core := newCore(t, Config{Classes: 2, Estimates: []quant.Options{{Method: method}}})
		for i, labels := range []int{fieldLabelsMax, fieldLabelsMax + 1} {
			b := crowd(event.Position(i+1), 1)
			for v := range uint64(labels) {
				b.Predictions = append(b.Predictions, event.Prediction{Vertex: event.NumberID(v), Units: []uint32{event.One / 4, event.One - event.One/4}})
				b.Labels = append(b.Labels, event.Label{Vertex: event.NumberID(v), Class: event.Class(v % 2)})
			}
			want := EnginePrimal
			if method == quant.Auto && labels > fieldLabelsMax {
				want = EngineDual
			}
			core.Step(b)
			if got := core.engine(); got != want {
				t.Errorf("%s with %d labels: engine %s, want %s", method, labels, got, want)
			}
		}
		core.Close()
	}
}

// Whenever the dual takes over from fields, estimates must be those of the present graph,
// and a restored core must go on with the same bits.
func TestTakingOverLeavesNoTrace(t *testing.T) {
	taken := 0
	for seed := range uint64(40) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true})
		config := dualConfig(seed, stream.Config.Classes)
		config.Engine, config.fieldsMax, config.HalfLife = "", 1+int(seed%4), halfLifeOf(seed/2)
		core := newCore(t, config)
		for i := range 20 {
			batch := stream.Next()
			batch.Checkpoint = i%4 == 3
			before := core.engine()
			result := checkedStep(t, seed, i, core, batch)
			now := core.engine()
			if batch.Emit || core.engine() == EnginePrimal { // pushes of a dual wait for an emission
				checkKernels(t, seed, i, core)
			}
			if now != before {
				taken++
			}
			if !result.Compacted {
				continue
			}
			twin := restored(t, seed, core, config)
			for range 2 {
				next := stream.Next()
				a, b := core.Step(next), twin.Step(next)
				if diff := cmp.Diff(a.Estimates, b.Estimates); diff != "" || core.engine() != twin.engine() {
					t.Fatalf("seed %d batch %d: %s without (-) and %s with a restart (+):\n%s", seed, i, core.engine(), twin.engine(), diff)
				}
			}
			core.Close()
			core = twin
		}
		core.Close()
	}
	if taken < 20 {
		t.Errorf("a dual took over %d times in 40 histories", taken)
	}
}
