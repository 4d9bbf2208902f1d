package pairs

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// BenchmarkPairs measures the bytes a label for an open pair and for a frozen pair, and the time of
// a step that predicts one labelled vertex again. An open pair reads the graph. A pair is frozen
// once another prediction has followed. Half of the vertices have a label; a vertex has ten
// neighbours on average.
func BenchmarkPairs(b *testing.B) {
	for _, classes := range []int{2, 10} {
		for _, labels := range []int{3_000, 100_000} {
			b.Run(fmt.Sprintf("classes=%d/labels=%d", classes, labels), func(b *testing.B) {
				without := newLabelled(b, classes, labels)
				openBefore, frozenBefore := without.grow(nil)
				without.store.Release()
				w := newLabelled(b, classes, labels)
				defer w.store.Release()
				open, frozen := w.grow(New(classes, false))
				for b.Loop() {
					w.predictAgain()
				}
				b.ReportMetric((open-openBefore)/float64(labels), "B/open-label")
				b.ReportMetric((frozen-frozenBefore)/float64(labels), "B/frozen-label")
			})
		}
	}
}

// labelled is a graph with labels and predictions of its vertices.
type labelled struct {
	store           *graphstore.Store
	sums            *neighborhood.Sums
	pairs           *Pairs // nil: none
	random          *rand.Rand
	classes, labels int
	position        event.Position
}

func newLabelled(b *testing.B, classes, labels int) *labelled {
	store, err := graphstore.New(graphstore.Config{Classes: classes})
	if err != nil {
		b.Fatal(err)
	}
	return &labelled{
		store: store, sums: neighborhood.New(classes, false), random: rand.New(rand.NewPCG(1, 2)),
		classes: classes, labels: labels,
	}
}

// grow lets the graph come, then the labels, then another prediction of each of them. It returns
// the bytes in use after the labels and at the end.
func (w *labelled) grow(pairs *Pairs) (open, frozen float64) {
	w.pairs = pairs
	var graph, said, followed event.Batch
	for v := range 2 * w.labels {
		graph.Predictions = append(graph.Predictions, w.prediction(v))
		for range 5 {
			graph.Edges = append(graph.Edges, event.Edge{
				Src: event.NumberID(
					uint64(v),
				), Dst: event.NumberID(uint64(w.random.IntN(2 * w.labels))), Weight: 1,
			})
		}
		if v < w.labels {
			class := event.Class(w.random.IntN(w.classes))
			said.Labels = append(
				said.Labels,
				event.Label{Vertex: event.NumberID(uint64(v)), Class: class},
			)
			followed.Predictions = append(followed.Predictions, w.prediction(v))
		}
	}
	w.step(&graph)
	w.step(&said)
	open = heap()
	w.step(&followed)
	frozen = heap()
	runtime.KeepAlive([]*event.Batch{&graph, &said, &followed})
	return open, frozen
}

func (w *labelled) predictAgain() {
	w.step(&event.Batch{Predictions: []event.Prediction{w.prediction(w.random.IntN(w.labels))}})
}

func (w *labelled) prediction(v int) event.Prediction {
	units := make([]uint32, w.classes)
	units[0] = uint32(w.random.IntN(event.One))
	units[1] = event.One - units[0]
	return event.Prediction{Vertex: event.NumberID(uint64(v)), Units: units}
}

func (w *labelled) step(b *event.Batch) {
	w.position++
	b.First, b.Last, b.Time = w.position, w.position, event.Time(w.position)*1e9
	delta, _ := w.store.Apply(b)
	w.sums.Update(w.store.View(), delta)
	if w.pairs != nil {
		w.pairs.Update(w.store.View(), delta, w.sums)
	}
}

// heap returns the bytes in use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
