package wire

import (
	"encoding/json"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"gqlstream/ingest/event"
)

// newDecoder returns a decoder for k classes.
func newDecoder(t testing.TB, k int) *Decoder {
	t.Helper()
	d, err := NewDecoder(event.ClassSet{Count: k})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ignoreIndex leaves out which event of its message an event is.
var ignoreIndex = cmp.FilterPath(
	func(p cmp.Path) bool { return p.Last().String() == ".Index" },
	cmp.Ignore(),
)

// sameEvents fails unless two batches hold the same events.
func sameEvents(t interface {
	Helper()
	Fatalf(string, ...any)
}, got, want *event.Batch,
) {
	t.Helper()
	if diff := cmp.Diff(want, got, ignoreIndex, cmpopts.IgnoreUnexported(event.Batch{}),
		cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("events differ (-want +got):\n%s", diff)
	}
}

var genText = rapid.OneOf(
	rapid.StringN(1, 40, event.IDBytesLimit),
	rapid.SampledFrom([]string{
		"0", "007", "-1", "1.5", "18446744073709551615", "18446744073709551616", "\"", "\\", "\x00",
		"\u2028", "🐍", "a\nb", "null", "vertex", "\u007f", "é",
	}),
).Filter(func(s string) bool {
	return len(s) > 0 && len(s) <= event.IDBytesLimit &&
		utf8.ValidString(s)
})

var genID = rapid.OneOf(
	rapid.Map(rapid.Uint64(), event.NumberID),
	rapid.Map(rapid.Uint64Range(0, 100), event.NumberID),
	rapid.Map(genText, event.ParseID),
)

var genTime = rapid.OneOf(
	rapid.Just(event.Time(0)),
	rapid.Map(
		rapid.Int64Range(-int64(event.TimeMax)+1e9, int64(event.TimeMax)-1e9),
		func(n int64) event.Time { return event.Time(n) },
	),
	rapid.Map(rapid.Int64Range(0, 4e9), func(n int64) event.Time { return event.Time(n * 1e9) }),
)

func genEdge(t *rapid.T) event.Edge {
	e := event.Edge{
		Src: genID.Draw(t, "src"), Dst: genID.Draw(t, "dst"), Time: genTime.Draw(t, "time"),
		Remove: rapid.IntRange(0, 3).Draw(t, "op") == 0,
	}
	if e.Src == e.Dst {
		e.Dst = event.NumberID(e.Src.Number + 1)
	}
	if e.Remove {
		return e
	}
	e.Weight = 1
	if rapid.Bool().Draw(t, "weighted") {
		e.Weight = float64(rapid.Int64Range(1, 1<<44).Draw(t, "weight")) * event.WeightUnit
	}
	e.TTL = genTTL(t)
	return e
}

// genTTL draws a time to live: most often none.
func genTTL(t *rapid.T) time.Duration {
	if rapid.IntRange(0, 3).Draw(t, "expiring") == 0 {
		return time.Duration(rapid.Int64Range(1, int64(event.TimeMax)).Draw(t, "ttl"))
	}
	return 0
}

func genLabel(k int) func(t *rapid.T) event.Label {
	return func(t *rapid.T) event.Label {
		l := event.Label{
			Vertex: genID.Draw(
				t,
				"vertex",
			), Class: event.Class(rapid.IntRange(-1, k-1).Draw(t, "class")),
			Role: event.Role(rapid.IntRange(0, 2).Draw(t, "role")), Time: genTime.Draw(t, "time"),
		}
		switch {
		case l.Class == event.NoClass && l.Role == event.Audit:
			l.Role = event.Calibrate // nobody was drawn
		case l.Role == event.Audit:
			l.Pi = rapid.Uint32Range(event.PiMin, event.One).Draw(t, "pi")
		}
		if l.Class != event.NoClass {
			l.TTL = genTTL(t)
		}
		return l
	}
}

func genUnits(k int) func(t *rapid.T) []uint32 {
	return func(t *rapid.T) []uint32 {
		units := make([]uint32, k)
		left := uint32(event.One)
		for i := range units[1:] {
			units[i] = rapid.Uint32Range(0, left).Draw(t, "units")
			left -= units[i]
		}
		units[k-1] = left
		return units
	}
}

func genPrediction(k int) func(t *rapid.T) event.Prediction {
	return func(t *rapid.T) event.Prediction {
		e := event.Prediction{
			Vertex: genID.Draw(t, "vertex"), Units: genUnits(k)(t), Time: genTime.Draw(t, "time"),
			TTL: genTTL(t),
		}
		if rapid.Bool().Draw(t, "versioned") {
			e.Version = genText.Draw(t, "version")
		}
		return e
	}
}

func genPost(k int) func(t *rapid.T) event.Post {
	return func(t *rapid.T) event.Post {
		e := event.Post{
			Author: genID.Draw(t, "author"), Units: genUnits(k)(t), Time: genTime.Draw(t, "time"),
			ReplyTo: genReference(t), RepostOf: genReference(t), Weight: 1, TTL: genTTL(t),
		}
		if rapid.Bool().Draw(t, "weighted") {
			e.Weight = float64(rapid.Int64Range(1, 1<<44).Draw(t, "weight")) * event.WeightUnit
		}
		if rapid.Bool().Draw(t, "versioned") {
			e.Version = genText.Draw(t, "version")
		}
		if rapid.Bool().Draw(t, "named") {
			e.ID = genText.Draw(t, "id")
		}
		return e
	}
}

func genReference(t *rapid.T) event.Reference {
	if rapid.Bool().Draw(t, "given") {
		return event.Reference{ID: genID.Draw(t, "reference"), Given: true}
	}
	return event.Reference{}
}

func genMember(t *rapid.T) event.Member {
	return event.Member{
		Community: genText.Draw(t, "community"), Vertex: genID.Draw(t, "vertex"),
		Multiplicity: rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Uint32()).Draw(t, "multiplicity"),
		Time:         genTime.Draw(t, "time"),
	}
}

func genValue(t *rapid.T) event.Value {
	switch rapid.IntRange(0, 3).Draw(t, "type") {
	case 0:
		return event.Value{Kind: event.StringValue, Text: rapid.StringN(0, 20, 100).Draw(t, "text")}
	case 1:
		f := rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "number")
		return event.Value{Kind: event.NumberValue, Number: f}
	case 2:
		return event.Value{
			Kind:   event.BoolValue,
			Number: float64(rapid.IntRange(0, 1).Draw(t, "bool")),
		}
	}
	return event.Value{}
}

func genVertex(t *rapid.T) event.Vertex {
	e := event.Vertex{Vertex: genID.Draw(t, "vertex"), Time: genTime.Draw(t, "time")}
	if e.Erase = rapid.IntRange(0, 4).Draw(t, "erase") == 0; e.Erase {
		return e
	}
	for _, key := range rapid.SliceOfNDistinct(genText, 0, 4, rapid.ID[string]).Draw(t, "keys") {
		e.Attributes = append(e.Attributes, event.Attribute{Key: key, Value: genValue(t)})
	}
	return e
}

func genControl(t *rapid.T) event.Control {
	e := event.Control{
		Op:   event.Op(rapid.IntRange(0, 4).Draw(t, "op")),
		Time: genTime.Draw(t, "time"),
	}
	if e.Op == event.Note {
		e.Text = genText.Draw(t, "note")
	}
	if e.Op == event.Configure {
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
func genBatch(kind event.Kind, k int) func(t *rapid.T) *event.Batch {
	return func(t *rapid.T) *event.Batch {
		b := &event.Batch{}
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			switch kind {
			case event.KindEdge:
				b.Edges = append(b.Edges, genEdge(t))
			case event.KindLabel:
				b.Labels = append(b.Labels, genLabel(k)(t))
			case event.KindPrediction:
				b.Predictions = append(b.Predictions, genPrediction(k)(t))
			case event.KindPost:
				b.Posts = append(b.Posts, genPost(k)(t))
			case event.KindMember:
				b.Members = append(b.Members, genMember(t))
			case event.KindVertex:
				b.Vertices = append(b.Vertices, genVertex(t))
			case event.KindControl:
				b.Controls = append(b.Controls, genControl(t))
			}
		}
		return b
	}
}

// jsonEvents returns the events of a kind of b as JSON, one an item.
func jsonEvents(kind event.Kind, b *event.Batch) [][]byte {
	var out [][]byte
	for i := range b.Events() {
		out = append(out, AppendJSON(nil, b, kind, i))
	}
	return out
}
