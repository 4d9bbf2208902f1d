package files

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	"gqlstream/internal/testfile"
)

var testTypes = map[string]arrow.DataType{
	"int":   arrow.PrimitiveTypes.Int64,
	"float": arrow.PrimitiveTypes.Float64,
	"text":  arrow.BinaryTypes.String,
	"list":  arrow.ListOf(arrow.PrimitiveTypes.Float64),
	"dict": &arrow.DictionaryType{
		IndexType: arrow.PrimitiveTypes.Int32,
		ValueType: arrow.BinaryTypes.String,
	},
	"us":   arrow.FixedWidthTypes.Timestamp_us,
	"bool": arrow.FixedWidthTypes.Boolean,
}

func (t testTable) schema() *arrow.Schema {
	fields := make([]arrow.Field, len(t.columns))
	for i, name := range t.columns {
		fields[i] = arrow.Field{Name: name, Type: testTypes[t.types[i]], Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// chunkRows is how many rows a record has.
func (t testTable) chunkRows() int {
	if t.chunk == 0 {
		return 300
	}
	return t.chunk
}

// records cuts the table into records.
func (t testTable) records(tb testing.TB) []arrow.RecordBatch {
	tb.Helper()
	builder := array.NewRecordBuilder(memory.DefaultAllocator, t.schema())
	defer builder.Release()
	var out []arrow.RecordBatch
	for i, row := range t.rows {
		for column, x := range row {
			appendValue(tb, builder.Field(column), x)
		}
		if (i+1)%t.chunkRows() == 0 || i == len(t.rows)-1 {
			out = append(out, builder.NewRecordBatch())
		}
	}
	return out
}

func appendValue(tb testing.TB, b array.Builder, x any) {
	tb.Helper()
	if x == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(x.(int64))
	case *array.Float64Builder:
		b.Append(x.(float64))
	case *array.StringBuilder:
		b.Append(x.(string))
	case *array.BooleanBuilder:
		b.Append(x.(bool))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(x.(int64)))
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(x.(string)); err != nil {
			tb.Fatal(err)
		}
	case *array.ListBuilder:
		b.Append(true)
		b.ValueBuilder().(*array.Float64Builder).AppendValues(x.([]float64), nil)
	default:
		tb.Fatalf("no values for %T", b)
	}
}

func (t testTable) arrow(tb testing.TB) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "table")
	file, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	w, err := ipc.NewFileWriter(file, ipc.WithSchema(t.schema()), ipc.WithZstd())
	if err != nil {
		tb.Fatal(err)
	}
	for _, record := range t.records(tb) {
		if err := w.Write(record); err != nil {
			tb.Fatal(err)
		}
		record.Release()
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func (t testTable) parquet(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(
		t.schema(),
		&out,
		parquet.NewWriterProperties(
			parquet.WithCompression(compress.Codecs.Snappy),
			parquet.WithMaxRowGroupLength(int64(t.chunkRows()+200)),
		),
		pqarrow.DefaultWriterProps(),
	)
	if err != nil {
		tb.Fatal(err)
	}
	for _, record := range t.records(tb) {
		if err := w.WriteBuffered(record); err != nil {
			tb.Fatal(err)
		}
		record.Release()
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// Values may come in the types that pyarrow, Polars and DuckDB use for them.
func TestArrowColumnTypes(t *testing.T) {
	leakCheck(t)
	table := testTable{
		kind:    event.KindPrediction,
		columns: []string{"vertex", "probabilities", "version", "ts"},
		types:   []string{"float", "list", "dict", "us"},
		rows: [][]any{
			{7.0, []float64{0.25, 0.75}, "m1", int64(1_700_000_000_000_001)},
			{8.0, []float64{1, 0}, nil, nil},
			{9.5, []float64{1, 0}, nil, nil},
			{10.0, []float64{1, 0, 0}, "m2", nil},
			{11.0, nil, "m2", nil},
		},
	}
	for _, format := range []string{"arrow", "parquet"} {
		path := writeFile(t, "predictions."+format, table.encode(t, format))
		got := merged(readAll(t, Config{
			Inputs:  []Input{{Path: path, Kind: event.KindPrediction}},
			Classes: event.ClassSet{Count: 2},
		}))
		if len(got.Predictions) != 2 || len(got.Refused) != 3 {
			t.Fatalf(
				"%s: %d predictions, %d refused, want 2 and 3", format, len(got.Predictions),
				len(got.Refused),
			)
		}
		last := got.Predictions[1] // the one with a time comes last
		if last.Vertex != event.NumberID(7) || last.Version != "m1" ||
			last.Time != 1_700_000_000_000_001_000 ||
			last.Units[0] != event.One/4 {
			t.Fatalf("%s: prediction %+v", format, last)
		}
		reasons := []event.Reason{event.BadID, event.WrongClasses, event.MissingField}
		for i, r := range got.Refused {
			if r.Reason != reasons[i] || !strings.HasPrefix(string(r.Original), `{"`) {
				t.Errorf(
					"%s: refusal %d is %s (%s) of %s, want %s", format, i, r.Reason, r.Detail,
					r.Original, reasons[i],
				)
			}
		}
	}
}

// A damaged file is an error that names it, or is read as other values: never a
// panic.
func TestDamagedArrowAndParquetFilesAreErrors(t *testing.T) {
	leakCheck(t)
	const seed = 9
	r := rand.New(rand.NewPCG(seed, 0))
	table := randomTables(r, 40)[0]
	for _, format := range []string{"arrow", "parquet"} {
		whole := table.encode(t, format)
		path := writeFile(t, "edges."+format, whole)
		refused := 0
		for i := range 150 {
			data := bytes.Clone(whole)
			if i%3 == 0 {
				data = data[:r.IntN(len(data))]
			} else {
				data[r.IntN(len(data))] ^= byte(1 << r.IntN(8))
			}
			testfile.Write(t, path, data)
			if err := readQuietly(path); err != nil {
				refused++
				if !strings.Contains(err.Error(), path) {
					t.Fatalf("seed %d %s case %d: %v does not name the file", seed, format, i, err)
				}
			}
		}
		if refused < 40 { // a flipped bit in a value is another value
			t.Errorf(
				"seed %d: %d of 150 damaged %s files were errors, want 40 or more", seed, refused,
				format,
			)
		}
	}
}

// The error about columns that a file lacks names a column that has columns of its own.
func TestColumnsInsideColumnsAreNamed(t *testing.T) {
	edge := arrow.StructOf(
		arrow.Field{Name: "src", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "dst", Type: arrow.BinaryTypes.String})
	schema := arrow.NewSchema([]arrow.Field{{Name: "edge", Type: edge}}, nil)
	_, err := setSchema(newColumns(event.KindEdge, nil, nil), schema)
	want := "edge has columns of its own, src, dst: write these beside the others"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
