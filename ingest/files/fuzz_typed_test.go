package files

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"gqlstream/ingest/event"
)

// dice makes choices from the bytes of a fuzzer; when these are over it chooses the first.
type dice []byte

func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	x := int((*d)[0])
	*d = (*d)[1:]
	return x % n
}

// fuzzTypes are types of columns that other programs write.
var fuzzTypes = []arrow.DataType{
	arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64,
	arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8,
	arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Float32, arrow.FixedWidthTypes.Float16,
	arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, arrow.BinaryTypes.Binary,
	arrow.FixedWidthTypes.Boolean, arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_ns,
	&arrow.TimestampType{Unit: arrow.Millisecond}, &arrow.Decimal128Type{Precision: 20},
	&arrow.Decimal128Type{Precision: 12, Scale: 3},
	&arrow.DictionaryType{
		IndexType: arrow.PrimitiveTypes.Int16,
		ValueType: arrow.BinaryTypes.String,
	},
	arrow.ListOf(
		arrow.PrimitiveTypes.Float64,
	), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32),
	arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String),
	arrow.Null, arrow.FixedWidthTypes.Duration_s,
	arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String}),
}

// fuzzTexts are texts of cells, as every type parses them where it can.
var fuzzTexts = []string{
	"1", "2", "a", "b", "0", "-1", "NA", "", "0.5", "1e300", "NaN", "123456789012345678", "left",
	"true",
	"2024-05-01T12:00:00Z", "2024-05-01 12:00:00", "-0.0000001", " x\u00a0", "a\x00b", "inf",
	"1714564800",
}

var fuzzNames = []string{
	"src", "dst", "vertex", "label", "p0", "p1", "weight", "time", "author", "community", "Source",
	"Target", "id", "class", "probabilities", "op", "ttl", "multiplicity", "erase", "reply_to",
	"lang",
	"score", "", "__index_level_0__", "role", "pi", "version",
}

// table returns a table of up to 40 rows in records.
func (d *dice) table() (schema *arrow.Schema, records []arrow.RecordBatch) {
	fields := []arrow.Field{}
	for range 2 + d.roll(4) {
		fields = append(fields, arrow.Field{
			Name: fuzzNames[d.roll(len(fuzzNames))], Type: fuzzTypes[d.roll(len(fuzzTypes))],
			Nullable: true,
		})
	}
	schema = arrow.NewSchema(fields, nil)
	for range 1 + d.roll(3) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		n := d.roll(14)
		for i := range fields {
			for range n {
				d.value(b.Field(i))
			}
		}
		records = append(records, b.NewRecordBatch())
		b.Release()
	}
	return schema, records
}

// value appends a value: a text that the type can parse, or null.
func (d *dice) value(b array.Builder) {
	text := fuzzTexts[d.roll(len(fuzzTexts))]
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(true)
		for range d.roll(4) {
			d.value(b.ValueBuilder())
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		d.value(b.ValueBuilder())
		d.value(b.ValueBuilder())
	case *array.StructBuilder:
		b.Append(true)
		d.value(b.FieldBuilder(0))
	case *array.RunEndEncodedBuilder:
		b.Append(1)
		d.value(b.ValueBuilder())
	case *array.BinaryBuilder:
		b.Append([]byte(text))
	case *array.Float64Builder:
		b.Append([]float64{
			0, 1, .5, -1, 1e300, math.NaN(), math.Inf(1), 42, 1.23e18,
			-1e-9,
		}[d.roll(10)])
	default:
		before := b.Len()
		if err := b.AppendValueFromString(text); err != nil && b.Len() == before {
			b.AppendNull()
		}
	}
}

// typedForms write records as files of other programs. They return nil where a form has no such
// type.
var typedForms = map[string]func(*testing.T, *dice, *arrow.Schema, []arrow.RecordBatch) []byte{
	"x.parquet": parquetOf,
	"x.arrow": func(t *testing.T, d *dice, s *arrow.Schema, records []arrow.RecordBatch) []byte {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		options := []ipc.Option{ipc.WithSchema(s)}
		if d.roll(2) == 1 {
			options = append(options, ipc.WithLZ4())
		}
		w, err := ipc.NewFileWriter(file, options...)
		if err != nil || writeAll(w, records) != nil {
			return nil
		}
		data, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return data
	},
	"x.arrows": func(_ *testing.T, _ *dice, s *arrow.Schema, records []arrow.RecordBatch) []byte {
		var out bytes.Buffer
		if writeAll(ipc.NewWriter(&out, ipc.WithSchema(s)), records) != nil {
			return nil
		}
		return out.Bytes()
	},
}

func parquetOf(_ *testing.T, d *dice, s *arrow.Schema, records []arrow.RecordBatch) (data []byte) {
	defer func() {
		if p := recover(); p != nil { // the writer has no such type
			data = nil
		}
	}()
	codecs := []compress.Compression{
		compress.Codecs.Snappy, compress.Codecs.Zstd, compress.Codecs.Gzip,
		compress.Codecs.Uncompressed,
	}
	versions := []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2}
	properties := parquet.NewWriterProperties(
		parquet.WithCompression(codecs[d.roll(len(codecs))]),
		parquet.WithDataPageVersion(versions[d.roll(2)]),
		parquet.WithDictionaryDefault(d.roll(2) == 0),
		parquet.WithMaxRowGroupLength(int64(5+d.roll(20))),
	)
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(
		s, &out, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()),
	)
	if err != nil {
		return nil
	}
	for _, record := range records {
		if w.WriteBuffered(record) != nil {
			return nil
		}
	}
	if w.Close() != nil {
		return nil
	}
	return out.Bytes()
}

func writeAll(w interface {
	Write(arrow.RecordBatch) error
	Close() error
}, records []arrow.RecordBatch,
) error {
	for _, record := range records {
		if err := w.Write(record); err != nil {
			return err
		}
	}
	return w.Close()
}

// account reads a file to its end and returns its numbers of rows, events and refused rows. If the
// file cannot be read, account returns the error. Every row must be an event, refused, or without
// an assertion.
func account(t *testing.T, path string, config Config) (rows, events, refused int, err error) {
	t.Helper()
	source, err := NewSource(config)
	if err != nil {
		return 0, 0, 0, err
	}
	defer source.Close()
	if err := drain(source, func(b *event.Batch) {
		events += b.Events()
		refused += len(b.Refused)
	}); err != nil {
		return 0, 0, 0, err
	}
	tally := source.Tallies()[0]
	silent := tally.Blank + tally.MinusOne + tally.Names
	if tally.Rows != events+refused+silent {
		t.Fatalf(
			"%s: %d rows, %d events, %d refused, %d ignored", path, tally.Rows, events,
			refused, silent,
		)
	}
	if _, again, other := source.survey.edges.totals(); again+other > events {
		t.Fatalf("%s: %d repeats of %d events", path, again+other, events)
	}
	_, _ = source.Summary(), source.Warnings()
	return tally.Rows, events, refused, nil
}

// For any types of columns, every row of a Parquet or Arrow table must be an event, refused, or
// without an assertion. All formats of a table must give the same counts.
func FuzzTypedRowsAreAccountedFor(f *testing.F) {
	for kind := range byte(6) {
		for first := range byte(len(fuzzTypes)) {
			f.Add(
				[]byte{
					2,
					kind * 2,
					first,
					kind*2 + 1,
					first,
					4,
					first,
					1,
					12,
					0,
					1,
					2,
					3,
					4,
					5,
					6,
					7,
					8,
					9,
				},
				kind,
			)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		d := dice(slices.Clone(data))
		schema, records := d.table()
		want := 0
		for _, record := range records {
			want += int(record.NumRows())
			defer record.Release()
		}
		seen := map[string]string{}
		for name, write := range typedForms {
			rest := slices.Clone(d)
			content := write(t, &rest, schema, records)
			if content == nil {
				continue
			}
			path := writeFile(t, name, content)
			rows, events, refused, err := account(t, path, Config{
				Inputs:  []Input{{Path: path, Kind: event.Kind(kind) % event.KindControl}},
				Classes: event.ClassSet{Count: 2},
			})
			if err != nil {
				continue
			}
			if rows != want {
				t.Fatalf("%s of %v: %d rows are read of %d", name, schema, rows, want)
			}
			seen[name] = fmt.Sprintf("%d events, %d refused", events, refused)
		}
		if a, b := seen["x.arrow"], seen["x.arrows"]; a != b {
			t.Fatalf("%v: %q from a file, %q from a stream", schema, a, b)
		}
		if a, b := seen["x.arrow"], seen["x.parquet"]; a != b && a != "" && b != "" {
			t.Fatalf("%v: %q from Arrow, %q from Parquet", schema, a, b)
		}
	})
}

// A damaged Parquet or Arrow file is an error or has other values. No input panics, and no row that
// was read is lost.
func FuzzDamagedTypedFiles(f *testing.F) {
	names := []string{"x.parquet", "x.arrow", "x.arrows"}
	for seed := range byte(4) {
		for form, name := range names {
			d := dice{
				2,
				0,
				seed * 2,
				1,
				seed,
				4,
				2,
				6,
				seed + 1,
				6,
				5,
				4,
				3,
				2,
				1,
				9,
				8,
				7,
				6,
				5,
				4,
				3,
				seed,
				1,
				0,
			}
			schema, records := d.table()
			content := typedForms[name](&testing.T{}, &d, schema, records)
			if content != nil {
				f.Add(content, byte(form), byte(0))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, form, kind byte) {
		path := writeFile(t, names[int(form)%len(names)], data)
		_, _, _, _ = account(t, path, Config{
			Inputs:  []Input{{Path: path, Kind: event.Kind(kind) % event.KindControl}},
			Classes: event.ClassSet{Count: 2},
		})
	})
}

// A stored schema that claims more bytes than there are is refused before memory is asked for it:
// more than there is would end the process.
func TestDamagedLengthsAskForNoMemory(t *testing.T) {
	const claims = "\xff\xff\xff\xff\xff\xff\xff\x7f" // a message of 2 GiB
	schema := arrow.NewSchema([]arrow.Field{
		{
			Name: "src",
			Type: arrow.BinaryTypes.String,
		}, {Name: "dst", Type: arrow.BinaryTypes.String},
	}, nil)
	var stored bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &stored, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AppendKeyValueMetadata("ARROW:schema",
		base64.StdEncoding.EncodeToString([]byte(claims))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	err = readQuietly(writeFile(t, "edges.parquet", stored.Bytes()))
	if err == nil || !strings.Contains(err.Error(), "its Arrow schema") {
		t.Errorf("%v", err)
	}
}
