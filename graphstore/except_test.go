package graphstore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// Labels and predictions of excepted vertices must not be read, whether their attributes come
// before, with or after them; all else about them stays, and other vertices are as without the
// rule. The twin keeps what is read in two maps.
func TestLabelsAndPredictionsOfExceptedVerticesAreNotRead(t *testing.T) {
	text := func(s string) event.Value { return event.Value{Kind: event.StringValue, Text: s} }
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := newTestStore(t, Config{
			Classes: 2, Evidence: EvidenceConfig{HalfLife: -1, Except: `kind in ["item", "url"]`},
		})
		labels, predictions := map[uint64]event.Class{}, map[uint64][]uint32{}
		kinds := map[uint64]string{}
		for step := range 60 {
			b := &event.Batch{Time: event.Time(step + 1)}
			id := func() event.ID { return event.ID{Number: r.Uint64N(12)} }
			if r.IntN(3) == 0 {
				v := id()
				kind := []string{"item", "url", "user", ""}[r.IntN(4)]
				value := text(kind)
				if kind == "" {
					value = event.Value{}
				}
				b.Vertices = append(b.Vertices, event.Vertex{
					Vertex: v, Attributes: []event.Attribute{{Key: "kind", Value: value}},
				})
				if kinds[v.Number] = kind; kind == "item" || kind == "url" {
					delete(labels, v.Number)
					delete(predictions, v.Number)
				}
			}
			read := func(v event.ID) bool {
				return kinds[v.Number] != "item" && kinds[v.Number] != "url"
			}
			if v := id(); r.IntN(2) == 0 {
				class := event.Class(r.IntN(2))
				b.Labels = append(b.Labels, event.Label{Vertex: v, Class: class})
				if read(v) {
					labels[v.Number] = class
				}
			}
			half := event.One / uint32(1+r.IntN(4))
			units := []uint32{half, event.One - half}
			if v := id(); r.IntN(2) == 0 {
				b.Predictions = append(b.Predictions, event.Prediction{Vertex: v, Units: units})
				if read(v) {
					predictions[v.Number] = units
				}
			} else if predictions[v.Number] == nil { // the first post is the prediction
				b.Posts = append(b.Posts, event.Post{Author: v, Units: units, Weight: 1})
				if read(v) {
					predictions[v.Number] = units
				}
			}
			if _, refused := s.Apply(b); len(refused) > 0 {
				t.Fatalf("seed %d: refused %v", seed, refused)
			}
			view := s.View()
			for number := range uint64(12) {
				v, known := view.Lookup(event.ID{Number: number})
				if !known {
					continue
				}
				want, labelled := labels[number]
				if !labelled {
					want = event.NoClass
				}
				if got := view.Label(v).Class; got != want {
					t.Fatalf("seed %d step %d: vertex %d has label %v, want %v",
						seed, step, number, got, want)
				}
				if got := view.Prediction(v); !slices.Equal(got, predictions[number]) {
					t.Fatalf("seed %d step %d: vertex %d has prediction %v, want %v",
						seed, step, number, got, predictions[number])
				}
			}
		}
	}
}

func TestARuleThatExceptsEveryVertexIsRefused(t *testing.T) {
	for rule, want := range map[string]string{
		`kind != "user"`:  "holds for vertices without attributes",
		`kind == "item"]`: "evidence.except: column 15",
	} {
		_, err := New(Config{Classes: 2, Evidence: EvidenceConfig{Except: rule}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
