package event

import (
	"encoding/json"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// newDecoder returns a decoder for k classes.
func newDecoder(t testing.TB, k int) *Decoder {
	t.Helper()
	d, err := NewDecoder(Config{Classes: ClassSet{Count: k}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sameEvents fails unless two batches hold the same events.
func sameEvents(t interface {
	Helper()
	Fatalf(string, ...any)
}, got, want *Batch,
) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Batch{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("events differ (-want +got):\n%s", diff)
	}
}

var genText = rapid.OneOf(
	rapid.StringN(1, 40, IDBytesLimit),
	rapid.SampledFrom([]string{
		"0", "007", "-1", "1.5", "18446744073709551615", "18446744073709551616", "\"", "\\", "\x00",
		"\u2028", "🐍", "a\nb", "null", "vertex", "\u007f", "é",
	}),
).Filter(func(s string) bool { return len(s) > 0 && len(s) <= IDBytesLimit && utf8.ValidString(s) })

var genID = rapid.OneOf(
	rapid.Map(rapid.Uint64(), NumberID),
	rapid.Map(rapid.Uint64Range(0, 100), NumberID),
	rapid.Map(genText, ParseID),
)

var genTime = rapid.OneOf(
	rapid.Just(Time(0)),
	rapid.Map(rapid.Int64Range(-int64(TimeMax)+1e9, int64(TimeMax)-1e9), func(n int64) Time { return Time(n) }),
	rapid.Map(rapid.Int64Range(0, 4e9), func(n int64) Time { return Time(n * 1e9) }),
)

func genEdge(t *rapid.T) Edge {
	e := Edge{
		Src: genID.Draw(t, "src"), Dst: genID.Draw(t, "dst"), Time: genTime.Draw(t, "time"),
		Remove: rapid.IntRange(0, 3).Draw(t, "op") == 0,
	}
	if e.Src == e.Dst {
		e.Dst = NumberID(e.Src.Number + 1)
	}
	if e.Remove {
		return e
	}
	e.Weight = 1
	if rapid.Bool().Draw(t, "weighted") {
		e.Weight = float64(rapid.Int64Range(1, 1<<44).Draw(t, "weight")) * WeightUnit
	}
	e.TTL = genTTL(t)
	return e
}

// genTTL draws a time to live: most often none.
func genTTL(t *rapid.T) time.Duration {
	if rapid.IntRange(0, 3).Draw(t, "expiring") == 0 {
		return time.Duration(rapid.Int64Range(1, int64(TimeMax)).Draw(t, "ttl"))
	}
	return 0
}

func genLabel(k int) func(t *rapid.T) Label {
	return func(t *rapid.T) Label {
		l := Label{
			Vertex: genID.Draw(t, "vertex"), Class: Class(rapid.IntRange(-1, k-1).Draw(t, "class")),
			Role: Role(rapid.IntRange(0, 1).Draw(t, "role")), Time: genTime.Draw(t, "time"),
		}
		if l.Class != NoClass {
			l.TTL = genTTL(t)
		}
		return l
	}
}

func genUnits(k int) func(t *rapid.T) []uint32 {
	return func(t *rapid.T) []uint32 {
		units := make([]uint32, k)
		left := uint32(One)
		for i := range units[1:] {
			units[i] = rapid.Uint32Range(0, left).Draw(t, "units")
			left -= units[i]
		}
		units[k-1] = left
		return units
	}
}

func genPrediction(k int) func(t *rapid.T) Prediction {
	return func(t *rapid.T) Prediction {
		e := Prediction{
			Vertex: genID.Draw(t, "vertex"), Units: genUnits(k)(t), Time: genTime.Draw(t, "time"),
			TTL: genTTL(t),
		}
		if rapid.Bool().Draw(t, "versioned") {
			e.Version = genText.Draw(t, "version")
		}
		return e
	}
}

func genMember(t *rapid.T) Member {
	return Member{
		Community: genText.Draw(t, "community"), Vertex: genID.Draw(t, "vertex"),
		Multiplicity: rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Uint32()).Draw(t, "multiplicity"),
		Time:         genTime.Draw(t, "time"),
	}
}

func genValue(t *rapid.T) Value {
	switch rapid.IntRange(0, 3).Draw(t, "type") {
	case 0:
		return Value{Kind: StringValue, Text: rapid.StringN(0, 20, 100).Draw(t, "text")}
	case 1:
		f := rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "number")
		return Value{Kind: NumberValue, Number: f}
	case 2:
		return Value{Kind: BoolValue, Number: float64(rapid.IntRange(0, 1).Draw(t, "bool"))}
	}
	return Value{}
}

func genVertex(t *rapid.T) Vertex {
	e := Vertex{Vertex: genID.Draw(t, "vertex"), Time: genTime.Draw(t, "time")}
	if e.Erase = rapid.IntRange(0, 4).Draw(t, "erase") == 0; e.Erase {
		return e
	}
	for _, key := range rapid.SliceOfNDistinct(genText, 0, 4, rapid.ID[string]).Draw(t, "keys") {
		e.Attributes = append(e.Attributes, Attribute{Key: key, Value: genValue(t)})
	}
	return e
}

func genControl(t *rapid.T) Control {
	e := Control{Op: Op(rapid.IntRange(0, 3).Draw(t, "op")), Time: genTime.Draw(t, "time")}
	if e.Op == Configure {
		config, err := json.Marshal(map[string]any{
			"a": genText.Draw(t, "text"), "b": []any{1.5, nil, true, map[string]any{}},
		})
		if err != nil {
			t.Fatalf("config: %v", err)
		}
		e.Config = config
	}
	return e
}

// genBatch returns events of one kind.
func genBatch(kind Kind, k int) func(t *rapid.T) *Batch {
	return func(t *rapid.T) *Batch {
		b := &Batch{}
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			switch kind {
			case KindEdge:
				b.Edges = append(b.Edges, genEdge(t))
			case KindLabel:
				b.Labels = append(b.Labels, genLabel(k)(t))
			case KindPrediction:
				b.Predictions = append(b.Predictions, genPrediction(k)(t))
			case KindMember:
				b.Members = append(b.Members, genMember(t))
			case KindVertex:
				b.Vertices = append(b.Vertices, genVertex(t))
			case KindControl:
				b.Controls = append(b.Controls, genControl(t))
			}
		}
		return b
	}
}

// jsonEvents returns the events of a kind of b as JSON, one an item.
func jsonEvents(kind Kind, b *Batch) [][]byte {
	var out [][]byte
	for i := range b.Events() {
		var event []byte
		switch kind {
		case KindEdge:
			event = b.Edges[i].AppendJSON(nil)
		case KindLabel:
			event = b.Labels[i].AppendJSON(nil)
		case KindPrediction:
			event = b.Predictions[i].AppendJSON(nil)
		case KindMember:
			event = b.Members[i].AppendJSON(nil)
		case KindVertex:
			event = b.Vertices[i].AppendJSON(nil)
		case KindControl:
			event = b.Controls[i].AppendJSON(nil)
		}
		out = append(out, event)
	}
	return out
}
