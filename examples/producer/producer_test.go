package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

func decoder(t *testing.T) *event.Decoder {
	t.Helper()
	d, err := event.NewDecoder(event.Config{Classes: event.ClassSet{Names: []string{"left", "right"}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// said is what a message says, without where it came from.
func said(t *testing.T, m event.Message) string {
	t.Helper()
	var b event.Batch
	if err := decoder(t).Decode(m, &b); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Refused {
		t.Errorf("%v as %s: refused, %s: %s", m.Kind, m.ContentType, r.Reason, r.Detail)
	}
	var lines []string
	for _, e := range b.Edges {
		e.Position = 0
		lines = append(lines, fmt.Sprintf("%+v", e))
	}
	for _, list := range []any{b.Labels, b.Predictions, b.Members, b.Vertices, b.Controls} {
		lines = append(lines, fmt.Sprintf("%+v", list))
	}
	if b.Events() == 0 {
		t.Errorf("%v as %s: no events", m.Kind, m.ContentType)
	}
	return strings.Join(lines, "\n")
}

// The program, compiled and run as a user would, must leave every kind in every
// form in the log, and the forms of a kind must say the same.
func TestGoProducer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "producer")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	broker, err := ingest.StartEmbedded(ingest.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	nc, err := broker.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names := ingest.DefaultStreamNames()
	if err := ingest.EnsureStreams(t.Context(), js, names); err != nil {
		t.Fatal(err)
	}
	const want = 3 * int(event.Kinds)
	for range 2 { // the second time the broker drops every message as a repeat
		out, err := exec.Command(program, "-url", broker.URL(), "-producer", "test").CombinedOutput()
		if err != nil || string(out) != fmt.Sprintf("published %d messages\n", want) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	stream, err := js.Stream(t.Context(), names.Log)
	if err != nil {
		t.Fatal(err)
	}
	if last := stream.CachedInfo().State.LastSeq; last != uint64(want) {
		t.Fatalf("%d messages in the log, want %d", last, want)
	}
	first := map[event.Kind]string{}
	for i := range uint64(want) {
		m, err := stream.GetMsg(t.Context(), i+1)
		if err != nil {
			t.Fatal(err)
		}
		kind, _ := event.SubjectKind(m.Subject)
		text := said(t, event.Message{Kind: kind, ContentType: m.Header.Get("Content-Type"), Payload: m.Data})
		if first[kind] == "" {
			first[kind] = text
		} else if kind != event.KindVertex && text != first[kind] { // attributes come in the table's order
			t.Errorf("%v as %s says\n%s\nwant\n%s", kind, m.Header.Get("Content-Type"), text, first[kind])
		}
	}
	if len(first) != event.Kinds {
		t.Errorf("%d kinds of events", len(first))
	}
}

// The Python program cannot run where there is no pyarrow. Its events and its
// schemas are read out of it, and must be what the decoder takes, in all forms.
func TestPythonProducerSaysWhatTheDecoderTakes(t *testing.T) {
	source, err := os.ReadFile("producer.py")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range event.Kind(event.Kinds) {
		events := pythonEvents(t, string(source), kind.String())
		schema := pythonSchema(t, string(source), kind.String())
		array, err := json.Marshal(events)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := asNDJSON(events)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := asArrow(schema, events)
		if err != nil {
			t.Fatal(err)
		}
		want := said(t, event.Message{Kind: kind, ContentType: formJSON, Payload: array})
		for form, payload := range map[string][]byte{formNDJSON: lines, formArrow: rows} {
			got := said(t, event.Message{Kind: kind, ContentType: form, Payload: payload})
			if kind != event.KindVertex && got != want {
				t.Errorf("%v as %s says\n%s\nwant\n%s", kind, form, got, want)
			}
		}
		for _, e := range events { // every field of the events must be a column
			for name := range e {
				if name != "attributes" && !schema.HasField(name) {
					t.Errorf("%v: the schema has no column %s", kind, name)
				}
			}
		}
	}
	for _, form := range []string{formJSON, formNDJSON, formArrow} {
		if !strings.Contains(string(source), `"`+form+`"`) {
			t.Errorf("nothing is sent as %s", form)
		}
	}
	if !strings.Contains(string(source), `f"gql.{kind}"`) {
		t.Error("the subject is not that of the kind")
	}
}

// pythonEvents reads the lines of JSON of a kind.
func pythonEvents(t *testing.T, source, kind string) (events []map[string]any) {
	t.Helper()
	match := regexp.MustCompile(`(?s)"` + kind + `": """\n(.*?)"""`).FindStringSubmatch(source)
	if match == nil {
		t.Fatalf("no events of kind %s", kind)
	}
	lines := json.NewDecoder(strings.NewReader(match[1]))
	for {
		var e map[string]any
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if list, ok := e["probabilities"].([]any); ok {
			numbers := make([]float64, len(list))
			for i := range list {
				numbers[i] = list[i].(float64)
			}
			e["probabilities"] = numbers
		}
		events = append(events, e)
	}
	return events
}

// pythonSchema reads the pyarrow schema of a kind.
func pythonSchema(t *testing.T, source, kind string) *arrow.Schema {
	t.Helper()
	match := regexp.MustCompile(`(?s)"` + kind + `": pa\.schema\(\[\n(.*?)\n    \]\)`).FindStringSubmatch(source)
	if match == nil {
		t.Fatalf("no schema of kind %s", kind)
	}
	types := map[string]arrow.DataType{
		"pa.string()": text, "pa.float64()": double, "pa.int64()": arrow.PrimitiveTypes.Int64,
		"pa.list_(pa.float64(), 2)": arrow.FixedSizeListOf(2, double),
	}
	var fields []arrow.Field
	for line := range strings.SplitSeq(match[1], "\n") {
		m := regexp.MustCompile(`^ {8}\("(\w+)", (pa\..*)\),$`).FindStringSubmatch(line)
		if m == nil || types[m[2]] == nil {
			t.Fatalf("%s: what does %q mean?", kind, line)
		}
		fields = append(fields, column(m[1], types[m[2]]))
	}
	return table(fields...)
}
