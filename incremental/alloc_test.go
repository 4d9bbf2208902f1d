package incremental

import (
	"math/rand/v2"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// stepAllocationsMax bounds the allocations of two steps, such as closures. A step has ten
// events of every kind, so that one allocation an event would exceed it.
const stepAllocationsMax = 10

// In the steady state, the allocations of a step must not grow with its events, for each
// engine: edges come and go, predictions and labels change, members join and leave.
func TestStepsAllocateNothingPerEvent(t *testing.T) {
	for _, engine := range []string{EnginePrimal, EngineDual} {
		few, many := allocations(t, engine, 20), allocations(t, engine, 200)
		if max(few, many) > stepAllocationsMax {
			t.Errorf(
				"%s: %v allocations in two steps of 20 events, %v in two of 200", engine, few, many,
			)
		}
	}
}

// allocations returns the number of allocations of two steps; the second undoes the first.
func allocations(t *testing.T, engine string, events int) float64 {
	t.Helper()
	core := newCore(
		t,
		Config{Classes: 2, Engine: engine, Communities: []graphstore.Rule{{Name: "a"}}},
	)
	defer core.Close()
	const n = 10_000
	r := rand.New(rand.NewPCG(7, uint64(events)))
	var first event.Batch
	for v := range uint64(n) {
		first.Predictions = append(first.Predictions, event.Prediction{
			Vertex: event.NumberID(
				v,
			), Units: []uint32{event.One / 4, event.One - event.One/4}, Version: "m",
		})
		if v%10 == 0 {
			first.Labels = append(
				first.Labels,
				event.Label{Vertex: event.NumberID(v), Class: event.Class(v / 10 % 2)},
			)
		}
		first.Members = append(
			first.Members,
			event.Member{Community: "a", Vertex: event.NumberID(v), Multiplicity: 1},
		)
		for range 10 {
			first.Edges = append(
				first.Edges,
				event.Edge{
					Src:    event.NumberID(v),
					Dst:    event.NumberID((v + 1 + r.Uint64N(n-1)) % n),
					Weight: 1,
				},
			)
		}
	}
	there, back := thereAndBack(r, n, events)
	position := event.Position(0)
	step := func(b *event.Batch, emit bool) {
		position++
		b.First, b.Last, b.Time, b.Emit = position, position, event.Time(position), emit
		core.Step(b)
	}
	step(&first, true)
	for range 20 {
		step(&there, false)
		step(&back, false)
	}
	return testing.AllocsPerRun(20, func() {
		step(&there, false)
		step(&back, false)
	})
}

// thereAndBack returns events of every kind on n vertices, and the events that undo them.
func thereAndBack(r *rand.Rand, n uint64, events int) (there, back event.Batch) {
	id := func() event.ID { return event.NumberID(r.Uint64N(n)) }
	for i := range events {
		switch i % 20 {
		case 0:
			p := event.Prediction{
				Vertex:  id(),
				Units:   []uint32{event.One / 2, event.One / 2},
				Version: "m",
			}
			there.Predictions = append(there.Predictions, p)
			p.Units = []uint32{event.One / 8, event.One - event.One/8}
			back.Predictions = append(back.Predictions, p)
		case 1:
			l := event.Label{Vertex: event.NumberID(r.Uint64N(n/10)*10 + 1), Class: 1}
			there.Labels = append(there.Labels, l)
			l.Class = event.NoClass
			back.Labels = append(back.Labels, l)
		case 2:
			m := event.Member{Community: "a", Vertex: id(), Multiplicity: 0}
			there.Members = append(there.Members, m)
			m.Multiplicity = 1
			back.Members = append(back.Members, m)
		default:
			u := r.Uint64N(n)
			e := event.Edge{Src: event.NumberID(u), Dst: event.NumberID(n + u), Weight: 1}
			there.Edges = append(there.Edges, e)
			e.Remove = true
			back.Edges = append(back.Edges, e)
		}
	}
	return there, back
}
