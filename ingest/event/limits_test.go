package event

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
)

// decodeText decodes JSON or NDJSON and returns the reason for the first refusal.
func decodeText(t *testing.T, c Config, kind Kind, form, payload string) Reason {
	t.Helper()
	d, err := NewDecoder(c)
	if err != nil {
		t.Fatal(err)
	}
	return decodeReason(t, d, Message{Kind: kind, ContentType: form, Payload: []byte(payload)})
}

// decodeReason returns the reason for the first refusal, "" when there is none.
func decodeReason(t *testing.T, d *Decoder, m Message) Reason {
	t.Helper()
	var b Batch
	err := d.Decode(m, &b)
	if (err != nil) != (len(b.Refused) > 0 && b.Refused[0].Index < 0) {
		t.Fatalf("error %v with refusals %+v", err, b.Refused)
	}
	if len(b.Refused) > 0 {
		return b.Refused[0].Reason
	}
	return ""
}

const oneEdge = `{"src":1,"dst":2}`

var twoCount = ClassSet{Count: 2}

func xs(n int) string { return strings.Repeat("x", n) }

// limits are what bounds the input, and what to decode to see it at work.
var limits = []struct {
	name   string
	limit  int
	reason Reason
	decode func(t *testing.T, n int) Reason
}{
	{"payload, default", MessageBytesDefault, TooLarge, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindEdge, JSON, oneEdge+strings.Repeat(" ", n-len(oneEdge)))
	}},
	{"payload, configured", 100, TooLarge, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount, MessageBytesMax: 100}, KindEdge, JSON, oneEdge+strings.Repeat(" ", n-len(oneEdge)))
	}},
	{"payload, most", MessageBytesLimit, TooLarge, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount, MessageBytesMax: MessageBytesLimit}, KindEdge, JSON, oneEdge+strings.Repeat(" ", n-len(oneEdge)))
	}},
	{"events of an array", 7, TooLarge, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount, EventsPerMessageMax: 7}, KindEdge, JSON, "["+strings.Repeat(oneEdge+",", n-1)+oneEdge+"]")
	}},
	{"events by line", 7, TooLarge, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount, EventsPerMessageMax: 7}, KindEdge, NDJSON, strings.Repeat(oneEdge+"\n\n", n))
	}},
	{"rows of a table", EventsPerMessageLimit, TooLarge, func(t *testing.T, n int) Reason {
		return decodeReason(t, newDecoder(t, 2), Message{Payload: manyEdges(t, n)})
	}},
	{"predictions of many classes", UnitsPerMessageMax / ClassesMax, TooLarge, func(t *testing.T, n int) Reason {
		c := Config{Classes: ClassSet{Count: ClassesMax}}
		return decodeText(t, c, KindPrediction, NDJSON, strings.Repeat("{\"vertex\":1,\"class\":0}\n", n))
	}},
	{"id", IDBytesLimit, BadID, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindEdge, JSON, `{"src":1,"dst":"`+xs(n)+`"}`)
	}},
	{"id, configured", 10, BadID, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount, IDBytesMax: 10}, KindEdge, JSON, `{"src":1,"dst":"`+xs(n)+`"}`)
	}},
	{"community", IDBytesLimit, BadID, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindMember, JSON, `{"vertex":1,"community":"`+xs(n)+`"}`)
	}},
	{"version", IDBytesLimit, BadID, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindPrediction, JSON, `{"vertex":1,"class":0,"version":"`+xs(n)+`"}`)
	}},
	{"attribute name", IDBytesLimit, BadID, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindVertex, JSON, `{"vertex":1,"attributes":{"`+xs(n)+`":1}}`)
	}},
	{"attribute text", AttributeTextBytesMax, TooLarge, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindVertex, JSON, `{"vertex":1,"attributes":{"a":"`+xs(n)+`"}}`)
	}},
	{"attributes", AttributesPerEventMax, TooLarge, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindVertex, JSON, `{"vertex":1,"attributes":{`+manyAttributes(n)+`}}`)
	}},
	{"attribute columns", AttributesPerEventMax, TooLarge, func(t *testing.T, n int) Reason {
		return decodeReason(t, newDecoder(t, 2), Message{Kind: KindVertex, Payload: wideTable(t, n)})
	}},
	{"depth", JSONDepthMax, Malformed, func(t *testing.T, n int) Reason { // the event and its config are two of them
		config := `{"a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}`
		return decodeText(t, Config{Classes: twoCount}, KindControl, JSON, `{"op":"configure","config":`+config+`}`)
	}},
	{"class", 1, UnknownClass, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindLabel, JSON, fmt.Sprintf(`{"vertex":1,"class":%d}`, n))
	}},
	{"multiplicity", 1<<32 - 1, BadValue, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindMember, JSON, fmt.Sprintf(`{"vertex":1,"community":"a","multiplicity":%d}`, n))
	}},
	{"weight", WeightMax, BadWeight, func(t *testing.T, n int) Reason {
		return decodeText(t, Config{Classes: twoCount}, KindEdge, JSON, fmt.Sprintf(`{"src":1,"dst":2,"weight":%d}`, n))
	}},
}

// Every limit lets through what is below it and at it, and refuses what is above.
func TestLimits(t *testing.T) {
	for _, c := range limits {
		t.Run(c.name, func(t *testing.T) {
			for n, want := range map[int]Reason{c.limit - 1: "", c.limit: "", c.limit + 1: c.reason} {
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
	e := arrowEncoder{rows: n}
	e.add("src", arrow.PrimitiveTypes.Uint8, 0, nil, make([]byte, n))
	e.add("dst", arrow.PrimitiveTypes.Uint8, 0, nil, bytes.Repeat([]byte{1}, n))
	payload, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// wideTable returns a table of one vertex with n attributes.
func wideTable(t *testing.T, n int) []byte {
	t.Helper()
	e := arrowEncoder{rows: 1}
	e.ids("vertex", func(int) ID { return NumberID(1) })
	for i := range n {
		e.bools(fmt.Sprintf("a%d", i), func(int) bool { return true })
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
	d, err := NewDecoder(Config{Classes: ClassSet{Count: 2}, MessageBytesMax: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	p := arrow.PrimitiveTypes
	row := `{"src":1,"dst":"` + strings.Repeat("x", 4000) + `"}`
	for rows, want := range map[int]Reason{3: BadID, 100: TooLarge} {
		columns := []col{{"src", p.Int8}, {"dst", textDictionary(p.Int8)}}
		payload := arrowStream(t, columns, nil, nil, "["+row+strings.Repeat(","+row, rows-1)+"]")
		if got := decodeReason(t, d, Message{Payload: payload}); got != want {
			t.Errorf("%d rows: %q, want %q", rows, got, want)
		}
	}
}

// Once the batch has grown, decoding an event takes no memory, and a message in
// Arrow takes less than the overhead of a message.
func TestDecodingDoesNotAllocatePerEvent(t *testing.T) {
	const n = 1000
	d := newDecoder(t, 3)
	var edges, predictions Batch
	for i := range n {
		edges.Edges = append(edges.Edges, Edge{Src: NumberID(uint64(i)), Dst: ParseID(fmt.Sprintf("v%d", i)), Weight: 1.5, Time: 1e18})
		predictions.Predictions = append(predictions.Predictions, Prediction{Vertex: NumberID(uint64(i)), Units: []uint32{1, 2, One - 3}, Version: "m"})
	}
	var b Batch
	for _, c := range []struct {
		kind   Kind
		events *Batch
	}{{KindEdge, &edges}, {KindPrediction, &predictions}} {
		table, err := EncodeArrow(c.kind, c.events, 0, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, payload := range [][]byte{bytes.Join(jsonEvents(c.kind, c.events), []byte("\n")), table} {
			m := Message{Kind: c.kind, Payload: payload}
			allocs := testing.AllocsPerRun(5, func() {
				b.Reset()
				if err := d.Decode(m, &b); err != nil || b.Events() != n {
					t.Fatal(err)
				}
			})
			if allocs > 20 {
				t.Errorf("%v: %v allocations for a message of %d events of %d bytes", c.kind, allocs, n, len(payload))
			}
		}
	}
}

// Strings of events alias the message: nothing is copied.
func TestStringsAliasTheMessage(t *testing.T) {
	payload := []byte(`{"src":"alice","dst":"bob"}`)
	var b Batch
	mustDecode(t, newDecoder(t, 2), Message{ContentType: JSON, Payload: payload}, &b)
	if got, want := unsafe.StringData(b.Edges[0].Src.Name), &payload[8]; got != want {
		t.Errorf("the name lies at %p, its text at %p", got, want)
	}
}

// A configuration with several mistakes names them all.
func TestConfigNamesEveryMistake(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   []string
	}{
		{Config{Classes: ClassSet{Count: 2}}, nil},
		{Config{Classes: ClassSet{Names: []string{"a", "b"}}}, nil},
		{Config{Classes: ClassSet{Names: []string{"0", "1"}}}, nil},
		{Config{}, []string{"0 classes"}},
		{Config{Classes: ClassSet{Count: ClassesMax + 1}}, []string{"4097 classes"}},
		{Config{Classes: ClassSet{Count: 3, Names: []string{"a", "a"}}}, []string{"2 class names for 3", `both named "a"`}},
		{Config{Classes: ClassSet{Names: []string{"1", ""}}}, []string{`named "1", which is an index`, "name of class 1 must be"}},
		{
			Config{Classes: ClassSet{Count: 1}, MessageBytesMax: MessageBytesLimit + 1, EventsPerMessageMax: -1, IDBytesMax: 257},
			[]string{"MessageBytesMax is 8388609", "EventsPerMessageMax is -1", "IDBytesMax is 257"},
		},
	} {
		_, err := NewDecoder(c.config)
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%+v: %v", c.config, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", c.config, err, want)
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
	for text, want := range map[string]Class{"left": 0, "right": 1, "0": 0, "1": 1} {
		if got, err := d.ParseClass(text); err != nil || got != want {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"2", "-1", "Left", "", "1.0", "1e0", "01"} {
		if got, err := d.ParseClass(text); err == nil {
			t.Errorf("%q: class %d", text, got)
		}
	}
	if twoClasses.Classes.Name(1) != "right" || (ClassSet{Count: 3}).Name(2) != "2" || twoClasses.Classes.K() != 2 {
		t.Error("names")
	}
}

// Subjects and kinds are two names of one thing.
func TestSubjects(t *testing.T) {
	for kind := range Kind(Kinds) {
		if got, ok := SubjectKind(Subject(kind)); !ok || got != kind {
			t.Errorf("%v: %s reads as %v", kind, Subject(kind), got)
		}
	}
	for _, subject := range []string{"", "gql.", "gql.edges", "edge", "gqlq.edge", "gql.edge.x", "GQL.edge"} {
		if kind, ok := SubjectKind(subject); ok {
			t.Errorf("%q is %v", subject, kind)
		}
	}
}
