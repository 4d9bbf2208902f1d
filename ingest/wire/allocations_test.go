//go:build !race

// The race detector makes allocations of its own, one an event, so that it cannot be asked.

package wire

import (
	"bytes"
	"fmt"
	"testing"

	"gqlstream/ingest/event"
)

// Once the batch has grown, decoding an event takes no memory, and a message in
// Arrow takes less than the overhead of a message.
func TestDecodingDoesNotAllocatePerEvent(t *testing.T) {
	const n = 1000
	d := newDecoder(t, 3)
	var edges, predictions event.Batch
	for i := range n {
		edges.Edges = append(
			edges.Edges,
			event.Edge{
				Src:    event.NumberID(uint64(i)),
				Dst:    event.ParseID(fmt.Sprintf("v%d", i)),
				Weight: 1.5,
				Time:   1e18,
			},
		)
		predictions.Predictions = append(
			predictions.Predictions,
			event.Prediction{
				Vertex:  event.NumberID(uint64(i)),
				Units:   []uint32{1, 2, event.One - 3},
				Version: "m",
			},
		)
	}
	var b event.Batch
	for _, c := range []struct {
		kind   event.Kind
		events *event.Batch
	}{{event.KindEdge, &edges}, {event.KindPrediction, &predictions}} {
		table, err := EncodeArrow(c.kind, c.events, 0, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, payload := range [][]byte{
			bytes.Join(jsonEvents(c.kind, c.events), []byte("\n")),
			table,
		} {
			m := Message{Kind: c.kind, Payload: payload}
			allocs := testing.AllocsPerRun(5, func() {
				b.Reset()
				if err := d.Decode(m, &b); err != nil || b.Events() != n {
					t.Fatal(err)
				}
			})
			if allocs > 20 {
				t.Errorf(
					"%v: %v allocations for a message of %d events of %d bytes", c.kind, allocs, n,
					len(payload),
				)
			}
		}
	}
}
