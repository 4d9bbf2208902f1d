package graphstore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// A label and a prediction must end when the log's time reaches their time plus
// their time to live, or the window, and the last assertion alone must decide when.
func TestLabelsAndPredictionsEnd(t *testing.T) {
	s := newTestStore(t, Config{Windows: Windows{Labels: 50}})
	one, two := []uint32{event.One, 0, 0}, []uint32{0, event.One, 0}
	label := func(v uint64, class event.Class, from event.Time, ttl time.Duration) event.Label {
		return event.Label{Vertex: number(v), Class: class, Time: from, TTL: ttl}
	}
	says := func(v uint64, units []uint32, from event.Time, ttl time.Duration) event.Prediction {
		return event.Prediction{Vertex: number(v), Units: units, Version: "m", Time: from, TTL: ttl}
	}
	for i, step := range []struct {
		now         event.Time
		labels      []event.Label
		predictions []event.Prediction
		want        string
	}{
		{
			100,
			[]event.Label{label(1, 1, 100, 10), label(2, 2, 100, 0)},
			[]event.Prediction{says(1, one, 100, 10), says(2, one, 100, 0)},
			"0:-1>1 1:-1>2 0+ 1+",
		},
		// renewed
		{
			105,
			[]event.Label{label(1, 0, 105, 10)},
			[]event.Prediction{says(1, two, 105, 10)},
			"0:1>0 0~",
		},
		{110, nil, nil, ""}, // the ends of the first assertions
		// due and asserted again in one step
		{115, []event.Label{label(1, 0, 115, 5)}, nil, "0:0>0 0-"},
		{120, []event.Label{label(1, 2, 100, 5)}, nil, "0:0>-1"}, // over before it came
		{121, []event.Label{label(1, 2, 121, 1), label(1, 2, 121, 90)}, nil, "0:-1>2"},
		{150, nil, nil, "1:2>-1"},
		{151, []event.Label{label(2, 1, 0, 0)}, []event.Prediction{says(2, one, 151, 9)}, "1:-1>1"},
		{160, nil, nil, "1-"},
		{201, nil, nil, "1:1>-1"}, // the window, from when it came
		{211, nil, nil, "0:2>-1"},
	} {
		delta, _ := s.Apply(
			&event.Batch{Labels: step.labels, Predictions: step.predictions, Time: step.now},
		)
		var changes []string
		for _, c := range delta.Labels {
			changes = append(changes, fmt.Sprint(c.V, ":", c.Before.Class, ">", c.After.Class))
		}
		for _, c := range delta.Predictions {
			how := map[[2]bool]string{{false, true}: "+", {true, false}: "-", {true, true}: "~"}
			changes = append(
				changes,
				fmt.Sprint(c.V, how[[2]bool{c.Before != nil, c.After != nil}]),
			)
		}
		if got := strings.Join(changes, " "); got != step.want {
			t.Errorf("step %d at %d: %q, want %q", i, int64(step.now), got, step.want)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Predictions of a built-in classifier must not end by a window. An ended label or
// prediction must leave no trace in the queues.
func TestDerivedPredictionsDoNotEnd(t *testing.T) {
	s := newTestStore(t, Config{Windows: Windows{Predictions: 10}})
	one := []uint32{event.One, 0, 0}
	s.Apply(
		&event.Batch{
			Time:        1,
			Edges:       []event.Edge{link(1, 2, 1)},
			Predictions: []event.Prediction{{Vertex: number(1), Units: one, Version: "m", Time: 1}},
		},
	)
	s.Derive([]Derived{{V: 1, Units: one}}, "enq")
	s.Apply(&event.Batch{Time: 100})
	if w := s.View(); w.Prediction(0) != nil || w.Prediction(1) == nil {
		t.Fatalf(
			"predictions %v and %v, want the derived one alone",
			w.Prediction(0),
			w.Prediction(1),
		)
	}
	if x := s.labelling.predictionEnds; len(x.at)+len(x.heap) > 0 {
		t.Fatalf("something is to end: %+v", x)
	}
}

// windowed makes the batches of a graph of constant size. Its edges, labels and predictions
// come and go by windows.
type windowed struct {
	rng   *rand.Rand
	batch event.Batch
	units []uint32
}

func (g *windowed) next(vertices, events int) *event.Batch {
	b := &g.batch
	b.Edges, b.Labels, b.Predictions = b.Edges[:0], b.Labels[:0], b.Predictions[:0]
	b.Time++
	for range events {
		u := g.rng.Uint64N(uint64(vertices))
		b.Edges = append(
			b.Edges,
			event.Edge{
				Src:    number(u),
				Dst:    number((u + 1 + g.rng.Uint64N(9)) % uint64(vertices)),
				Weight: 1,
				Time:   b.Time,
			},
		)
		if g.rng.IntN(4) == 0 {
			b.Labels = append(b.Labels, event.Label{Vertex: number(u), Time: b.Time})
			b.Predictions = append(
				b.Predictions,
				event.Prediction{Vertex: number(u), Units: g.units, Time: b.Time},
			)
		}
	}
	return b
}

// Windows must not allocate for each event once the graph has its size.
func TestWindowsDoNotAllocateInSteadyState(t *testing.T) {
	s := newTestStore(t, Config{Windows: Windows{Edges: 40, Labels: 30, Predictions: 20}})
	g := &windowed{rng: rand.New(rand.NewPCG(1, 2)), units: []uint32{event.One, 0, 0}}
	const vertices, events = 3000, 200
	ended := 0
	step := func() {
		delta, _ := s.Apply(g.next(vertices, events))
		for _, e := range delta.Edges {
			if e.After == 0 {
				ended++
			}
		}
	}
	for range 2000 {
		step()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ended = 0
	const steps = 2000
	for range steps {
		step()
	}
	runtime.ReadMemStats(&after)
	if ended < steps*events/2 {
		t.Fatalf("only %d edges ended", ended)
	}
	if n := after.Mallocs - before.Mallocs; n > steps/10 {
		t.Fatalf("%d allocations for %d events", n, steps*events)
	}
}

// BenchmarkWindows applies edges that end by a window, and without one, and reports
// the memory of an edge.
func BenchmarkWindows(b *testing.B) {
	for _, window := range []time.Duration{0, 1 << 40} {
		b.Run(fmt.Sprintf("window=%t", window > 0), func(b *testing.B) {
			const vertices, edges = 100_000, 1_000_000
			for range b.N {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				s, err := New(Config{Classes: 2, Windows: Windows{Edges: window}})
				if err != nil {
					b.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(3, 4))
				batch := event.Batch{Time: 1}
				for range edges / 1000 {
					batch.Edges = batch.Edges[:0]
					for range 1000 {
						batch.Edges = append(
							batch.Edges,
							event.Edge{
								Src:    number(rng.Uint64N(vertices)),
								Dst:    number(vertices + rng.Uint64N(vertices)),
								Weight: 1,
								Time:   batch.Time,
							},
						)
					}
					batch.Time++
					s.Apply(&batch)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(
					float64(after.HeapAlloc-before.HeapAlloc)/float64(s.View().Edges()),
					"B/edge",
				)
				s.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/edges, "ns/edge")
		})
	}
}

// After a leap of the broker's clock, log time stands still and assertions expire by the broker's
// clock. An assertion that arrives meanwhile, with a time of its own or without, must be kept for
// its window and expire when the window is over.
func TestNothingEndsWhileLogTimeStands(t *testing.T) {
	t.Run("times of their own", func(t *testing.T) { nothingEndsWhileLogTimeStands(t, true) })
	t.Run("times of receipt", func(t *testing.T) { nothingEndsWhileLogTimeStands(t, false) })
}

func nothingEndsWhileLogTimeStands(t *testing.T, own bool) {
	const hour = event.Time(time.Hour)
	window := 12 * time.Hour
	s := newTestStore(
		t,
		Config{Windows: Windows{Edges: window, Labels: window, Predictions: window}},
	)
	says := func(v uint64, at event.Time) *event.Batch {
		return &event.Batch{
			Edges:  []event.Edge{{Src: number(v), Dst: number(v + 1), Weight: 1, Time: at}},
			Labels: []event.Label{{Vertex: number(v), Class: 1, Time: at}},
			Predictions: []event.Prediction{
				{Vertex: number(v), Units: []uint32{event.One, 0, 0}, Version: "m", Time: at},
			},
			Posts: []event.Post{
				{
					Author:  number(v + 50),
					Weight:  1,
					Units:   []uint32{event.One, 0, 0},
					Version: "m",
					Time:    at,
				},
			},
		}
	}
	apply := func(b *event.Batch, now, clock event.Time) (edges, labels int) {
		b.Time, b.EndsBy = now, clock
		s.Apply(b)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		w := s.View()
		for v := range Vertex(w.Vertices()) {
			if w.Label(v).Class != event.NoClass {
				labels++
			}
		}
		return w.Edges(), labels
	}
	for i, c := range []struct {
		say        uint64
		now, clock event.Time
		want       int
	}{
		{1, 100 * hour, 0, 1},
		{3, 124 * hour, 0, 0}, // a leap by a day; the message says the right time, 100
		{5, 124 * hour, 100 * hour, 1},
		{7, 124 * hour, 101 * hour, 2},
		{0, 124 * hour, 112 * hour, 1},
		{0, 124 * hour, 113 * hour, 0},
		{9, 125 * hour, 0, 1}, // caught up
	} {
		b := &event.Batch{}
		if c.say > 0 {
			right := c.clock
			if right == 0 || !own {
				right = c.now // as the decoder gives events without a time
			}
			if i == 1 {
				right = 100 * hour
			}
			b = says(c.say, right)
		}
		if edges, labels := apply(b, c.now, c.clock); edges != c.want || labels != c.want {
			t.Errorf("step %d: %d edges and %d labels, want %d", i, edges, labels, c.want)
		}
	}
}

// What comes without a time before the log's time is known must not end as soon as it is: windows
// count from a time, and there is none. A time to live of its own does.
func TestWindowsDoNotEndWhatCameBeforeLogTime(t *testing.T) {
	s := newTestStore(t, Config{Windows: Windows{Edges: 50, Labels: 50, Predictions: 50}})
	one := []uint32{event.One, 0, 0}
	s.Apply(&event.Batch{
		Edges: []event.Edge{
			{Src: number(1), Dst: number(2), Weight: 1},
			{Src: number(1), Dst: number(3), Weight: 1, TTL: 50},
		},
		Labels:      []event.Label{{Vertex: number(1), Class: 1}},
		Predictions: []event.Prediction{{Vertex: number(2), Units: one, Version: "m"}},
		Posts: []event.Post{
			{
				Author: number(4), Units: one, Version: "m",
				ReplyTo: to(5), Weight: 1,
			},
		},
	})
	for _, now := range []event.Time{1e18, 2e18} {
		s.Apply(&event.Batch{
			Time: now, Edges: []event.Edge{{Src: number(2), Dst: number(3), Weight: 1, Time: now}},
		})
		v := s.View()
		if v.Edges() != 3 { // 1-2, 4-5 and the new one
			t.Errorf("at %d: %d edges, want 3", now, v.Edges())
		}
		if v.Label(0).Class != 1 || v.Prediction(1) == nil || v.Prediction(3) == nil {
			t.Errorf("at %d: label %v, predictions %v, %v", now, v.Label(0), v.Prediction(1),
				v.Prediction(3))
		}
	}
	s.Apply(&event.Batch{Time: 2e18 + 50})
	if n := s.View().Edges(); n != 2 {
		t.Errorf("%d edges, want 2: the window ends an edge with a time", n)
	}
}
