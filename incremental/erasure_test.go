package incremental

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// After an erasure two checkpoints must follow within two minutes of log time. A restored
// core must plan the same remaining checkpoints, whatever the schedule.
func TestErasuresBringTwoCheckpoints(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		want  string // seconds of the checkpoints; erasures are at 130 and 500
	}{
		{-1, "[180 240 540 600]"},
		{24 * time.Hour, "[180 240 540 600]"},
		{200 * time.Second, "[180 200 400 540 600 800]"}, // one of the two may be a usual one
		{50 * time.Second, "[50 100 150 200 250 300 350 400 450 500 550 600 650 700 750 800 850 " +
			"900]"},
	} {
		config := allMethods(2)
		config.CompactEvery = c.every
		core := newCore(t, config)
		var got []int
		for second := range 901 {
			b := &event.Batch{First: event.Position(second + 1), Last: event.Position(second + 1)}
			b.Time = event.Time(1_000_000*60*time.Second) + event.Time(second)*event.Time(
				time.Second,
			)
			if second == 130 || second == 500 {
				b.Vertices = []event.Vertex{{Vertex: event.ParseID("alice"), Erase: true}}
			}
			result := core.Step(b)
			if want := event.Position(131); second >= 500 && core.Erased() != 501 ||
				second >= 130 && second < 500 && core.Erased() != want {
				t.Fatalf("every %v: the last erasure at %d s is %d", c.every, second, core.Erased())
			}
			if !result.Compacted {
				continue
			}
			got = append(got, second)
			twin := restored(t, 0, core, config)
			if twin.erasures != core.erasures {
				t.Fatalf(
					"every %v: restored at %d s with %+v, saved with %+v", c.every, second,
					twin.erasures, core.erasures,
				)
			}
			core.Close()
			core = twin
		}
		core.Close()
		if fmt.Sprint(got) != c.want {
			t.Errorf("every %v: checkpoints at %v s, want %s", c.every, got, c.want)
		}
	}
}

// No section of a state may hold the name of an erased vertex, nor anything that was
// said of it, after a random history.
func TestErasedVertexLeavesNoTrace(t *testing.T) {
	const name, secret = "alice-the-erased", "something-secret"
	for seed := range uint64(20) {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true},
		)
		config := allMethods(stream.Config.Classes)
		config.Windows = windowsOf(seed)
		if seed%3 == 0 {
			config.Classifier = classifier.Name
		}
		core := newCore(t, config)
		id := event.ParseID(name)
		for i := range 16 {
			b := stream.Next()
			if i == 4 || i == 7 {
				units := make([]uint32, stream.Config.Classes)
				units[0] = event.One
				b.Edges = append(
					b.Edges,
					event.Edge{
						Src:      id,
						Dst:      event.NumberID(2),
						Weight:   1,
						TTL:      time.Hour,
						Position: b.Last,
					},
				)
				b.Labels = append(
					b.Labels,
					event.Label{Vertex: id, Class: 1, TTL: time.Hour, Position: b.Last},
				)
				b.Predictions = append(
					b.Predictions,
					event.Prediction{
						Vertex:   id,
						Units:    units,
						Version:  "m0",
						TTL:      time.Hour,
						Position: b.Last,
					},
				)
				b.Members = append(
					b.Members,
					event.Member{Community: "c0", Vertex: id, Multiplicity: 2, Position: b.Last},
				)
				b.Vertices = append(
					b.Vertices,
					event.Vertex{Vertex: id, Position: b.Last, Attributes: []event.Attribute{
						{Key: "language", Value: event.Value{Kind: event.StringValue, Text: "de"}},
						{Key: "mail", Value: event.Value{Kind: event.StringValue, Text: secret}},
					}},
				)
			}
			core.Step(b)
			if i == 8 && !holds(t, core, name) {
				t.Fatalf("seed %d: %s is not in the state before the erasure", seed, name)
			}
			if i == 10 {
				core.Step(&event.Batch{
					First: b.Last, Last: b.Last, Time: b.Time, Checkpoint: true,
					Vertices: []event.Vertex{{Vertex: id, Erase: true, Position: b.Last}},
				})
				if err := checkCore(core); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if i >= 10 && (holds(t, core, name) || holds(t, core, secret)) {
				t.Fatalf("seed %d batch %d: the state still holds %s or %s", seed, i, name, secret)
			}
		}
		core.Close()
	}
}

// holds reports whether some section of the state has the text.
func holds(t *testing.T, c *Core, text string) bool {
	t.Helper()
	sections, err := c.Sections()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(
		sections,
		func(s Section) bool { return bytes.Contains(s.Data, []byte(text)) },
	)
}
