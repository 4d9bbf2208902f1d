//go:build !race

package incremental

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// farFromLabels makes a history in which walks from most members meet no label, or hardly
// any. The graph begins without edges, as a log of retweets does; or it has islands, few of
// them with labels; or groups in a row, and only the first has labels.
type farFromLabels struct {
	rand                     *rand.Rand
	shape                    string
	classes, vertices, steps int
}

func (w *farFromLabels) Next() *event.Batch {
	w.steps++
	first := event.Position(w.steps)
	b := &event.Batch{First: first, Last: first, Time: event.Time(w.steps) * 1e8, Emit: true}
	if w.steps == 1 {
		for v := range w.vertices {
			w.arrive(b, v)
		}
		if w.shape != "dust" {
			for range 4 * w.vertices {
				w.edge(b)
			}
		}
		return b
	}
	for range map[bool]int{true: 4, false: 40}[w.shape == "dust"] {
		w.edge(b)
	}
	return b
}

// part returns the island or group of a vertex.
func (w *farFromLabels) part(v int) int { return v * 10 / w.vertices }

func (w *farFromLabels) arrive(b *event.Batch, v int) {
	units, class := make([]uint32, w.classes), w.rand.IntN(w.classes)
	guess := class
	if w.rand.IntN(3) == 0 {
		guess = w.rand.IntN(w.classes)
	}
	for i := range units {
		units[i] = event.One / uint32(2*w.classes)
	}
	units[guess] += event.One - uint32(w.classes)*(event.One/uint32(2*w.classes))
	b.Predictions = append(
		b.Predictions,
		event.Prediction{Vertex: event.NumberID(uint64(v)), Units: units},
	)
	labelled := w.rand.IntN(20) == 0
	switch w.shape {
	case "islands":
		labelled = w.part(v) < 4 && w.rand.IntN(8) == 0
	case "row":
		labelled = w.part(v) == 0 && w.rand.IntN(2) == 0
	}
	if labelled {
		b.Labels = append(
			b.Labels,
			event.Label{Vertex: event.NumberID(uint64(v)), Class: event.Class(class)},
		)
	}
	group := v % 7
	if w.shape == "row" {
		group = min(w.part(v), 6)
	}
	b.Members = append(
		b.Members,
		event.Member{
			Community:    fmt.Sprint("c", group),
			Vertex:       event.NumberID(uint64(v)),
			Multiplicity: 1,
		},
	)
}

// edge adds an edge, or removes one in one case of five.
func (w *farFromLabels) edge(b *event.Batch) {
	for {
		u, v := w.rand.IntN(w.vertices), w.rand.IntN(w.vertices)
		switch w.shape {
		case "islands":
			if w.part(u) != w.part(v) {
				continue
			}
		case "row":
			if d := w.part(u) - w.part(v); d < -1 || d > 1 || d != 0 && w.rand.IntN(20) > 0 {
				continue
			}
		}
		if u != v {
			b.Edges = append(
				b.Edges,
				event.Edge{
					Src:    event.NumberID(uint64(u)),
					Dst:    event.NumberID(uint64(v)),
					Weight: 1,
				},
			)
			return
		}
	}
}

// Where labels are far from the members, shares must be those of exact fields all the same.
func TestErrorsAreSmallFarFromLabels(t *testing.T) {
	for _, engine := range []string{EnginePrimal, EngineDual} {
		for _, shape := range []string{"dust", "islands", "row"} {
			for _, classes := range []int{2, 10} {
				apart := map[string][]float64{}
				w := &farFromLabels{
					rand:     rand.New(rand.NewPCG(3, uint64(classes))),
					shape:    shape,
					classes:  classes,
					vertices: 2000,
				}
				errorsOfShares(t, apart, engine, classes, []quant.Method{quant.Auto}, 26, w.Next)
				agreeWithin(
					t, fmt.Sprintf("%s, %s, %d classes", engine, shape, classes),
					apart[string(quant.Auto)], 0.05,
				)
			}
		}
	}
}
