package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gqlstream/ingest/event"
)

// Any events that a producer encodes as JSON must decode unchanged: singly, as an array,
// one a line, and without a content type.
func TestJSONGivesEventsBack(t *testing.T) {
	for kind := range event.Kind(event.Kinds) {
		t.Run(kind.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				k := rapid.IntRange(1, 5).Draw(t, "K")
				d, err := NewDecoder(event.ClassSet{Count: k})
				if err != nil {
					t.Fatal(err)
				}
				want := genBatch(kind, k)(t)
				events := jsonEvents(kind, want)
				for _, e := range events {
					if !json.Valid(e) {
						t.Fatalf("not JSON: %s", e)
					}
				}
				array := append(append([]byte{'['}, bytes.Join(events, []byte(", "))...), ']')
				lines := append(bytes.Join(events, []byte("\n")), '\n')
				var singly event.Batch
				for _, e := range events {
					mustDecode(t, d, Message{Kind: kind, ContentType: JSON, Payload: e}, &singly)
				}
				sameEvents(t, &singly, want)
				for _, m := range []Message{
					{Kind: kind, ContentType: JSON, Payload: array},
					{Kind: kind, ContentType: NDJSON, Payload: lines},
					{Kind: kind, ContentType: "application/json; charset=utf-8", Payload: array},
					{Kind: kind, Payload: array},
					{Kind: kind, Payload: lines},
					{Kind: kind, Payload: lines, Checksum: Checksum(lines), Schema: "1"},
				} {
					var got event.Batch
					mustDecode(t, d, m, &got)
					sameEvents(t, &got, want)
				}
			})
		})
	}
}

// mustDecode fails unless a message decodes without a refusal.
func mustDecode(t interface {
	Helper()
	Fatalf(string, ...any)
}, d *Decoder, m Message, b *event.Batch,
) {
	t.Helper()
	if err := d.Decode(m, b); err != nil {
		t.Fatalf("decode %q: %v", m.Payload, err)
	}
	if len(b.Refused) > 0 {
		t.Fatalf("decode %q: refused %+v", m.Payload, b.Refused)
	}
}

// Any events that a producer encodes as Arrow must decode unchanged, at any alignment of
// the payload in memory.
func TestArrowGivesEventsBack(t *testing.T) {
	for kind := range event.Kind(event.Kinds) {
		t.Run(kind.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				k := rapid.IntRange(1, 5).Draw(t, "K")
				d, err := NewDecoder(event.ClassSet{Count: k})
				if err != nil {
					t.Fatal(err)
				}
				want := genBatch(kind, k)(t)
				from := rapid.IntRange(0, want.Events()-1).Draw(t, "from")
				payload, err := encodeTable(kind, want, from, want.Events())
				if kind == event.KindVertex && err != nil {
					if !errors.Is(err, errNotTable) {
						t.Fatal(err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				drop(want, kind, from)
				shift := rapid.IntRange(0, 7).Draw(t, "shift")
				payload = append(make([]byte, shift), payload...)[shift:]
				var got event.Batch
				mustDecode(t, d, Message{Kind: kind, ContentType: Arrow, Payload: payload}, &got)
				sortAttributes(want)
				sortAttributes(&got)
				sameEvents(t, &got, want)
			})
		})
	}
}

// drop takes the first n events of a kind out of b.
func drop(b *event.Batch, kind event.Kind, n int) {
	switch kind {
	case event.KindEdge:
		b.Edges = b.Edges[n:]
	case event.KindLabel:
		b.Labels = b.Labels[n:]
	case event.KindPrediction:
		b.Predictions = b.Predictions[n:]
	case event.KindPost:
		b.Posts = b.Posts[n:]
	case event.KindMember:
		b.Members = b.Members[n:]
	case event.KindVertex:
		b.Vertices = b.Vertices[n:]
	case event.KindControl:
		b.Controls = b.Controls[n:]
	}
}

// sortAttributes gives the attributes of every event one order: a table has the
// order of its columns.
func sortAttributes(b *event.Batch) {
	for i := range b.Vertices {
		slices.SortFunc(
			b.Vertices[i].Attributes,
			func(x, y event.Attribute) int { return strings.Compare(x.Key, y.Key) },
		)
	}
}

// A batch that is reset and filled again gives the same events, and a decoder
// carries nothing from one message to the next.
func TestDecoderAndBatchAreReusable(t *testing.T) {
	d := newDecoder(t, 3)
	var b event.Batch
	for kind := range event.Kind(event.Kinds) {
		gen := rapid.Custom(genBatch(kind, 3))
		for seed := range 40 {
			want := gen.Example(seed)
			lines := bytes.Join(jsonEvents(kind, want), []byte("\n"))
			for range 2 {
				b.Reset()
				mustDecode(t, d, Message{Kind: kind, Payload: lines}, &b)
				sameEvents(t, &b, want)
			}
			if payload, err := encodeTable(kind, want, 0, want.Events()); err == nil {
				b.Reset()
				mustDecode(t, d, Message{Kind: kind, Payload: payload}, &b)
				sortAttributes(want)
				sortAttributes(&b)
				sameEvents(t, &b, want)
			}
		}
	}
}
