package incremental

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// auto must work with few members, labels, predictions or classes. Shares are a
// distribution, intervals contain them and lie between 0 and 1, and nothing is NaN. An
// interval has a width if its standard error is positive or its share was estimated.
func TestAutoWorksWithLittleData(t *testing.T) {
	labels := map[string]func(v int) bool{
		"none": func(int) bool { return false }, "all": func(int) bool { return true },
		"20": func(v int) bool { return v%15 == 0 }, "a half": func(v int) bool { return v%2 == 0 },
	}
	predictions := map[string]func(w *town, v int) []uint32{
		"all": (*town).predict,
		"hard": func(w *town, v int) []uint32 {
			soft := w.predict(v)
			units := make([]uint32, w.classes)
			units[slices.Index(soft, slices.Max(soft))] = event.One
			return units
		},
		"some": func(w *town, v int) []uint32 {
			if v%3 == 0 {
				return nil
			}
			return w.predict(v)
		},
		"none": func(*town, int) []uint32 { return nil },
	}
	estimates := 0
	for _, classes := range []int{2, 6, 50} {
		for many, labelled := range labels {
			for kind, predict := range predictions {
				for _, engine := range []string{EnginePrimal, EngineDual} {
					where := fmt.Sprintf(
						"%d classes, labels: %s, predictions: %s, %s", classes, many, kind, engine,
					)
					for _, e := range scarce(t, classes, engine, labelled, predict) {
						checkInterval(t, where, e)
						estimates++
					}
				}
			}
		}
	}
	if estimates < 3*4*4*2*4 {
		t.Errorf("only %d estimates", estimates)
	}
}

// scarce returns the estimates of auto for communities of one member, of two that are one
// vertex counted twice, of 30, and of everyone in a town of 300.
func scarce(
	t *testing.T, classes int, engine string, labelled func(v int) bool,
	predict func(w *town, v int) []uint32,
) []quant.Estimate {
	t.Helper()
	w := newTown(uint64(classes), classes, 300, 0)
	batch := w.start()
	batch.Labels, batch.Predictions = nil, nil
	for v := range w.vertices {
		if labelled(v) {
			batch.Labels = append(
				batch.Labels,
				event.Label{Vertex: w.id(v), Class: event.Class(w.class[v])},
			)
		}
		if units := predict(w, v); units != nil {
			batch.Predictions = append(
				batch.Predictions,
				event.Prediction{Vertex: w.id(v), Units: units},
			)
		}
		for name, size := range map[string]int{"one": 1, "thirty": 30, "everyone": w.vertices} {
			if v >= 7 && v < 7+size || size == w.vertices {
				batch.Members = append(
					batch.Members,
					event.Member{Community: name, Vertex: w.id(v), Multiplicity: 1},
				)
			}
		}
	}
	batch.Members = append(
		batch.Members,
		event.Member{Community: "twice", Vertex: w.id(7), Multiplicity: 2},
	)
	core := newCore(
		t,
		Config{Classes: classes, Engine: engine, Estimates: []quant.Options{{Method: quant.Auto}}},
	)
	defer core.Close()
	return core.Step(batch).Estimates
}

// checkInterval reports impossible intervals.
func checkInterval(t *testing.T, where string, e quant.Estimate) {
	t.Helper()
	sum := 0.0
	for i, x := range e.Prevalence {
		sum += x
		low, high, se := e.Low[i], e.High[i], e.SE[i]
		switch {
		case !(0 <= low && low <= x && x <= high && high <= 1 && se >= 0 && se <= 0.5):
			t.Fatalf(
				"%s: %s, class %d: %v in %v to %v, error %v", where, e.Community, i, x, low, high,
				se,
			)
		case !(high > low) && (se > 0 || e.Labelled < e.Members):
			t.Fatalf(
				"%s: %s, class %d: no width at %v, error %v, %v of %v labelled", where, e.Community,
				i, x, se, e.Labelled, e.Members,
			)
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Fatalf("%s: %s: shares sum to %v", where, e.Community, sum)
	}
}
