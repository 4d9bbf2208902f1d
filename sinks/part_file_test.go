package sinks

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"gqlstream/quant"
)

// readPart returns a part as another program's Arrow library would.
func readPart(t *testing.T, path string) arrow.RecordBatch {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	table, err := pqarrow.ReadTable(
		t.Context(), f, parquet.NewReaderProperties(nil), pqarrow.ArrowReadProperties{},
		memory.DefaultAllocator,
	)
	if err != nil {
		t.Fatal(err)
	}
	reader := array.NewTableReader(table, table.NumRows())
	if !reader.Next() {
		t.Fatal("no rows")
	}
	return reader.RecordBatch()
}

// full is an estimate with every field set.
func full() quant.Estimate {
	return quant.Estimate{
		Pipeline: "p", Community: "Zürich", Position: 1 << 63,
		Time: "2026-03-01T12:00:00.123456789Z", Method: "auto",
		Preset: "density", Kernel: "ppr", Lambda: 0.9, ModelVersion: "v3", Members: 12, Labelled: 2,
		Coverage: 0.5,
		Prevalence: []float64{
			0.1,
			0.9,
		}, Low: []float64{0, 0.8}, High: []float64{0.2, math.Nextafter(1, 0)},
		SE: []float64{
			0.01,
			0.02,
		}, SEChange: []float64{0.001, 5e-324}, Moved: []float64{-0.01, 0.01},
		Revised: []float64{
			0,
			1e-300,
		}, SERevised: []float64{0, 0.1}, NEff: []float64{3, 4.5}, Confidence: 0.9,
		Simultaneous: true, Variance: "exact", Gamma: 0.3, Certificate: 1e-3,
		Flags: []string{"thin", "x"}, Config: "c0",
	}
}

// A part must hold the records: every field of the JSON form under its name, to the last
// bit (times to the microsecond), null if JSON leaves it out.
func TestPartsHoldTheRecords(t *testing.T) {
	suppressed := quant.Estimate{
		Community: "small", Position: 1 << 63, Time: full().Time, Config: "c0", Suppressed: true,
		Flags: []string{quant.FlagBelowFloor},
	}
	list := []quant.Estimate{full(), estimate("bare", "pcc", 1<<63), suppressed}
	dir := t.TempDir()
	table := newPartTable()
	for i := range list {
		table.append(&list[i])
	}
	if err := new(disk).replace(filepath.Join(dir, partName(1, 1<<63)), table.write); err != nil {
		t.Fatal(err)
	}
	table.builder.Release()
	got := readPart(t, filepath.Join(dir, partName(1, 1<<63)))
	if int(got.NumRows()) != len(list) {
		t.Fatalf("%d rows", got.NumRows())
	}
	for row := range list {
		if text, want := rowJSON(t, got, row), wantJSON(t, list[row]); !reflect.DeepEqual(
			text,
			want,
		) {
			t.Errorf("row %d:\n%v, want\n%v", row, text, want)
		}
	}
}

// rowJSON returns the cells of a row that are not null, in JSON's types.
func rowJSON(t *testing.T, record arrow.RecordBatch, row int) map[string]any {
	t.Helper()
	cells := map[string]any{}
	for i, field := range record.Schema().Fields() {
		if column := record.Column(i); !column.IsNull(row) {
			data, err := json.Marshal(column.GetOneForMarshal(row))
			if err != nil {
				t.Fatal(err)
			}
			cells[field.Name] = decodeJSON(t, data)
		}
	}
	return cells
}

// wantJSON is the JSON record, with the few differences of parts.
func wantJSON(t *testing.T, e quant.Estimate) map[string]any {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	cells := decodeJSON(t, data).(map[string]any)
	for _, name := range []string{"simultaneous", "suppressed"} {
		if cells[name] == nil {
			cells[name] = false
		}
	}
	if e.Suppressed {
		for _, name := range []string{
			"method", "lambda", "members", "labelled", "coverage",
			"prevalence", "n_eff", "certificate",
		} {
			delete(cells, name)
		}
	}
	if e.Time != "" {
		cells["time"] = "2026-03-01T12:00:00.123456Z"
	}
	return cells
}

func decodeJSON(t *testing.T, data []byte) (out any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every column must be a field of the record that docs/openapi.yaml describes.
func TestPartColumnsAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "docs", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n    Estimate:\n")
	text, _, found := strings.Cut(text, "\n    Difference:\n")
	if !found {
		t.Fatal("docs/openapi.yaml has no Difference after Estimate")
	}
	for _, c := range partColumns() {
		if !strings.Contains(text, "\n        "+c.field.Name+": {") {
			t.Errorf("docs/openapi.yaml does not describe the column %s", c.field.Name)
		}
	}
}
