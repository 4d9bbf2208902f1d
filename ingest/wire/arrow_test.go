package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"gqlstream/ingest/event"
)

// col is one column of a test table.
type col struct {
	name string
	t    arrow.DataType
}

// textDictionary is a categorical column of pandas and Polars.
func textDictionary(index arrow.DataType) arrow.DataType {
	return &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}
}

// arrowStream writes batches of rows, given as JSON arrays of objects, as another
// producer would.
func arrowStream(
	t testing.TB, columns []col, metadata map[string]string, options []ipc.Option,
	batches ...string,
) []byte {
	t.Helper()
	var fields []arrow.Field
	for _, c := range columns {
		fields = append(fields, arrow.Field{Name: c.name, Type: c.t, Nullable: true})
	}
	md := arrow.MetadataFrom(metadata)
	schema := arrow.NewSchema(fields, &md)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, append(options, ipc.WithSchema(schema))...)
	for _, rows := range batches {
		r, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var (
	prims   = arrow.PrimitiveTypes
	texts   = arrow.BinaryTypes
	boolean = arrow.FixedWidthTypes.Boolean
	inZone  = &arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Berlin"}
)

// arrowTypeCases are tables and the same events as JSON.
var arrowTypeCases = []struct {
	name    string
	kind    event.Kind
	columns []col
	rows    string
	want    string // the same as JSON
}{
	{
		"uint64", event.KindEdge,
		[]col{{"src", prims.Uint64}, {"dst", prims.Uint64}},
		`[{"src":1,"dst":9007199254740991}]`, `{"src":1,"dst":9007199254740991}`,
	},
	{
		"uint32 and float32", event.KindEdge,
		[]col{{"dst", prims.Uint32}, {"weight", prims.Float32}, {"src", prims.Uint32}},
		`[{"src":1,"dst":2,"weight":0.5},{"src":1,"dst":3,"weight":null}]`,
		`[{"src":1,"dst":2,"weight":0.5},{"src":1,"dst":3}]`,
	},
	{
		"small integers", event.KindEdge,
		[]col{
			{"src", prims.Int8},
			{"dst", prims.Uint16},
			{"weight", prims.Int64},
			{"op", prims.Uint8},
		},
		`[{"src":1,"dst":2,"weight":3,"op":0},{"src":1,"dst":3,"weight":0,"op":1}]`,
		`[{"src":1,"dst":2,"weight":3},{"src":1,"dst":3,"op":"remove"}]`,
	},
	{
		"utf8", event.KindEdge,
		[]col{
			{"src", texts.String},
			{"dst", texts.LargeString},
			{"op", texts.String},
			{"time", texts.String},
			{"ttl", texts.String},
		},
		`[{"src":"42","dst":"a","op":"remove","time":"1.5"},{"src":"é","dst":"b","ttl":"1h",` +
			`"time":"2024-01-01T00:00:00Z"}]`,
		`[{"src":42,"dst":"a","op":"remove","time":1.5},{"src":"é","dst":"b","ttl":3600,` +
			`"time":"2024-01-01T00:00:00Z"}]`,
	},
	{
		"views", event.KindEdge,
		[]col{{"src", texts.StringView}, {"dst", texts.StringView}},
		`[{"src":"short","dst":"a text of more than twelve bytes"},{"src":"exactly 12 b",` +
			`"dst":"another text of more than twelve"}]`,
		`[{"src":"short","dst":"a text of more than twelve bytes"},{"src":"exactly 12 b",` +
			`"dst":"another text of more than twelve"}]`,
	},
	{
		"dictionaries", event.KindEdge,
		[]col{
			{"src", textDictionary(prims.Int8)},
			{"dst", textDictionary(prims.Uint32)},
			{"op", textDictionary(prims.Int64)},
		},
		`[{"src":"a","dst":"7"},{"src":"b","dst":"7","op":"add"},{"src":"a","dst":"c",` +
			`"op":"remove"}]`,
		`[{"src":"a","dst":7},{"src":"b","dst":7},{"src":"a","dst":"c","op":"remove"}]`,
	},
	{
		"boolean op", event.KindMember,
		[]col{
			{"op", boolean},
			{"vertex", prims.Int64},
			{"community", textDictionary(prims.Int32)},
			{"weight", prims.Int16},
		},
		`[{"op":false,"vertex":1,"community":"x","weight":2},{"op":true,"vertex":1,` +
			`"community":"y","weight":1},{"vertex":2,"community":"x"}]`,
		`[{"vertex":1,"community":"x","multiplicity":2},{"op":"leave","vertex":1,` +
			`"community":"y"},{"vertex":2,"community":"x"}]`,
	},
	{
		"number of a community", event.KindMember,
		[]col{{"vertex", prims.Uint8}, {"community", prims.Uint32}},
		`[{"vertex":1,"community":30}]`, `{"vertex":1,"community":"30"}`,
	},
	{
		"timestamps", event.KindLabel,
		[]col{
			{"vertex", prims.Int32},
			{"label", prims.Int8},
			{"time", arrow.FixedWidthTypes.Timestamp_ms},
			{"ttl", prims.Float32},
		},
		`[{"vertex":1,"label":1,"time":"2024-01-01 00:00:00.25","ttl":1.5},{"vertex":2,` +
			`"label":null,"time":null,"ttl":7}]`,
		`[{"vertex":1,"class":1,"time":"2024-01-01T00:00:00.25Z","ttl":"1500ms"},{"vertex":2,` +
			`"class":null}]`,
	},
	{
		"class as text", event.KindLabel,
		[]col{{"vertex", prims.Int32}, {"class", texts.String}},
		`[{"vertex":1,"class":"0"}]`, `{"vertex":1,"class":0}`,
	},
	{
		"seconds", event.KindLabel,
		[]col{
			{"vertex", prims.Int32},
			{"class", prims.Uint64},
			{"time", inZone},
			{"role", texts.String},
		},
		`[{"vertex":1,"class":1,"time":"2024-01-01 00:00:00","role":"train"}]`,
		`{"vertex":1,"class":1,"role":"train","time":1704067200}`,
	},
	{
		"float seconds", event.KindLabel,
		[]col{
			{"vertex", prims.Int32},
			{"class", textDictionary(prims.Uint8)},
			{"time", prims.Float64},
		},
		`[{"vertex":1,"class":"1","time":1.25},{"vertex":1,"class":"0","time":-3}]`,
		`[{"vertex":1,"class":1,"time":1.25},{"vertex":1,"class":0,"time":-3}]`,
	},
	{
		"integer seconds", event.KindControl,
		[]col{{"op", texts.String}, {"time", prims.Int64}, {"config", texts.LargeString}},
		`[{"op":"tick","time":5},{"op":"configure","config":" {\"a\": [1]} "}]`,
		`[{"op":"tick","time":5},{"op":"configure","config":{"a": [1]}}]`,
	},
	{
		"p columns", event.KindPrediction,
		[]col{
			{"p1", prims.Float64},
			{"vertex", texts.String},
			{"p0", prims.Float32},
			{"model", texts.String},
			{"class", prims.Int64},
			{"ttl", texts.String},
		},
		`[{"vertex":"a","p0":0.25,"p1":0.75,"model":"m","ttl":"36h"},{"vertex":"b","class":1}]`,
		`[{"vertex":"a","p":[0.25,0.75],"version":"m","ttl":129600},{"vertex":"b","class":1}]`,
	},
	{
		"lists", event.KindPrediction,
		[]col{
			{"probabilities", arrow.FixedSizeListOf(2, prims.Float32)},
			{"vertex", prims.Uint64},
			{"class", prims.Int8},
			{"version", prims.Int64},
		},
		`[{"vertex":1,"probabilities":[1,0],"version":3},{"vertex":2,"probabilities":null,` +
			`"class":1},{"vertex":3,"probabilities":[0.5,0.5]}]`,
		`[{"vertex":1,"p":[1,0],"version":"3"},{"vertex":2,"class":1},{"vertex":3,"p":[0.5,0.5]}]`,
	},
	{
		"attributes", event.KindVertex,
		[]col{
			{"id", prims.Uint64},
			{"language", textDictionary(prims.Int8)},
			{"age", prims.Int8},
			{"score", prims.Float32},
			{"active", boolean},
			{"attributes", texts.StringView},
			{"nothing", arrow.Null},
			{"erase", boolean},
		},
		`[{"id":1,"language":"de","age":-4,"score":0.5,"active":true},{"id":2,"language":null,` +
			`"attributes":"x"},{"id":3,"erase":true},{"id":4,"active":false,"erase":false}]`,
		`[{"vertex":1,"attributes":{"language":"de","age":-4,"score":0.5,"active":true}},` +
			`{"vertex":2,"attributes":{"attributes":"x"}},{"vertex":3,"erase":true},{"vertex":4,` +
			`"attributes":{"active":false}}]`,
	},
}

// A table in any of the types that a producer may choose says the same events.
func TestArrowColumnTypes(t *testing.T) {
	for _, c := range arrowTypeCases {
		t.Run(c.name, func(t *testing.T) {
			d := newDecoder(t, 2)
			var want event.Batch
			mustDecode(t, d, Message{Kind: c.kind, Payload: []byte(c.want), Received: 77}, &want)
			payload := arrowStream(
				t, c.columns, map[string]string{"pandas": `{"index_columns":[]}`, "ARROW:x": ""},
				nil, c.rows,
			)
			// with and without the end mark
			for _, payload := range [][]byte{payload, payload[:len(payload)-8]} {
				var got event.Batch
				mustDecode(t, d, Message{Kind: c.kind, Payload: payload, Received: 77}, &got)
				sameEvents(t, &got, &want)
			}
		})
	}
}
