package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"gqlstream/ingest/event"
)

// NaN and infinities, which JSON has no way to say, are refused by row, and the
// rows around them apply.
func TestArrowNotFinite(t *testing.T) {
	const n = 515
	bad := map[int]float64{0: math.NaN(), 255: math.Inf(1), 256: math.Inf(-1), n - 1: math.NaN()}
	var given event.Batch
	for i := range n {
		e := event.Edge{
			Src:    event.NumberID(uint64(i)),
			Dst:    event.NumberID(uint64(i) + 1),
			Weight: 1.5,
		}
		if f, ok := bad[i]; ok {
			e.Weight = f
		}
		given.Edges = append(given.Edges, e)
	}
	payload, err := EncodeArrow(event.KindEdge, &given, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	var b event.Batch
	d := newDecoder(t, 2)
	if err := d.Decode(Message{Payload: payload}, &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Edges) != n-len(bad) || len(b.Refused) != len(bad) {
		t.Fatalf("%d edges, %d refused", len(b.Edges), len(b.Refused))
	}
	for _, r := range b.Refused {
		if _, ok := bad[r.Index]; !ok || r.Reason != event.NotFinite {
			t.Errorf("refused %d as %s: %s", r.Index, r.Reason, r.Detail)
		}
		if want := `"weight":"`; !strings.Contains(string(r.Original), want) {
			t.Errorf("original %s", r.Original)
		}
	}
	for i, j := 0, 0; i < n; i++ {
		if _, ok := bad[i]; !ok {
			if b.Edges[j].Src.Number != uint64(i) {
				t.Fatalf("edge %d is %v", j, b.Edges[j])
			}
			j++
		}
	}
}

// An attribute that is not finite must be refused, also when it is published again from the
// quarantine.
func TestArrowAttributesThatAreNotFinite(t *testing.T) {
	age := event.Attribute{
		Key:   "age",
		Value: event.Value{Kind: event.NumberValue, Number: math.NaN()},
	}
	given := event.Batch{
		Vertices: []event.Vertex{{Vertex: event.NumberID(1), Attributes: []event.Attribute{age}}},
	}
	payload, err := encodeTable(event.KindVertex, &given, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b, again event.Batch
	d := newDecoder(t, 2)
	if err := d.Decode(Message{Kind: event.KindVertex, Payload: payload}, &b); err != nil ||
		len(b.Refused) != 1 ||
		b.Refused[0].Reason != event.NotFinite {
		t.Fatalf("%v, refused %v", err, b.Refused)
	}
	original := b.Refused[0].Original
	if err := d.Decode(Message{Kind: event.KindVertex, ContentType: JSON, Payload: original},
		&again); err != nil ||
		len(again.Refused) != 1 {
		t.Errorf("%s: %v, not refused again", original, err)
	}
}

// idColumns are the columns that an edge cannot do without.
func idColumns() []col { return []col{{"src", prims.Uint64}, {"dst", prims.Uint64}} }

// badSchemas are columns that make no table of a kind.
var badSchemas = []struct {
	name    string
	kind    event.Kind
	columns []col
	reason  event.Reason
	detail  string
}{
	{"no dst", event.KindEdge, idColumns()[:1], event.MissingField, `without a column "dst"`},
	{
		"unknown column",
		event.KindEdge,
		append(idColumns(), col{"wieght", prims.Float32}),
		event.UnknownField,
		`did you mean "weight"?`,
	},
	{
		"pandas index",
		event.KindEdge,
		append(idColumns(), col{"__index_level_0__", prims.Int64}),
		event.UnknownField,
		"preserve_index=False",
	},
	{
		"column twice",
		event.KindEdge,
		append(idColumns(), idColumns()[0]),
		event.Malformed,
		`field "src" given twice`,
	},
	{
		"alias twice",
		event.KindLabel,
		[]col{{"vertex", prims.Int8}, {"class", prims.Int8}, {"label", prims.Int8}},
		event.Malformed,
		`field "class" given twice`,
	},
	{
		"attribute twice",
		event.KindVertex,
		[]col{{"vertex", prims.Int8}, {"a", prims.Int8}, {"a", prims.Int8}},
		event.Malformed,
		`column "a" given twice`,
	},
	{
		"float ids",
		event.KindEdge,
		[]col{{"src", prims.Float64}, {"dst", prims.Int8}},
		event.BadValue,
		`column "src" has type floating point, src can be any integer, utf8`,
	},
	{
		"text weight",
		event.KindEdge,
		append(idColumns(), col{"weight", texts.String}),
		event.BadValue,
		`column "weight" has type utf8`,
	},
	{
		"half weight",
		event.KindEdge,
		append(idColumns(), col{"weight", arrow.FixedWidthTypes.Float16}),
		event.BadValue,
		"half-precision",
	},
	{
		"date",
		event.KindEdge,
		append(idColumns(), col{"time", prims.Date32}),
		event.BadValue,
		`column "time" has type date`,
	},
	{
		"duration",
		event.KindEdge,
		append(idColumns(), col{"ttl", arrow.FixedWidthTypes.Duration_s}),
		event.BadValue,
		"type duration",
	},
	{
		"decimal",
		event.KindEdge,
		append(idColumns(), col{"weight", &arrow.Decimal128Type{Precision: 5, Scale: 2}}),
		event.BadValue,
		"type decimal",
	},
	{
		"struct",
		event.KindEdge,
		append(idColumns(), col{"op", arrow.StructOf(arrow.Field{Name: "x", Type: prims.Int8})}),
		event.BadValue,
		"type struct",
	},
	{
		"list",
		event.KindPrediction,
		[]col{{"vertex", prims.Int8}, {"p", arrow.ListOf(prims.Float64)}},
		event.BadValue,
		"type list",
	},
	{
		"integer list",
		event.KindPrediction,
		[]col{{"vertex", prims.Int8}, {"p", arrow.FixedSizeListOf(2, prims.Int64)}},
		event.BadValue,
		"fixed size list",
	},
	{
		"integer categories",
		event.KindEdge,
		[]col{
			{"src", &arrow.DictionaryType{IndexType: prims.Int8, ValueType: prims.Int64}},
			{"dst", prims.Int8},
		},
		event.BadValue,
		"dictionary of int",
	},
	{
		"config categories",
		event.KindControl,
		[]col{{"op", texts.String}, {"config", textDictionary(prims.Int8)}},
		event.BadValue,
		"dictionary of utf8",
	},
	{
		"list of three",
		event.KindPrediction,
		[]col{{"vertex", prims.Int8}, {"p", arrow.FixedSizeListOf(3, prims.Float64)}},
		event.WrongClasses,
		"lists of 3 for 2",
	},
	{
		"p2 of two",
		event.KindPrediction,
		[]col{
			{"vertex", prims.Int8},
			{"p0", prims.Float64},
			{"p1", prims.Float64},
			{"p2", prims.Float64},
		},
		event.WrongClasses,
		`column "p2" for 2`,
	},
	{
		"no p1",
		event.KindPrediction,
		[]col{{"vertex", prims.Int8}, {"p0", prims.Float64}},
		event.WrongClasses,
		"no column p1",
	},
	{
		"p0 twice",
		event.KindPrediction,
		[]col{{"vertex", prims.Int8}, {"p0", prims.Float64}, {"p0", prims.Float64}},
		event.Malformed,
		`column "p0" given twice`,
	},
	{
		"p and p0",
		event.KindPrediction,
		[]col{
			{"vertex", prims.Int8},
			{"p0", prims.Float64},
			{"p1", prims.Float64},
			{"p", arrow.FixedSizeListOf(2, prims.Float64)},
		},
		event.BadValue,
		"exclude",
	},
	{
		"p and probabilities",
		event.KindPrediction,
		[]col{
			{"vertex", prims.Int8},
			{"probabilities", arrow.FixedSizeListOf(2, prims.Float64)},
			{"p", arrow.FixedSizeListOf(2, prims.Float64)},
		},
		event.Malformed,
		"given twice",
	},
	{
		"nothing predicted",
		event.KindPrediction,
		[]col{{"vertex", prims.Int8}},
		event.MissingField,
		"without columns p0 to p1",
	},
	{
		"p01",
		event.KindPrediction,
		[]col{{"vertex", prims.Int8}, {"p01", prims.Float64}},
		event.UnknownField,
		`"p01"`,
	},
	{"no columns", event.KindEdge, nil, event.MissingField, `without a column "src"`},
}

// A stream with a schema that is not one of ours is refused whole, with the column and the
// mistake.
func TestBadArrowSchemasAreRefused(t *testing.T) {
	d := newDecoder(t, 2)
	check := func(kind event.Kind, columns []col, reason event.Reason, detail string) {
		m := Message{
			Kind:        kind,
			ContentType: Arrow,
			Payload:     arrowStream(t, columns, nil, nil),
			Position:    12,
		}
		checkBad(t, d, badCase{"", kind, "", true, reason, detail}, m)
	}
	for _, c := range badSchemas {
		t.Run(c.name, func(*testing.T) { check(c.kind, c.columns, c.reason, c.detail) })
	}
	many := idColumns()
	for i := range 70 {
		many = append(many, col{strings.Repeat("x", i+1), prims.Int8})
	}
	check(event.KindEdge, many, event.TooLarge, "72 columns")
}

// A stream that is damaged, compressed, cut or framed in another way is refused
// whole.
func TestDamagedArrowIsRefused(t *testing.T) {
	good := arrowStream(t, idColumns(), nil, nil, `[{"src":1,"dst":2}]`)
	packed := func(option ipc.Option) []byte {
		return arrowStream(t, idColumns(), nil, []ipc.Option{option}, `[{"src":1,"dst":2}]`)
	}
	change := func(payload []byte, at int, value uint32) []byte {
		c := bytes.Clone(payload)
		binary.LittleEndian.PutUint32(c[at:], value)
		return c
	}
	schemaSize := 8 + int(binary.LittleEndian.Uint32(good[4:]))
	for _, c := range []struct {
		name    string
		payload []byte
		detail  string
	}{
		{"lz4", packed(ipc.WithLZ4()), "compressed Arrow bodies are not read, write without " +
			"compression"},
		{"zstd", packed(ipc.WithZstd()), "compressed Arrow bodies are not read, write without " +
			"compression"},
		{"Arrow file", append([]byte("ARROW1\x00\x00"), good...), "byte 0: this is an Arrow file"},
		{"no schema", good[schemaSize:], "begins with its schema"},
		{
			"two schemas", append(bytes.Clone(good[:schemaSize]), good...),
			"type 1 in place of a record batch",
		},
		{"nothing but the end", good[len(good)-8:], "has no schema"},
		{"after the end", append(bytes.Clone(good), good[len(good)-8:]...), "after the end"},
		{"old framing", good[4:], "no Arrow message begins here"},
		{"metadata too long", change(good, 4, 1<<30), "metadata of 1073741824 bytes"},
		{"metadata negative", change(good, 4, 0xffffff00), "metadata of -256 bytes"},
		{"root outside", change(good, 8, 0x7fffffff), "points outside itself"},
		{"cut in the schema", good[:schemaSize/2], "bytes"},
		{"cut in the batch", good[:schemaSize+40], "bytes"},
		{"cut in the body", good[:len(good)-16], "Arrow body of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Message{ContentType: Arrow, Payload: c.payload, Position: 12}
			checkBad(
				t, newDecoder(t, 2),
				badCase{"", event.KindEdge, "", true, event.Malformed, c.detail}, m,
			)
		})
	}
}

// sharedSchema returns a schema of nested columns: each has the next one as a child so many
// times, levels deep.
func sharedSchema(levels, times int) []byte {
	le := binary.LittleEndian
	metadata := le.AppendUint32(nil, 16) // to the message
	// its vtable, and itself
	for _, word := range []uint16{10, 12, 4, 6, 8, 0, 12, 0, 4, headerSchema} {
		metadata = le.AppendUint16(metadata, word)
	}
	metadata = le.AppendUint32(
		metadata,
		20,
	) // to the schema, behind the vtable of schemas and columns
	vtable := len(metadata)
	for _, word := range []uint16{16, 8, 0, 4, 0, 0, 0, 4} {
		metadata = le.AppendUint16(metadata, word)
	}
	for ; levels > 0; levels-- {
		metadata = le.AppendUint32(metadata, uint32(len(metadata)-vtable))
		metadata = le.AppendUint32(le.AppendUint32(metadata, 4), uint32(times))
		for i := range times {
			metadata = le.AppendUint32(metadata, uint32(4*(times-i)))
		}
	}
	metadata = le.AppendUint32(metadata, uint32(len(metadata)-vtable))
	metadata = le.AppendUint64(metadata, 4) // a vector of nothing
	return append(le.AppendUint32(bytes.Clone(continuation), uint32(len(metadata))), metadata...)
}

// A schema can have few distinct types and refer to them so often that a full traversal takes too
// long. Such a schema must be refused without a full traversal.
func TestSharedTypesOfASchemaAreRefused(t *testing.T) {
	if err := CheckArrowSchema(sharedSchema(arrowDepthMax, 1)); err != nil {
		t.Errorf("one type in each: %v", err)
	}
	if err := CheckArrowSchema(sharedSchema(arrowDepthMax+1, 1)); err == nil ||
		!strings.Contains(err.Error(), "16 deep") {
		t.Errorf("too deep: %v", err)
	}
	if err := CheckArrowSchema(sharedSchema(arrowDepthMax, 3)); err == nil ||
		!strings.Contains(err.Error(), "share") {
		t.Errorf("three times the same type in each: %v", err)
	}
}

// The schema version may stand in the metadata of the schema.
func TestArrowSchemaVersion(t *testing.T) {
	d := newDecoder(t, 2)
	columns := []col{{"src", arrow.PrimitiveTypes.Int64}, {"dst", arrow.PrimitiveTypes.Int64}}
	for version, want := range map[string]error{"1": nil, "2": ErrMalformed, "x": ErrMalformed} {
		payload := arrowStream(
			t, columns, map[string]string{"gqlstream.schema": version}, nil, `[{"src":1,"dst":2}]`,
		)
		var b event.Batch
		if err := d.Decode(Message{Payload: payload, Position: 9}, &b); !errors.Is(err, want) {
			t.Errorf("version %s: %v", version, err)
		} else if err != nil && !strings.Contains(err.Error(), "position 9") {
			t.Errorf("version %s: no position in %v", version, err)
		}
	}
}
