package incremental

import (
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// Labels and predictions without a time that come before log time begins have no age: records must
// not call them as old as 1970, and they must not lose weight with a half-life.
func TestEvidenceBeforeLogTimeHasNoAge(t *testing.T) {
	const n, begins = 100, event.Time(1_767_225_600e9)
	core := newCore(t, Config{
		Classes: 2, Evidence: graphstore.EvidenceConfig{HalfLife: time.Hour},
		Emit: Emit{Threshold: 0.1},
	})
	defer core.Close()
	id := func(v int) event.ID { return event.NumberID(uint64(v)) }
	predict := func(v int) event.Prediction {
		units := []uint32{event.One / 4, event.One - event.One/4}
		if v%2 == 0 {
			units[0], units[1] = units[1], units[0]
		}
		return event.Prediction{Vertex: id(v), Units: units}
	}
	b := &event.Batch{First: 1, Last: 1}
	for v := range n {
		b.Predictions = append(b.Predictions, predict(v))
		b.Members = append(b.Members, event.Member{Community: "c", Vertex: id(v), Multiplicity: 1})
		b.Edges = append(b.Edges, event.Edge{Src: id(v), Dst: id((v + 2) % n), Weight: 1})
		if v%4 < 2 {
			b.Labels = append(b.Labels, event.Label{Vertex: id(v), Class: event.Class(v % 2)})
		}
	}
	core.Step(b)
	emit := func(at event.Time, position event.Position, changed ...int) (age float64) {
		t.Helper()
		b := &event.Batch{First: position, Last: position, Time: at, Emit: true, EmitAll: true}
		for _, v := range changed {
			p := predict(v + 1)
			p.Vertex = id(v)
			b.Predictions = append(b.Predictions, p)
		}
		list := core.Step(b).Estimates
		if len(list) != 1 {
			t.Fatalf("%d records at %v", len(list), at)
		}
		e := list[0]
		if e.LabelAge != 0 || e.Recent != 0 && e.Recent < 0.99 {
			t.Errorf("at %v: age of labels %v, mass %v", at, e.LabelAge, e.Recent)
		}
		return e.EvidenceAge
	}
	if age := emit(begins, 2); age != 0 {
		t.Errorf("predictions without a time are %v s old", age)
	}
	emit(begins+2e9, 3, 3)
	if age := emit(begins+4e9, 4, 7); age != 1 { // of one observed now, and one two seconds ago
		t.Errorf("the mean age of two predictions with times is %v s, want 1", age)
	}
}
