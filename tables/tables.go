package tables

import (
	"encoding/csv"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
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
