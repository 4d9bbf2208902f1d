package wire

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"gqlstream/ingest/event"
)

// decodeText decodes JSON or NDJSON and returns the reason for the first refusal.
func decodeText(
	t *testing.T, c event.ClassSet, kind event.Kind, form, payload string,
) event.Reason {
	t.Helper()
	d, err := NewDecoder(c)
	if err != nil {
		t.Fatal(err)
	}
	return decodeReason(t, d, Message{Kind: kind, ContentType: form, Payload: []byte(payload)})
}

// decodeReason returns the reason for the first refusal, "" when there is none.
func decodeReason(t *testing.T, d *Decoder, m Message) event.Reason {
	t.Helper()
	var b event.Batch
	err := d.Decode(m, &b)
	if (err != nil) != (len(b.Refused) > 0 && b.Refused[0].Index < 0) {
		t.Fatalf("error %v with refusals %+v", err, b.Refused)
	}
	if len(b.Refused) > 0 {
		return b.Refused[0].Reason
	}
	return ""
}

const (
	oneEdge = `{"src":1,"dst":2}`
	oneTick = `{"op":"tick"}`
)

var twoCount = event.ClassSet{Count: 2}

func xs(n int) string { return strings.Repeat("x", n) }

// limits are the bounds on the input, with a message that reaches each.
var limits = []struct {
	name   string
	limit  int
	reason event.Reason
	decode func(t *testing.T, n int) event.Reason
}{
	{"payload", event.MessageBytesMax, event.TooLarge, func(t *testing.T, n int) event.Reason {
		return decodeText(
			t, twoCount, event.KindEdge, JSON, oneEdge+strings.Repeat(" ", n-len(oneEdge)),
		)
	}},
	{
		"events of an array",
		event.EventsPerMessageLimit,
		event.TooLarge,
		func(t *testing.T, n int) event.Reason {
			return decodeText(
				t, twoCount, event.KindControl, JSON,
				"["+strings.Repeat(oneTick+",", n-1)+oneTick+"]",
			)
		},
	},
	{
		"events by line",
		event.EventsPerMessageLimit,
		event.TooLarge,
		func(t *testing.T, n int) event.Reason {
			return decodeText(
				t, twoCount, event.KindControl, NDJSON, strings.Repeat(oneTick+"\n\n", n),
			)
		},
	},
	{
		"rows of a table",
		event.EventsPerMessageLimit,
		event.TooLarge,
		func(t *testing.T, n int) event.Reason {
			return decodeReason(t, newDecoder(t, 2), Message{Payload: manyEdges(t, n)})
		},
	},
	{
		"predictions of many classes",
		event.UnitsPerMessageMax / event.ClassesMax,
		event.TooLarge,
		func(t *testing.T, n int) event.Reason {
			c := event.ClassSet{Count: event.ClassesMax}
			return decodeText(
				t, c, event.KindPrediction, NDJSON,
				strings.Repeat("{\"vertex\":1,\"class\":0}\n", n),
			)
		},
	},
	{"id", event.IDBytesLimit, event.BadID, func(t *testing.T, n int) event.Reason {
		return decodeText(t, twoCount, event.KindEdge, JSON, `{"src":1,"dst":"`+xs(n)+`"}`)
	}},
	{"community", event.IDBytesLimit, event.BadID, func(t *testing.T, n int) event.Reason {
		return decodeText(
			t, twoCount, event.KindMember, JSON, `{"vertex":1,"community":"`+xs(n)+`"}`,
		)
	}},
	{"version", event.IDBytesLimit, event.BadID, func(t *testing.T, n int) event.Reason {
		return decodeText(
			t, twoCount, event.KindPrediction, JSON, `{"vertex":1,"class":0,"version":"`+xs(n)+`"}`,
		)
	}},
	{"attribute name", event.IDBytesLimit, event.BadID, func(t *testing.T, n int) event.Reason {
		return decodeText(
			t, twoCount, event.KindVertex, JSON, `{"vertex":1,"attributes":{"`+xs(n)+`":1}}`,
		)
	}},
	{
		"attribute text",
		event.AttributeTextBytesMax,
		event.TooLarge,
		func(t *testing.T, n int) event.Reason {
			return decodeText(
				t, twoCount, event.KindVertex, JSON, `{"vertex":1,"attributes":{"a":"`+xs(n)+`"}}`,
			)
		},
	},
	{
		"attributes",
		event.AttributesPerEventMax,
		event.TooLarge,
		func(t *testing.T, n int) event.Reason {
			return decodeText(
				t, twoCount, event.KindVertex, JSON,
				`{"vertex":1,"attributes":{`+manyAttributes(n)+`}}`,
			)
		},
	},
	{
		"attribute columns",
		event.AttributesPerEventMax,
		event.TooLarge,
		func(t *testing.T, n int) event.Reason {
			return decodeReason(
				t,
				newDecoder(t, 2),
				Message{Kind: event.KindVertex, Payload: wideTable(t, n)},
			)
		},
	},
	{
		"depth",
		event.JSONDepthMax,
		event.Malformed,
		func(t *testing.T, n int) event.Reason { // the event and its config are two of them
			config := `{"a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}`
			return decodeText(
				t, twoCount, event.KindControl, JSON, `{"op":"configure","config":`+config+`}`,
			)
		},
	},
	{"class", 1, event.UnknownClass, func(t *testing.T, n int) event.Reason {
		return decodeText(
			t, twoCount, event.KindLabel, JSON, fmt.Sprintf(`{"vertex":1,"class":%d}`, n),
		)
	}},
	{"multiplicity", 1<<32 - 1, event.BadValue, func(t *testing.T, n int) event.Reason {
		return decodeText(
			t, twoCount, event.KindMember, JSON,
			fmt.Sprintf(`{"vertex":1,"community":"a","multiplicity":%d}`, n),
		)
	}},
	{"weight", event.WeightMax, event.BadWeight, func(t *testing.T, n int) event.Reason {
		return decodeText(
			t, twoCount, event.KindEdge, JSON, fmt.Sprintf(`{"src":1,"dst":2,"weight":%d}`, n),
		)
	}},
}

// Every limit must accept values up to it and refuse values above it.
func TestLimits(t *testing.T) {
	for _, c := range limits {
		t.Run(c.name, func(t *testing.T) {
			for n, want := range map[int]event.Reason{
				c.limit - 1: "", c.limit: "",
				c.limit + 1: c.reason,
			} {
				if got := c.decode(t, n); got != want {
					t.Errorf("%d: %q, want %q", n, got, want)
				}
			}
		})
	}
}

// manyEdges returns a table of n edges, in small columns.
func manyEdges(t *testing.T, n int) []byte {
	t.Helper()
	e := arrowEncoder{cells: make([]Cell, n)}
	for i, name := range []string{"src", "dst"} {
		column := array.NewUint8Builder(memory.DefaultAllocator)
		column.AppendValues(bytes.Repeat([]byte{byte(i)}, n), nil)
		e.fields = append(e.fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Uint8})
		e.columns = append(e.columns, column.NewArray())
	}
	payload, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// wideTable returns a table of one vertex with n attributes.
func wideTable(t *testing.T, n int) []byte {
	t.Helper()
	e := arrowEncoder{cells: []Cell{{Kind: UintCell, Integer: 1}}}
	e.add("vertex")
	e.cells[0] = Cell{Kind: BoolCell, Integer: 1}
	for i := range n {
		e.add(fmt.Sprintf("a%d", i))
	}
	payload, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// One long text that a table says for every row through a dictionary costs a
// bounded multiple of the message, not rows times text.
func TestRepeatedTextIsBounded(t *testing.T) {
	d := newDecoder(t, 2)
	p := arrow.PrimitiveTypes
	row := `{"src":1,"dst":"` + strings.Repeat("x", 4000) + `"}`
	for rows, want := range map[int]event.Reason{3: event.BadID, 2000: event.TooLarge} {
		columns := []col{{"src", p.Int8}, {"dst", textDictionary(p.Int8)}}
		payload := arrowStream(t, columns, nil, nil, "["+row+strings.Repeat(","+row, rows-1)+"]")
		if got := decodeReason(t, d, Message{Payload: payload}); got != want {
			t.Errorf("%d rows: %q, want %q", rows, got, want)
		}
	}
}

// A text in a dictionary can apply to every row. If it is far too long for its column, a table with
// it must be cheap to decode, even if most refused rows are only counted.
func TestLongTextsAreNotRead(t *testing.T) {
	const rows = 50
	d, digits := newDecoder(t, 2), strings.Repeat("0", 100_000)
	for _, c := range []struct{ column, text string }{
		{"time", "1." + digits},
		{"time", "2024-01-01T00:00:00." + digits + "Z"},
		{"time", "x" + digits},
		{"ttl", "1." + digits},
		{"ttl", "1." + digits + "s"},
		{"ttl", "x" + digits},
		{"op", "1" + digits},
		{"op", "x" + digits},
	} {
		row := fmt.Sprintf(`{"src":1,"dst":2,"%s":"%s"}`, c.column, c.text)
		columns := []col{
			{"src", prims.Int8},
			{"dst", prims.Int8},
			{c.column, textDictionary(prims.Int8)},
		}
		payload := arrowStream(t, columns, nil, nil, "["+row+strings.Repeat(","+row, rows-1)+"]")
		var b event.Batch
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.Decode(Message{Payload: payload, RefusalsMax: 1}, &b)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; err != nil || len(b.Refused) != 1 ||
			b.Refused[0].More != rows-1 ||
			made > 10*uint64(len(c.text)) {
			t.Errorf(
				"%s %s: %v, %d edges, %d refusals, %d bytes made", c.column, Quote(c.text), err,
				len(b.Edges), len(b.Refused), made,
			)
		}
	}
}

// Strings of events alias the message: nothing is copied.
func TestStringsAliasTheMessage(t *testing.T) {
	payload := []byte(`{"src":"alice","dst":"bob"}`)
	var b event.Batch
	mustDecode(t, newDecoder(t, 2), Message{ContentType: JSON, Payload: payload}, &b)
	if got, want := unsafe.StringData(b.Edges[0].Src.Name), &payload[8]; got != want {
		t.Errorf("the name lies at %p, its text at %p", got, want)
	}
}

// A configuration with several mistakes names them all.
func TestConfigNamesEveryMistake(t *testing.T) {
	for _, c := range []struct {
		classes event.ClassSet
		want    []string
	}{
		{event.ClassSet{Count: 2}, nil},
		{event.ClassSet{Names: []string{"a", "b"}}, nil},
		{event.ClassSet{Names: []string{"0", "1"}}, nil},
		{event.ClassSet{}, []string{"classes: 0"}},
		{event.ClassSet{Count: event.ClassesMax + 1}, []string{"classes: 4097"}},
		{
			event.ClassSet{Count: 3, Names: []string{"a", "a"}},
			[]string{"2 names for 3", `both named "a"`},
		},
		{event.ClassSet{Names: []string{"1", ""}}, []string{
			`named "1", which is an index`,
			"name of class 1 must be",
		}},
	} {
		_, err := NewDecoder(c.classes)
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%+v: %v", c.classes, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", c.classes, err, want)
			}
		}
	}
}

// A class may be said by name or by index, and its name found again.
func TestClasses(t *testing.T) {
	d, err := NewDecoder(twoClasses)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]event.Class{"left": 0, "right": 1, "0": 0, "1": 1} {
		if got, err := d.parseClass(text); err != nil || got != want {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"2", "-1", "Left", "", "1.0", "1e0", "01"} {
		if got, err := d.parseClass(text); err == nil {
			t.Errorf("%q: class %d", text, got)
		}
	}
	if twoClasses.Name(1) != "right" || (event.ClassSet{Count: 3}).Name(2) != "2" ||
		twoClasses.K() != 2 {
		t.Error("names")
	}
}
