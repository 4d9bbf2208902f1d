package bench

import (
	"context"
	"fmt"
	"runtime"
)

const memoryReference = "Memgraph's sizing rule: 154 B"

// measureMemory counts what is reachable on the heap before and after the graph:
// adjacency in both directions, index, names, columns and spare capacity.
func measureMemory(_ context.Context, w *World) ([]Row, error) {
	g, err := w.shared()
	if err != nil {
		return nil, err
	}
	edges := g.store.View().Edges()
	grown := w.heap
	without := heap() - min(w.heap, heap())
	g.store.Compact()
	compacted := heap() - without
	runtime.KeepAlive(g)
	row := func(name string, bytes uint64, note string) Row {
		return Row{
			Name: name, Value: float64(bytes) / float64(edges), Unit: "B/edge", Reference: memoryReference,
			Note: fmt.Sprintf("%s, %d vertices, %d edges, %.0f MB", note, g.n, edges, float64(bytes)/1e6),
		}.atMost(26).atSize(w)
	}
	return []Row{
		row("memory", grown, "as it grew"),
		row("memory/compacted", compacted, "after a compaction"),
	}, nil
}
