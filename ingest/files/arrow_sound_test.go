package files

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"gqlstream/ingest/event"
)

// streamOf returns a record as an Arrow stream.
func streamOf(t *testing.T, columns ...arrow.Array) []byte {
	t.Helper()
	var fields []arrow.Field
	for i, name := range []string{"src", "dst"} {
		fields = append(fields, arrow.Field{Name: name, Type: columns[i].DataType(), Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	record := array.NewRecordBatch(schema, columns, int64(columns[0].Len()))
	var out bytes.Buffer
	if err := writeAll(ipc.NewWriter(&out, ipc.WithSchema(schema)), []arrow.RecordBatch{record}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What a damaged file claims is refused before it costs memory or time, and says what is wrong.
func TestClaimsOfDamagedFiles(t *testing.T) {
	rows := array.NewNull(2 * rowsWithoutValuesMax)
	few := array.NewNull(3)
	for name, test := range map[string]struct {
		path, want string
	}{
		"rows without values": {writeFile(t, "x.arrows", streamOf(t, rows, rows)), "2097152 rows without values"},
		"two streams": {
			writeFile(t, "x.arrow", bytes.Repeat(streamOf(t, few, few), 2)), "bytes follow the end of the Arrow stream",
		},
		"pages outside": {filepath.Join("testdata", "damaged", "pages-outside.parquet"), "has pages outside the file"},
		"a decimal":     {filepath.Join("testdata", "damaged", "decimal.feather"), "a decimal of 1073741836 digits"},
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
			read, _, _, err := account(t, path, Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
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
