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
		b.Predictions = append(
			b.Predictions,
			event.Prediction{Vertex: id, Units: []uint32{event.One / 4, event.One - event.One/4}},
		)
		if v%5 == 0 {
			b.Labels = append(b.Labels, event.Label{Vertex: id, Class: event.Class(v / 5 % 2)})
		}
	}
	for i := range communities {
		b.Members = append(
			b.Members,
			event.Member{
				Community:    fmt.Sprint("c", i),
				Vertex:       event.NumberID(uint64(i % 50)),
				Multiplicity: 1,
			},
		)
	}
	return b
}

// One dual must keep the kernel masses where no method weighs cells, however many communities there
// are; fields must where one does, and where the kernel is another one.
func TestTheConfigurationDecidesTheEngine(t *testing.T) {
	for _, c := range []struct {
		method quant.Method
		kernel string
		want   string
	}{
		{quant.Auto, "", EngineDual},
		{quant.PACC, "", EngineDual},
		{quant.SISNACC, "", EnginePrimal},
		{quant.Diff, "", EnginePrimal},
		{quant.Auto, "lazy", EnginePrimal},
	} {
		core := newCore(t, Config{
			Classes: 2, Kernel: c.kernel, Estimates: []quant.Options{{Method: c.method}},
		})
		for i, communities := range []int{2, 30} {
			core.Step(crowd(event.Position(i+1), communities))
			if got := core.engine(); got != c.want {
				t.Errorf("%s, kernel %q, %d communities: %s, want %s",
					c.method, c.kernel, communities, got, c.want)
			}
			fields := core.FieldBytes() / fieldBytes / core.View().Vertices()
			if (fields > 0) != (c.want == EnginePrimal && c.kernel == "") {
				t.Errorf("%s, kernel %q: memory of %d fields", c.method, c.kernel, fields)
			}
		}
		core.Close()
	}
}
