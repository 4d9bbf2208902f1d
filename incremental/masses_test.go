package incremental

import (
	"fmt"
	"testing"

	"gqlstream/ingest/event"
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

// However many communities and labels there are, a dual must serve methods that weigh no cells, and fields those that do.
func TestMethodsDecideWhoKeepsTheMasses(t *testing.T) {
	for method, weighs := range map[quant.Method]bool{quant.Auto: false, quant.PACC: false, quant.SISNACC: true} {
		core := newCore(t, Config{Classes: 2, Estimates: []quant.Options{{Method: method}}})
		for i, communities := range []int{1, 40, 3} {
			core.Step(crowd(event.Position(i+1), communities))
			if fields := core.FieldBytes() / fieldBytes / core.View().Vertices(); (fields > 0) != weighs {
				t.Errorf("%s, %d communities: memory of %d fields", method, communities, fields)
			}
		}
		core.Close()
	}
}
