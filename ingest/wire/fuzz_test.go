package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"pgregory.net/rapid"

	"gqlstream/ingest/event"
)

// fuzzClasses is K of the fuzz targets.
const fuzzClasses = 3

// checkDecoded decodes a message and checks the promises: no panic, no event of a message
// that is refused whole, only valid events, and accepted events survive another round trip.
func checkDecoded(t *testing.T, d *Decoder, m Message) *event.Batch {
	t.Helper()
	before := bytes.Clone(m.Payload)
	b := &event.Batch{}
	err := d.Decode(m, b)
	if !bytes.Equal(before, m.Payload) {
		t.Fatalf("the payload was changed")
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrMalformed):
		if b.Events() != 0 || len(b.Refused) != 1 || b.Refused[0].Index != -1 {
			t.Fatalf("%v, but the batch holds %+v", err, b)
		}
	default:
		t.Fatalf("error of no kind: %v", err)
	}
	for _, r := range b.Refused {
		if r.Reason == "" || r.Detail == "" || !utf8.ValidString(r.Detail) || len(r.Detail) > 4096 {
			t.Fatalf("refusal %+v", r)
		}
		if err == nil && !json.Valid(r.Original) {
			t.Fatalf("original of a refused event is not JSON: %q", r.Original)
		}
	}
	checkSound(t, b, d.k)
	checkAgain(t, d, m, b)
	return b
}

// checkSound holds every event against the invariants of its type.
func checkSound(t *testing.T, b *event.Batch, k int) {
	t.Helper()
	sound := func(ok bool, what string, e any) {
		if !ok {
			t.Fatalf("%s: %+v", what, e)
		}
	}
	name := func(s string) bool {
		return len(s) > 0 && len(s) <= event.IDBytesLimit &&
			utf8.ValidString(s)
	}
	id := func(v event.ID) bool { return event.ParseID(v.String()) == v && name(v.String()) }
	at := func(v event.Time) bool { return v >= -event.TimeMax && v <= event.TimeMax }
	for _, e := range b.Edges {
		sound(id(e.Src) && id(e.Dst) && e.Src != e.Dst, "ids", e)
		sound(at(e.Time) && e.TTL >= 0 && int64(e.TTL) <= int64(event.TimeMax), "time", e)
		if e.Remove {
			sound(e.Weight == 0 && e.TTL == 0, "removal", e)
		} else {
			sound(e.Weight > 0 && e.Weight <= event.WeightMax &&
				event.RoundWeight(e.Weight) == e.Weight, "weight", e)
		}
	}
	for _, e := range b.Labels {
		sound(
			id(e.Vertex) && at(e.Time) && e.Class >= event.NoClass && int(e.Class) < k &&
				e.Role <= event.Audit,
			"label",
			e,
		)
		sound(
			(e.Pi == 0) == (e.Role != event.Audit) && (e.Pi == 0 || e.Pi >= event.PiMin) &&
				e.Pi <= event.One,
			"pi",
			e,
		)
		sound(e.Role != event.Audit || e.Class != event.NoClass, "audit", e)
		sound(
			e.TTL >= 0 && int64(e.TTL) <= int64(event.TimeMax) &&
				(e.TTL == 0 || e.Class != event.NoClass),
			"label's ttl",
			e,
		)
	}
	for _, e := range b.Predictions {
		sum := uint64(0)
		for _, u := range e.Units {
			sum += uint64(u)
		}
		sound(id(e.Vertex) && at(e.Time) && len(e.Units) == k && sum == event.One, "prediction", e)
		sound(e.Version == "" || name(e.Version), "version", e)
		sound(e.TTL >= 0 && int64(e.TTL) <= int64(event.TimeMax), "prediction's ttl", e)
	}
	for _, e := range b.Members {
		sound(id(e.Vertex) && at(e.Time) && name(e.Community), "member", e)
	}
	for _, e := range b.Vertices {
		sound(
			id(e.Vertex) && at(e.Time) && len(e.Attributes) <= event.AttributesPerEventMax,
			"vertex",
			e,
		)
		sound(!e.Erase || len(e.Attributes) == 0, "erasure", e)
		seen := map[string]bool{}
		for _, a := range e.Attributes {
			sound(name(a.Key) && !seen[a.Key] && utf8.ValidString(a.Value.Text), "attribute", e)
			sound(!math.IsNaN(a.Value.Number) && !math.IsInf(a.Value.Number, 0), "attribute", e)
			sound(len(a.Value.Text) <= event.AttributeTextBytesMax, "attribute", e)
			seen[a.Key] = true
		}
	}
	for _, e := range b.Controls {
		sound(
			at(e.Time) && e.Op <= event.Note && (e.Op == event.Configure) == (e.Config != nil) &&
				(e.Op == event.Note) == (e.Text != ""),
			"control",
			e,
		)
		sound(e.Config == nil || json.Valid(e.Config), "config", e)
	}
}

// checkAgain encodes the events and decodes them again.
func checkAgain(t *testing.T, d *Decoder, m Message, b *event.Batch) {
	t.Helper()
	if b.Events() == 0 {
		return
	}
	var again event.Batch
	lines := bytes.Join(jsonEvents(m.Kind, b), []byte("\n"))
	if len(lines) > event.MessageBytesMax {
		return
	}
	mustDecode(
		t,
		d,
		Message{
			Kind:        m.Kind,
			ContentType: NDJSON,
			Payload:     singleLines(m.Kind, b, lines),
			Position:    m.Position,
		},
		&again,
	)
	again.Refused = b.Refused
	for i := range b.Controls { // white space was taken out
		b.Controls[i].Config = again.Controls[i].Config
	}
	sameEvents(t, &again, b)
}

// singleLines returns lines, with each configuration on one line.
func singleLines(kind event.Kind, b *event.Batch, lines []byte) []byte {
	if kind != event.KindControl {
		return lines
	}
	var out bytes.Buffer
	for _, e := range jsonEvents(kind, b) {
		if err := json.Compact(&out, e); err != nil {
			return lines
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// seedMessages calls add with events of every kind, encoded.
func seedMessages(
	encode func(kind event.Kind, b *event.Batch) []byte,
	add func(kind event.Kind, payload []byte),
) {
	for kind := range event.Kind(event.Kinds) {
		gen := rapid.Custom(genBatch(kind, fuzzClasses))
		for seed := range 8 {
			if payload := encode(kind, gen.Example(seed)); payload != nil {
				add(kind, payload)
			}
		}
	}
}

func FuzzDecodeJSON(f *testing.F) {
	seedMessages(func(kind event.Kind, b *event.Batch) []byte {
		return append(append([]byte{'['}, bytes.Join(jsonEvents(kind, b), []byte(","))...), ']')
	}, func(kind event.Kind, payload []byte) { f.Add(byte(kind), payload) })
	for _, c := range badJSON {
		if len(c.payload) < 1000 {
			f.Add(byte(c.kind), []byte(c.payload))
		}
	}
	d := newDecoder(f, fuzzClasses)
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		m := Message{
			Kind:        event.Kind(kind % byte(event.Kinds)),
			ContentType: JSON,
			Payload:     payload,
			Position:    3,
		}
		var b event.Batch
		if err := d.Decode(m, &b); err == nil && !json.Valid(payload) {
			t.Fatalf("accepted what is not JSON: %q", payload)
		}
		checkDecoded(t, d, m)
	})
}

func FuzzDecodeNDJSON(f *testing.F) {
	seedMessages(func(kind event.Kind, b *event.Batch) []byte {
		return bytes.Join(jsonEvents(kind, b), []byte("\n"))
	}, func(kind event.Kind, payload []byte) { f.Add(byte(kind), payload) })
	for _, c := range badJSON {
		if len(c.payload) < 1000 {
			f.Add(byte(c.kind), []byte(c.payload+"\n"+c.payload))
		}
	}
	d := newDecoder(f, fuzzClasses)
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		m := Message{
			Kind:        event.Kind(kind % byte(event.Kinds)),
			ContentType: NDJSON,
			Payload:     payload,
			Position:    3,
		}
		b := checkDecoded(t, d, m)
		if len(b.Refused) > 0 && b.Refused[0].Index < 0 {
			return
		}
		for line := range strings.Lines(string(payload)) {
			if line = strings.Trim(line, " \t\r\n"); line != "" && !json.Valid([]byte(line)) {
				t.Fatalf("accepted a line that is not JSON: %q", line)
			}
		}
	})
}

func FuzzDecodeArrow(f *testing.F) {
	seedMessages(func(kind event.Kind, b *event.Batch) []byte {
		payload, err := encodeTable(kind, b, 0, b.Events())
		if err != nil {
			return nil
		}
		return payload
	}, func(kind event.Kind, payload []byte) { f.Add(byte(kind), payload) })
	for _, s := range arrowSeeds(f) {
		f.Add(byte(s.Kind), s.Payload)
	}
	d := newDecoder(f, fuzzClasses)
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		checkDecoded(
			t,
			d,
			Message{
				Kind:        event.Kind(kind % byte(event.Kinds)),
				ContentType: Arrow,
				Payload:     payload,
				Position:    3,
			},
		)
	})
}

// arrowSeeds are streams with everything that the decoder reads: dictionaries,
// views, lists, nulls, several batches.
func arrowSeeds(t testing.TB) []Message {
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	boolean := arrow.FixedWidthTypes.Boolean
	seed := func(kind event.Kind, columns []col, batches ...string) Message {
		metadata := map[string]string{schemaVersionKey: schemaVersion, "x": "y"}
		return Message{Kind: kind, Payload: arrowStream(t, columns, metadata, nil, batches...)}
	}
	return []Message{
		seed(
			event.KindEdge,
			[]col{
				{"src", b.StringView},
				{"dst", textDictionary(p.Int8)},
				{"weight", p.Float32},
				{"time", b.LargeString},
				{"ttl", p.Float64},
				{"op", boolean},
			},
			`[{"src":"a text of more than twelve bytes","dst":"x","weight":2,"ttl":5},`+
				`{"src":"b","dst":"y","weight":null,"time":"7","op":true}]`,
			`[{"src":"c","dst":"x","weight":3},{"dst":"x"}]`,
		),
		seed(
			event.KindLabel,
			[]col{
				{"vertex", p.Int32},
				{"label", textDictionary(p.Uint16)},
				{"role", textDictionary(p.Int8)},
				{"time", arrow.FixedWidthTypes.Timestamp_us},
				{"ttl", textDictionary(p.Int8)},
			},
			`[{"vertex":1,"label":"2","role":"train","time":"2024-01-01","ttl":"36h"},`+
				`{"vertex":2,"ttl":"1"}]`,
		),
		seed(
			event.KindPrediction,
			[]col{
				{"vertex", p.Uint32},
				{"probabilities", arrow.FixedSizeListOf(fuzzClasses, p.Float32)},
				{"class", p.Int8},
				{"model", b.String},
				{"ttl", p.Int32},
			},
			`[{"vertex":1,"probabilities":[0.5,0.25,0.25],"model":"m","ttl":60},{"vertex":2,`+
				`"class":1},{"vertex":3,"probabilities":[1,null,0]}]`,
		),
		seed(
			event.KindPrediction,
			[]col{{"p0", p.Float32}, {"p1", p.Float64}, {"p2", p.Float32}, {"vertex", b.String}},
			`[{"vertex":"1","p0":1,"p1":0,"p2":0},{"vertex":"x","p0":0.5,"p1":0.5,"p2":0.1}]`,
		),
		seed(
			event.KindMember,
			[]col{
				{"community", textDictionary(p.Int8)},
				{"vertex", p.Int64},
				{"multiplicity", p.Uint16},
				{"op", p.Uint8},
			},
			`[{"community":"a","vertex":1,"multiplicity":2,"op":0},{"community":"b","vertex":-1,`+
				`"op":1}]`,
		),
		seed(
			event.KindVertex,
			[]col{
				{"vertex", p.Uint8},
				{"a", b.String},
				{"b", boolean},
				{"c", p.Float64},
				{"d", arrow.Null},
				{"erase", boolean},
			},
			`[{"vertex":1,"a":"x","b":true,"c":1.5},{"vertex":2,"erase":true},{"vertex":3}]`,
		),
		seed(
			event.KindControl,
			[]col{{"op", b.String}, {"config", b.LargeString}, {"time", p.Int64}},
			`[{"op":"configure","config":"{\"a\":1}","time":3},{"op":"tick"}]`,
		),
	}
}

// A stream with one changed byte must not make the decoder panic, and accepted events must
// be valid.
func TestChangedArrowBytes(t *testing.T) {
	d := newDecoder(t, fuzzClasses)
	values := func(old byte) []byte {
		return []byte{
			0, 1, 0x7f, 0x80, 0xff, old + 1, old - 1,
			old ^ 0x40,
		}
	}
	counts := map[bool]int{}
	for _, m := range arrowSeeds(t) {
		var b event.Batch
		if err := d.Decode(m, &b); err != nil || b.Events() == 0 {
			t.Fatalf("seed: %v, %d events", err, b.Events())
		}
		for i := range m.Payload {
			old := m.Payload[i]
			for _, v := range values(old) {
				m.Payload[i] = v
				b.Reset()
				err := d.Decode(m, &b)
				counts[err == nil]++
				checkSound(t, &b, fuzzClasses)
			}
			m.Payload[i] = old
		}
	}
	t.Logf("%d changes refused, %d accepted", counts[false], counts[true])
	if counts[false] == 0 || counts[true] == 0 {
		t.Errorf("the sweep looked at one outcome only: %v", counts)
	}
}

// A stream that is cut anywhere is refused whole, except after a whole batch.
func TestCutArrowStreams(t *testing.T) {
	d := newDecoder(t, fuzzClasses)
	for _, m := range arrowSeeds(t) {
		whole := m.Payload
		accepted := 0
		for n := range len(whole) {
			m.Payload = whole[:n:n]
			var b event.Batch
			if err := d.Decode(m, &b); err == nil {
				accepted++
			} else if b.Events() != 0 {
				t.Fatalf("cut at %d: %v, and %d events", n, err, b.Events())
			}
		}
		if accepted > 8 { // at the borders of schema, dictionaries and batches
			t.Errorf("%v: %d cuts accepted", m.Kind, accepted)
		}
	}
}
