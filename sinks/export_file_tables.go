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

// Score is how likely a walk from a community ends at a vertex.
type Score struct {
	Community, Vertex string
	Score             float64
}

// exportRowsMax bounds the rows of a record.
const exportRowsMax = 1 << 16

// EdgeRecords returns edges as records with the columns src, dst and weight, at
// least one.
func EdgeRecords(edges iter.Seq[Edge]) iter.Seq[arrow.Record] {
	return pairRecords([3]string{"src", "dst", "weight"}, func(yield func(string, string, float64) bool) {
		for e := range edges {
			if !yield(e.Src, e.Dst, e.Weight) {
				return
			}
		}
	})
}

// ScoreRecords returns scores as records with the columns community, vertex and
// score, at least one.
func ScoreRecords(scores iter.Seq[Score]) iter.Seq[arrow.Record] {
	return pairRecords([3]string{"community", "vertex", "score"}, func(yield func(string, string, float64) bool) {
		for s := range scores {
			if !yield(s.Community, s.Vertex, s.Score) {
				return
			}
		}
	})
}

// pairRecords returns a table of two names and a number.
func pairRecords(names [3]string, rows func(yield func(string, string, float64) bool)) iter.Seq[arrow.Record] {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: names[0], Type: arrow.BinaryTypes.String},
		{Name: names[1], Type: arrow.BinaryTypes.String},
		{Name: names[2], Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	return func(yield func(arrow.Record) bool) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		n, stopped := 0, false
		rows(func(first, second string, number float64) bool {
			b.Field(0).(*array.StringBuilder).Append(first)
			b.Field(1).(*array.StringBuilder).Append(second)
			b.Field(2).(*array.Float64Builder).Append(number)
			n++
			stopped = n%exportRowsMax == 0 && !yield(b.NewRecord())
			return !stopped
		})
		if !stopped && (n == 0 || n%exportRowsMax > 0) {
			yield(b.NewRecord())
		}
	}
}
