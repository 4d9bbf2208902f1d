package classifier

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// benchmarkStore returns a random graph of 20,000 vertices and 200,000 edges with some
// hubs; one vertex in twenty has a label.
func benchmarkStore(b *testing.B, classes int) (*graphstore.Store, *rand.Rand) {
	b.Helper()
	store, err := graphstore.New(graphstore.Config{Classes: classes})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Release)
	r := rand.New(rand.NewPCG(1, 1))
	var batch event.Batch
	for range 200_000 {
		batch.Edges = append(batch.Edges, anEdge(r, false))
	}
	for range benchmarkVertices / 20 {
		batch.Labels = append(batch.Labels, aLabel(r, classes))
	}
	store.Apply(&batch)
	return store, r
}

const benchmarkVertices = 20_000

func anEdge(r *rand.Rand, remove bool) event.Edge {
	u := min(r.IntN(benchmarkVertices), r.IntN(benchmarkVertices), r.IntN(benchmarkVertices))
	v := (u + 1 + r.IntN(benchmarkVertices-1)) % benchmarkVertices
	return event.Edge{
		Src:    event.NumberID(uint64(u)),
		Dst:    event.NumberID(uint64(v)),
		Weight: 1,
		Remove: remove,
	}
}

func aLabel(r *rand.Rand, classes int) event.Label {
	return event.Label{
		Vertex: event.NumberID(uint64(r.IntN(benchmarkVertices))),
		Class:  event.Class(r.IntN(classes)),
	}
}

// change applies a batch of edges, one in ten events a label.
func change(
	store *graphstore.Store,
	r *rand.Rand,
	events, classes int,
) (graphstore.View, *graphstore.Delta) {
	var batch event.Batch
	for range events {
		if r.IntN(10) == 0 {
			batch.Labels = append(batch.Labels, aLabel(r, classes))
		} else {
			batch.Edges = append(batch.Edges, anEdge(r, r.IntN(5) == 0))
		}
	}
	delta, _ := store.Apply(&batch)
	return store.View(), delta
}

// BenchmarkFollow measures the cost of the classifier in a step: its update, and storing
// its predictions. predictions/event is the number of changed predictions.
func BenchmarkFollow(b *testing.B) {
	for _, classes := range []int{2, 10} {
		for _, events := range []int{100, 1000} {
			b.Run(fmt.Sprintf("K=%d/batch=%d", classes, events), func(b *testing.B) {
				store, r := benchmarkStore(b, classes)
				d := New(classes, store.View())
				store.Derive(d.Derive(store.View()), Name)
				predictions := 0
				for b.Loop() {
					b.StopTimer()
					view, delta := change(store, r, events, classes)
					b.StartTimer()
					d.Update(view, delta)
					list := d.Derive(view)
					store.Derive(list, Name)
					predictions += len(list)
				}
				all := float64(b.N * events)
				b.ReportMetric(float64(b.Elapsed())/all, "ns/event")
				b.ReportMetric(float64(predictions)/all, "predictions/event")
			})
		}
	}
}

// BenchmarkStart measures how long a cold or restored core takes to predict all.
func BenchmarkStart(b *testing.B) {
	store, _ := benchmarkStore(b, 2)
	for b.Loop() {
		New(2, store.View())
	}
}
