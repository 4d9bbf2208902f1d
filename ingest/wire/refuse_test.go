package wire

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// Where only some refusals of a message are kept, the rest must be counted with their places and
// reasons, and the events that are sound must be the same.
func TestRefusalsBeyondThoseKeptAreCounted(t *testing.T) {
	const most = 10
	lines := []string{
		`{"src":1,"dst":2}`, `{"src":3,"dst":4}`, `{}`, `{"src":5,"dst":5}`, `{"source":1}`,
		`{"src":"\u0061","dst":"\u0061"}`,
		`{"src":1,"dst":2,"weight":-1}`, `{"src":1,"dst":2,"time":"never"}`,
		`{"src":1,"dst":2,"ttl":"for ever"}`, `{"src":[1],"dst":2}`,
	}
	type refused struct {
		index  int
		reason event.Reason
	}
	d, err := NewDecoder(event.ClassSet{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		var text strings.Builder
		for range 300 {
			fmt.Fprintln(&text, lines[min(random.IntN(len(lines)), random.IntN(len(lines)))])
		}
		read := func(most int) (b event.Batch, all []refused) {
			for position := event.Position(1); position <= 2; position++ {
				m := Message{
					Kind:        event.KindEdge,
					ContentType: NDJSON,
					Payload:     []byte(text.String()),
					Position:    position,
					RefusalsMax: most,
				}
				if err := d.Decode(m, &b); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range b.Refused {
				for i := range 1 + r.More {
					all = append(all, refused{r.Index + i, r.Reason})
				}
			}
			return b, all
		}
		whole, wantRefused := read(0)
		short, gotRefused := read(most)
		if !slices.Equal(gotRefused, wantRefused) ||
			event.CountRefused(short.Refused) != len(whole.Refused) {
			t.Fatalf("seed %d: refused %v, want %v", seed, gotRefused, wantRefused)
		}
		if !slices.Equal(short.Edges, whole.Edges) ||
			!reflect.DeepEqual(short.Refused[:most-1], whole.Refused[:most-1]) {
			t.Fatalf("seed %d: other events, or other refusals that are kept", seed)
		}
		if n := slices.IndexFunc(short.Refused[most:],
			func(r event.Refusal) bool { return r.Original != nil }); n < 0 ||
			short.Refused[most+n].Position != 2 {
			t.Fatalf(
				"seed %d: refusal %d is kept as well, not the first of the second message",
				seed,
				most+n,
			)
		}
	}
}

// An event must have its place in its message, even if events before it were refused.
func TestAnEventKnowsItsPlaceInItsMessage(t *testing.T) {
	for name, m := range map[string]Message{
		"array": {Payload: []byte(`[{"src":1,"dst":1}, {"src":1,"dst":2}, {}, {"src":1,"dst":3}]`)},
		"lines": {Payload: []byte("{\"src\":1,\"dst\":1}\n{\"src\":1,\"dst\":2}\n{}\n{\"src\":1," +
			"\"dst\":3}")},
		"table": {Payload: arrowStream(t, []col{{"src", prims.Uint64}, {"dst", prims.Uint64}}, nil,
			nil,
			`[{"src":1,"dst":1},{"src":1,"dst":2}]`, `[{"src":1,"dst":1},{"src":1,"dst":3}]`)},
	} {
		var b event.Batch
		if err := newDecoder(t, 2).Decode(m, &b); err != nil {
			t.Fatal(err)
		}
		if len(b.Edges) != 2 || b.Edges[0].Index != 1 || b.Edges[1].Index != 3 {
			t.Errorf("%s: %+v", name, b.Edges)
		}
	}
}
