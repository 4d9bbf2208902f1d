package sinks

import (
	"encoding/csv"
	"io"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// textTable writes records as CSV with a header; null is an empty field, and a
// list its elements as JSON.
type textTable struct {
	rows  *csv.Writer
	cells []string
}

func newTextTable(w io.Writer, schema *arrow.Schema) (*textTable, error) {
	t := &textTable{rows: csv.NewWriter(w), cells: make([]string, schema.NumFields())}
	for i, field := range schema.Fields() {
		t.cells[i] = field.Name
	}
	return t, t.rows.Write(t.cells)
}

// Write implements recordWriter.
func (t *textTable) Write(record arrow.Record) error {
	for row := range int(record.NumRows()) {
		for i, column := range record.Columns() {
			t.cells[i] = ""
			if !column.IsNull(row) {
				t.cells[i] = column.ValueStr(row)
			}
		}
		if err := t.rows.Write(t.cells); err != nil {
			return err
		}
	}
	return nil
}

// Close implements recordWriter.
func (t *textTable) Close() error {
	t.rows.Flush()
	return t.rows.Error()
}

// Edge is one undirected edge with the names of its ends.
type Edge struct {
	Src, Dst string
	Weight   float64
}

// edgeRowsMax bounds the rows of a record.
const edgeRowsMax = 1 << 16

// EdgeRecords returns edges as records with the columns src, dst and weight, at
// least one.
func EdgeRecords(edges iter.Seq[Edge]) iter.Seq[arrow.Record] {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "src", Type: arrow.BinaryTypes.String},
		{Name: "dst", Type: arrow.BinaryTypes.String},
		{Name: "weight", Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	return func(yield func(arrow.Record) bool) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		n := 0
		for e := range edges {
			b.Field(0).(*array.StringBuilder).Append(e.Src)
			b.Field(1).(*array.StringBuilder).Append(e.Dst)
			b.Field(2).(*array.Float64Builder).Append(e.Weight)
			if n++; n%edgeRowsMax == 0 && !yield(b.NewRecord()) {
				return
			}
		}
		if n == 0 || n%edgeRowsMax > 0 {
			yield(b.NewRecord())
		}
	}
}
