package incremental

import (
	"math"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Moved and revised must sum to the change since the record before, bit for bit but for rounding, in
// random histories of every method; and where only labels come, nothing has moved.
func TestRecordsDivideTheirChange(t *testing.T) {
	divided, revised := 0, 0
	for seed := range uint64(12) {
		stream, classes := historyOf(seed)
		config := allMethods(classes)
		config.Emit = Emit{Threshold: 0.01, AtLeastEvery: time.Second}
		core := newCore(t, config)
		type key struct{ community, method string }
		last := map[key]quant.Estimate{}
		for range 25 {
			for _, e := range core.Step(stream.Next()).Estimates {
				if e.Suppressed {
					continue
				}
				at := key{e.Community, e.Method}
				if before, known := last[at]; known && len(e.Moved) > 0 {
					divided++
					for i, q := range e.Prevalence {
						change := q - before.Prevalence[i]
						if off := math.Abs(e.Moved[i] + e.Revised[i] - change); off > 1e-12 {
							t.Fatalf("seed %d: %v class %d: moved %v and revised %v, changed by %v",
								seed, at, i, e.Moved[i], e.Revised[i], change)
						}
						if e.Revised[i] != 0 {
							revised++
						}
					}
				}
				last[at] = e
			}
		}
		core.Close()
	}
	if divided < 100 || revised == 0 {
		t.Errorf("%d records divided their change, %d shares were revised", divided, revised)
	}
}

// Members who change their predictions must move a community, and a hundred labels at once, which
// teach auto that predictions say nothing, must revise it: they move it only as far as neighbours
// of a label have another posterior.
func TestLabelsReviseAndPredictionsMove(t *testing.T) {
	core := newCore(t, Config{Classes: 2, Emit: Emit{Threshold: 0.01, AtLeastEvery: time.Second}})
	defer core.Close()
	log := newTown(7, 2, 600, 6)
	for i := range 12 {
		b := log.step
		if i == 0 {
			b = log.start
		}
		core.Step(b())
	}
	view, at := core.View(), log.next
	largest := func(b *event.Batch) (moved, revised float64) {
		b.First, b.Last, b.Time, b.Emit, b.EmitAll = at, at, core.time+2e9, true, true
		at++
		for _, e := range core.Step(b).Estimates {
			for i := range e.Moved {
				moved = max(moved, math.Abs(e.Moved[i]))
				revised = max(revised, math.Abs(e.Revised[i]))
			}
		}
		return moved, revised
	}
	news, lessons := &event.Batch{}, &event.Batch{}
	for v := range graphstore.Vertex(500) {
		switch label := view.Label(v).Class; {
		case label == event.NoClass && v%5 == 0:
			lessons.Labels = append(lessons.Labels,
				event.Label{Vertex: view.ID(v), Class: event.Class(v / 5 % 2)})
		case label == event.NoClass && v < 300:
			news.Predictions = append(news.Predictions, event.Prediction{
				Vertex: view.ID(v), Version: view.Versions()[view.Version(v)],
				Units: []uint32{event.One / 20, event.One - event.One/20},
			})
		}
	}
	if moved, _ := largest(news); moved < 0.05 {
		t.Errorf("most people say something else, and no share moved by more than %v", moved)
	}
	if moved, revised := largest(lessons); moved > revised/3 || revised < 0.05 {
		t.Errorf("labels moved a share by %v and revised one by %v", moved, revised)
	}
}
