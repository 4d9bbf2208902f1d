// Command producer publishes a few events of every kind to a gqlstream log, each
// kind in each of the three forms of a message. Copy what you need: it uses nothing
// of gqlstream, only a NATS client and, for the fast form, Arrow.
//
//	gqlstream run --classes left,right --listen 127.0.0.1:4222
//	go run ./examples/producer -url nats://127.0.0.1:4222
//
// Events are assertions ("the weight is 2"), so sending one twice changes nothing,
// and a producer that does not know whether a message arrived sends it again.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The forms of a message.
const (
	formJSON   = "application/json"                    // one event, or an array of them
	formNDJSON = "application/x-ndjson"                // one event a line
	formArrow  = "application/vnd.apache.arrow.stream" // one table; the fast one
)

// batch holds the events of one message, all of one kind.
type batch struct {
	kind   string
	events []map[string]any
	schema *arrow.Schema // of the same events as a table
}

var (
	text   = arrow.BinaryTypes.String
	double = arrow.PrimitiveTypes.Float64
)

func table(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }

func column(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// batches returns some events of each kind. The classes are left and right.
func batches(now time.Time) []batch {
	at := now.UTC().Truncate(time.Microsecond) // in JSON as RFC 3339; Unix seconds do as well
	return []batch{
		{"edge", []map[string]any{
			{"src": "ann", "dst": "bob", "weight": 2.0, "time": at},
			{"src": "bob", "dst": "cem", "time": at},
			{"op": "remove", "src": "ann", "dst": "cem", "time": at},
		}, table(column("op", text), column("src", text), column("dst", text),
			column("weight", double), column("time", arrow.FixedWidthTypes.Timestamp_us))},
		{"label", []map[string]any{
			{"vertex": "ann", "class": "left", "time": at},
			{"vertex": "cem", "class": "right", "role": "train", "time": at},
		}, table(column("vertex", text), column("class", text), column("role", text),
			column("time", arrow.FixedWidthTypes.Timestamp_us))},
		{"prediction", []map[string]any{
			{"vertex": "ann", "probabilities": []float64{0.9, 0.1}, "version": "v3", "time": at},
			{"vertex": "bob", "probabilities": []float64{0.3, 0.7}, "version": "v3", "time": at},
		}, table(column("vertex", text), column("probabilities", arrow.FixedSizeListOf(2, double)),
			column("version", text), column("time", arrow.FixedWidthTypes.Timestamp_us))},
		{"post", []map[string]any{
			{
				"author": "ann", "probabilities": []float64{0.2, 0.8}, "version": "v3",
				"id": "post-1", "reply_to": "bob", "time": at,
			},
			{
				"author": "cem", "probabilities": []float64{0.6, 0.4}, "version": "v3",
				"repost_of": "ann", "time": at,
			},
		}, table(
			column("author", text), column("probabilities", arrow.FixedSizeListOf(2, double)),
			column("version", text), column("id", text), column("reply_to", text),
			column("repost_of", text), column("time", arrow.FixedWidthTypes.Timestamp_us),
		)},
		{"member", []map[string]any{
			{"community": "berlin", "vertex": "ann", "multiplicity": 1.0, "time": at},
			{"community": "berlin", "vertex": "bob", "multiplicity": 3.0, "time": at},
			{"op": "leave", "community": "berlin", "vertex": "cem", "time": at},
		}, table(column("op", text), column("community", text), column("vertex", text),
			column("multiplicity", arrow.PrimitiveTypes.Int64),
			column("time", arrow.FixedWidthTypes.Timestamp_us))},
		{"vertex", []map[string]any{
			{
				"vertex":     "ann",
				"attributes": map[string]any{"language": "de", "age": 31.0},
				"time":       at,
			},
			{"vertex": "bob", "attributes": map[string]any{"language": "tr"}, "time": at},
			// an attribute is a column
		}, table(column("vertex", text), column("language", text), column("age", double),
			column("time", arrow.FixedWidthTypes.Timestamp_us))},
		{"control", []map[string]any{
			{"op": "flush"}, // publish changed estimates at once
		}, table(column("op", text))},
	}
}

// asJSON is one event, or an array of them.
func asJSON(events []map[string]any) ([]byte, error) {
	if len(events) == 1 {
		return json.Marshal(events[0])
	}
	return json.Marshal(events)
}

// asNDJSON is one event a line.
func asNDJSON(events []map[string]any) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	for _, e := range events {
		if err := lines.Encode(e); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// asArrow is an uncompressed Arrow stream of one record batch. Put 1,000 to 4,000
// events into a message; a builder of Arrow takes your own data without JSON in between.
func asArrow(schema *arrow.Schema, events []map[string]any) ([]byte, error) {
	var rows []map[string]any
	for _, e := range events {
		row := maps.Clone(e)
		if attributes, ok := e["attributes"].(map[string]any); ok { // each is a column
			maps.Copy(row, attributes)
		}
		rows = append(rows, row)
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema,
		bytes.NewReader(text)) // a missing field is null, the default
	if err != nil {
		return nil, err
	}
	defer record.Release()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	err = errors.Join(w.Write(record), w.Close())
	return b.Bytes(), err
}

// publish sends every batch in every form and returns how many messages that were.
// The message id makes the broker drop a message that is sent again within two
// minutes.
func publish(
	ctx context.Context, js jetstream.JetStream, producer string, now time.Time,
) (n int, err error) {
	for _, b := range batches(now) {
		for _, form := range []string{formJSON, formNDJSON, formArrow} {
			m := nats.NewMsg("gql." + b.kind)
			m.Header.Set("Content-Type", form)
			m.Header.Set("Nats-Msg-Id", fmt.Sprintf("%s/%d", producer, n+1))
			switch form {
			case formJSON:
				m.Data, err = asJSON(b.events)
			case formNDJSON:
				m.Data, err = asNDJSON(b.events)
			case formArrow:
				m.Data, err = asArrow(b.schema, b.events)
			}
			if err != nil {
				return n, fmt.Errorf("%s as %s: %w", b.kind, form, err)
			}
			if _, err := js.PublishMsg(ctx, m); err != nil { // returns when it is stored
				return n, fmt.Errorf("publish %s as %s: %w", b.kind, form, err)
			}
			n++
		}
	}
	return n, nil
}

func run(url, producer string) (int, error) {
	nc, err := nats.Connect(url)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return publish(ctx, js, producer, time.Now())
}

func main() {
	url := flag.String("url", "nats://127.0.0.1:4222",
		"the server that gqlstream run listens on, or its own --nats")
	producer := flag.String("producer", fmt.Sprint("example-", time.Now().UnixNano()),
		"name of this producer, for message ids")
	flag.Parse()
	n, err := run(*url, *producer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("published %d messages\n", n)
}
