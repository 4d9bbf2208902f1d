package files

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// streamOf returns a record as an Arrow stream.
func streamOf(t *testing.T, columns ...arrow.Array) []byte {
	t.Helper()
	var fields []arrow.Field
	for i, name := range []string{"src", "dst"} {
		fields = append(
			fields,
			arrow.Field{Name: name, Type: columns[i].DataType(), Nullable: true},
		)
	}
	schema := arrow.NewSchema(fields, nil)
	record := array.NewRecordBatch(schema, columns, int64(columns[0].Len()))
	var out bytes.Buffer
	if err := writeAll(ipc.NewWriter(&out, ipc.WithSchema(schema)),
		[]arrow.RecordBatch{record}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A damaged file is refused, with the reason, before its claims cost memory or time.
func TestClaimsOfDamagedFiles(t *testing.T) {
	rows := array.NewNull(2 * rowsWithoutValuesMax)
	few := array.NewNull(3)
	for name, test := range map[string]struct {
		path, want string
	}{
		"rows without values": {
			writeFile(t, "x.arrows", streamOf(t, rows, rows)),
			"2097152 rows without values",
		},
		"two streams": {
			writeFile(t, "x.arrow", bytes.Repeat(streamOf(t, few, few), 2)),
			"bytes follow the end of the Arrow stream",
		},
		"no room for a schema": {
			writeFile(t, "y.arrow", []byte("ARROW1\x00\x00\x00\x00ARROW1")),
			"footer",
		},
		"pages outside": {
			filepath.Join("testdata", "damaged", "pages-outside.parquet"),
			"has pages outside the file",
		},
		"a decimal": {
			filepath.Join("testdata", "damaged", "decimal.feather"),
			"a decimal of 1073741836 digits",
		},
	} {
		if err := readQuietly(test.path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// A footer that leaves batches out is an error: their rows would vanish.
func TestBatchesThatTheFooterLeavesOut(t *testing.T) {
	const batches = 5
	table := testTable{columns: []string{"src", "dst"}, types: []string{"int", "int"}, chunk: 10}
	for i := range int64(10 * batches) {
		table.rows = append(table.rows, []any{i, i + 1})
	}
	whole := table.arrow(t)
	length := int(binary.LittleEndian.Uint32(whole[len(whole)-10:]))
	footer, errs := len(whole)-10-length, 0
	for at := footer; at < len(whole)-14; at++ {
		if binary.LittleEndian.Uint32(whole[at:]) != batches {
			continue
		}
		for n := range uint32(batches) {
			data := bytes.Clone(whole)
			binary.LittleEndian.PutUint32(data[at:], n)
			path := writeFile(t, "x.arrow", data)
			read, _, _, err := account(
				t,
				path,
				Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}},
			)
			if err == nil && read != len(table.rows) {
				t.Errorf("byte %d is %d: %d rows of %d are read", at, n, read, len(table.rows))
			} else if err != nil {
				errs++
			}
		}
	}
	if errs == 0 {
		t.Error("no footer was refused")
	}
}

// arrowFiles returns the Arrow files and streams that other programs wrote, with their bytes.
func arrowFiles(t *testing.T) (all []programFile, data [][]byte) {
	folder := filepath.Join("testdata", "others")
	for _, f := range programFiles(t, folder) {
		if ext := filepath.Ext(f.File); ext == ".arrow" || ext == ".feather" {
			whole, err := os.ReadFile(filepath.Join(folder, f.File))
			if err != nil {
				t.Fatal(err)
			}
			all, data = append(all, f), append(data, whole)
		}
	}
	if len(all) == 0 {
		t.Fatal("no Arrow files")
	}
	return all, data
}

// readDamaged reads a damaged Arrow file. It is an error, or all of its rows are accounted for.
func readDamaged(t *testing.T, f programFile, data []byte, what string, at int) error {
	t.Helper()
	path := writeFile(t, "x.arrow", data)
	rows, _, _, err := account(t, path, Config{
		Inputs: []Input{{Path: path, Kind: event.KindEdge}}, Zone: time.UTC,
		Columns: map[string]string{},
	})
	if err == nil && rows != f.Rows {
		t.Errorf("%s, %s at byte %d: %d rows are read of %d", f.File, what, at, rows, f.Rows)
	}
	return err
}

// A record batch or a dictionary that claims more text buffers than it lists is an error: the
// reader allocates as many as it claims, and 2^33 of them end the process.
func TestNumberOfTextBuffers(t *testing.T) {
	const claimed = 1 << 33
	refused := map[string]int{}
	files, contents := arrowFiles(t)
	for i, f := range files {
		if !strings.HasPrefix(f.File, "polars_ipc") { // with views
			continue
		}
		for at := 0; at+8 <= min(len(contents[i]), 1<<12); at += 8 {
			data := bytes.Clone(contents[i])
			binary.LittleEndian.PutUint64(data[at:], claimed)
			if err := readDamaged(t, f, data, "a count", at); err != nil &&
				strings.Contains(err.Error(), "a number of text buffers that cannot be") {
				refused[f.File]++
			}
		}
	}
	if len(refused) == 0 {
		t.Error("no number of text buffers was found")
	}
	t.Log(refused)
}

// A batch that claims the messages behind it as a part of its body is an error: their rows would
// vanish.
func TestBodyThatHidesMessages(t *testing.T) {
	column := array.NewStringBuilder(memory.DefaultAllocator)
	column.AppendValues(strings.Fields("ann bob"), nil)
	one := column.NewArray()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "src", Type: one.DataType()}, {Name: "dst", Type: one.DataType()},
	}, nil)
	record := array.NewRecordBatch(schema, []arrow.Array{one, one}, 2)
	var out bytes.Buffer
	if err := writeAll(ipc.NewWriter(&out, ipc.WithSchema(schema)),
		[]arrow.RecordBatch{record, record, record, record}); err != nil {
		t.Fatal(err)
	}
	stream := out.Bytes()
	var messages []int
	for at := 0; at < len(stream); at += 8 {
		if binary.LittleEndian.Uint32(stream[at:]) == 1<<32-1 {
			messages = append(messages, at)
		}
	}
	if len(messages) != 6 { // schema, batches, end
		t.Fatalf("%d messages", len(messages))
	}
	for i, from := range messages[1:4] {
		body := from + 8 + int(binary.LittleEndian.Uint32(stream[from+4:]))
		next := messages[i+2]
		data := bytes.Clone(stream)
		at := bytes.LastIndex(data[:body],
			binary.LittleEndian.AppendUint64(nil, uint64(next-body)))
		for _, to := range messages[i+3:] {
			binary.LittleEndian.PutUint64(data[at:], uint64(to-body))
			err := readQuietly(writeFile(t, "x.arrow", data))
			if err == nil || !strings.Contains(err.Error(), "longer than its buffers") {
				t.Errorf("batch %d with a body up to byte %d: %v", i, to, err)
			}
		}
	}
}

// A footer that loses any of its numbers leaves no row out.
func TestFooterThatLosesANumber(t *testing.T) {
	files, contents := arrowFiles(t)
	refused, seen := 0, map[string]bool{}
	for i, f := range files {
		whole := contents[i]
		program, _, _ := strings.Cut(f.File, "-")
		if !bytes.HasPrefix(whole, []byte(arrowMagic)) || seen[program] {
			continue
		}
		seen[program] = true
		length := int(binary.LittleEndian.Uint32(whole[len(whole)-arrowSuffix:]))
		for at := len(whole) - arrowSuffix - length; at+4 <= len(whole)-arrowSuffix; at += 4 {
			data := bytes.Clone(whole)
			clear(data[at : at+4])
			if readDamaged(t, f, data, "zero", at) != nil {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("no footer was refused")
	}
}

// A stream that ends inside a message is an error. One that ends between two batches, as the format
// allows, is read with a warning.
func TestArrowStreamThatEndsEarly(t *testing.T) {
	files, contents := arrowFiles(t)
	streams, whole := 0, 0
	for i, f := range files {
		data := contents[i]
		if bytes.HasPrefix(data, []byte(arrowMagic)) {
			continue
		}
		streams++
		for n := 0; n < len(data); n += 8 {
			path := writeFile(t, "x.arrow", data[:n])
			source, err := NewSource(Config{
				Inputs: []Input{{Path: path, Kind: event.KindEdge}}, Zone: time.UTC,
			})
			if err != nil {
				continue
			}
			err = drain(source, func(*event.Batch) {})
			warned := strings.Contains(strings.Join(source.Warnings(), "\n"), "no mark of its end")
			if err != nil || !warned {
				t.Errorf(
					"%s: the first %d bytes of %d are read: %v, warned: %v", f.File, n, len(data),
					err, warned,
				)
			}
			if source.Tallies()[0].Rows == f.Rows {
				whole++
			}
			source.Close()
		}
	}
	if streams == 0 || whole != streams {
		t.Errorf("%d of %d streams without the mark have all of their rows", whole, streams)
	}
}

// A stored Arrow schema that names a text where the file has a list is an error: the library gives
// no reader for it.
func TestParquetSchemaThatDoesNotFit(t *testing.T) {
	list, text := arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.BinaryTypes.LargeString
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64)
	b.AppendNull()
	column := b.NewArray()
	json, err := extensions.NewJSONType(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range []arrow.DataType{text, json, list} {
		fields := func(of arrow.DataType) *arrow.Schema {
			return arrow.NewSchema([]arrow.Field{
				{Name: "src", Type: of, Nullable: true}, {Name: "dst", Type: list, Nullable: true},
			}, nil)
		}
		var stored, file bytes.Buffer
		if err := ipc.NewWriter(&stored, ipc.WithSchema(fields(claim))).Close(); err != nil {
			t.Fatal(err)
		}
		w, err := pqarrow.NewFileWriter(fields(list), &file, nil, pqarrow.DefaultWriterProps())
		if err != nil {
			t.Fatal(err)
		}
		record := array.NewRecordBatch(fields(list), []arrow.Array{column, column}, 1)
		if err := errors.Join(w.Write(record), w.AppendKeyValueMetadata("ARROW:schema",
			base64.StdEncoding.EncodeToString(stored.Bytes())), w.Close()); err != nil {
			t.Fatal(err)
		}
		err = readQuietly(writeFile(t, "x.parquet", file.Bytes()))
		fits := err == nil || !strings.Contains(err.Error(), "column src: damaged")
		if fits != (claim == list) {
			t.Errorf("%v: %v", claim, err)
		}
	}
}

// A reader allocates by the number of a batch's metadata, so a number beyond the message is refused
// before.
func TestNumberOfMetadataOfABatch(t *testing.T) {
	const entries = 7
	meta := map[string]string{}
	for i := range entries {
		meta[fmt.Sprint("key ", i)] = "value"
	}
	column := array.NewInt64Builder(memory.DefaultAllocator)
	column.AppendValues([]int64{1, 2}, nil)
	values := column.NewArray()
	schema := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int64}}, nil)
	batch := array.NewRecordBatchWithMetadata(
		schema, []arrow.Array{values}, 2, arrow.MetadataFrom(meta),
	)
	var file bytes.Buffer
	w := ipc.NewWriter(&file, ipc.WithSchema(schema))
	if err := errors.Join(w.Write(batch), w.Close()); err != nil {
		t.Fatal(err)
	}
	sound, refused := file.Bytes(), 0
	if ended, err := wire.CheckArrowStream(bytes.NewReader(sound), int64(len(sound))); err != nil ||
		!ended {
		t.Fatal(ended, err)
	}
	for at := 0; at+4 <= len(sound); at += 4 {
		if binary.LittleEndian.Uint32(sound[at:]) != entries {
			continue
		}
		damaged := bytes.Clone(sound)
		binary.LittleEndian.PutUint32(damaged[at:], 1<<28)
		_, err := wire.CheckArrowStream(bytes.NewReader(damaged), int64(len(damaged)))
		if err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no number of metadata is refused")
	}
}
