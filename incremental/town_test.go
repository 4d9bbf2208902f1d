package incremental

import (
	"fmt"
	"math/rand/v2"

	"gqlstream/ingest/event"
)

// town makes a random history of a network with neighbours of mostly one class: arrivals
// first, then edges, predictions, labels and members that come and go.
type town struct {
	rand     *rand.Rand
	classes  int
	vertices int
	groups   int // communities
	next     event.Position
	class    []int
}

func newTown(seed uint64, classes, vertices, groups int) *town {
	w := &town{
		rand:     rand.New(rand.NewPCG(seed, 77)),
		classes:  classes,
		vertices: vertices,
		groups:   groups,
		next:     1,
	}
	for range vertices {
		w.class = append(w.class, w.rand.IntN(classes))
	}
	return w
}

func (w *town) id(v int) event.ID { return event.NumberID(uint64(v)) }

// friend draws a neighbour for v, mostly of its class.
func (w *town) friend(v int) int {
	for {
		u := w.rand.IntN(w.vertices)
		if u != v && (w.class[u] == w.class[v] || w.rand.IntN(2*w.classes) == 0) {
			return u
		}
	}
}

// predict returns a probability vector that is right three times out of four.
func (w *town) predict(v int) []uint32 {
	k := w.class[v]
	if w.rand.IntN(4) == 0 {
		k = w.rand.IntN(w.classes)
	}
	units := make([]uint32, w.classes)
	rest := uint32(event.One)
	for i := range units {
		units[i] = w.rand.Uint32N(event.One / uint32(2*w.classes))
		rest -= units[i]
	}
	units[k] += rest
	return units
}

func (w *town) member(b *event.Batch, group int, times uint32) {
	for {
		v := w.rand.IntN(w.vertices)
		if w.class[v]%(1+group%3) == 0 || w.rand.IntN(4) == 0 {
			b.Members = append(
				b.Members,
				event.Member{
					Community:    fmt.Sprint("g", group),
					Vertex:       w.id(v),
					Multiplicity: times,
				},
			)
			return
		}
	}
}

// Next makes the next batch of the history.
func (w *town) Next() *event.Batch {
	if w.next == 1 {
		return w.start()
	}
	return w.step()
}

// start brings everybody.
func (w *town) start() *event.Batch {
	b := &event.Batch{First: w.next, Last: w.next, Time: event.Time(w.next) * 1e8, Emit: true}
	w.next++
	for v := range w.vertices {
		for range 4 {
			b.Edges = append(b.Edges, event.Edge{Src: w.id(v), Dst: w.id(w.friend(v)), Weight: 1})
		}
		b.Predictions = append(
			b.Predictions,
			event.Prediction{Vertex: w.id(v), Units: w.predict(v), Version: "m"},
		)
		if w.rand.IntN(8) == 0 {
			b.Labels = append(
				b.Labels,
				event.Label{Vertex: w.id(v), Class: event.Class(w.class[v])},
			)
		}
	}
	for g := range w.groups {
		for range 60 {
			w.member(b, g, 1)
		}
	}
	return b
}

// step changes a little of everything.
func (w *town) step() *event.Batch {
	b := &event.Batch{
		First: w.next,
		Last:  w.next,
		Time:  event.Time(w.next) * 1e8,
		Emit:  w.next%3 == 0,
	}
	w.next++
	for range 30 {
		v := w.rand.IntN(w.vertices)
		b.Edges = append(
			b.Edges,
			event.Edge{
				Src:    w.id(v),
				Dst:    w.id(w.friend(v)),
				Weight: 1,
				Remove: w.rand.IntN(2) == 0,
			},
		)
	}
	for range 5 {
		v := w.rand.IntN(w.vertices)
		b.Predictions = append(
			b.Predictions,
			event.Prediction{Vertex: w.id(v), Units: w.predict(v), Version: "m"},
		)
	}
	v := w.rand.IntN(w.vertices)
	b.Labels = append(b.Labels, event.Label{Vertex: w.id(v), Class: event.Class(w.class[v])})
	w.member(b, w.rand.IntN(w.groups), w.rand.Uint32N(2))
	return b
}
