package files

import (
	"fmt"
	"io"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// fileTable is a file as a table of rows.
type fileTable interface {
	// next reads the next row. It returns io.EOF after the last, an *event.Problem when this row cannot be
	// read but the ones after it can, and any other error when the file cannot be read on.
	next(row *fileRow) error
	// text is the last row as it stands in the file.
	text() []byte
	// place is the line of the last row, or its number in files without lines.
	place() int64
}

// fileRow is one row of a table: its cells by slot (see columns). They are valid until
// the next row.
type fileRow struct {
	cells []wire.Cell
	list  []float64 // backing of lists
}

// reset makes every cell absent and makes room for n of them.
func (r *fileRow) reset(n int) {
	if cap(r.cells) < n {
		r.cells = make([]wire.Cell, n, 2*n)
	}
	r.cells = r.cells[:n]
	clear(r.cells)
	r.list = r.list[:0]
}

// fileRows reads the rows of one table as events of one kind, or the lines of a log.
type fileRows struct {
	input    Input
	file     *openedFile
	columns  *columns // nil of a log
	table    fileTable
	decoder  *wire.Decoder
	defaults wire.RowDefaults
	row      fileRow
}

// openRows opens one table. The classes may be unknown (zero) when only its cells are looked at.
func openRows(input Input, config *Config, decoder *wire.Decoder) (*fileRows, error) {
	file, err := openFile(input.Path)
	if err != nil {
		return nil, err
	}
	r := &fileRows{input: input, file: file, decoder: decoder}
	if input.Log {
		r.input.Kind, r.table = event.KindControl, newJSONTable(file, nil) // of lines that say none
		return r, nil
	}
	r.columns = newColumns(input.Kind, config.Columns, config.Classes.Names)
	r.defaults = wire.RowDefaults{Kind: input.Kind, Untyped: file.format <= tsvFile, Version: config.Version}
	err = r.openTable()
	if n, k := r.columns.highest, config.Classes.K(); err == nil && r.columns.header && n > 0 && k > 0 && n != k {
		err = fmt.Errorf("probability columns p0 to p%d for %d classes, want %d of them", n-1, k, k)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("ingest: %s: %w", input.Path, err)
	}
	return r, nil
}

func (r *fileRows) openTable() (err error) {
	switch r.file.format {
	case csvFile, tsvFile:
		r.table, err = newCSVTable(r.file, r.columns)
	case ndjsonFile:
		r.table = newJSONTable(r.file, r.columns)
	case parquetFile:
		r.table, err = newParquetTable(r.file, r.columns)
	case arrowFile:
		r.table, err = newArrowTable(r.file, r.columns)
	}
	return err
}

// mayHaveTimes reports whether the table has a column with times, or its columns
// are not known before its rows.
func (r *fileRows) mayHaveTimes() bool {
	return !r.columns.header || r.columns.has(r.columns.slot("time"))
}

// next appends the event of the next row to b, or its refusal, and returns the
// event's kind and time. It returns io.EOF after the last row.
func (r *fileRows) next(b *event.Batch) (kind event.Kind, t event.Time, err error) {
	kind = r.input.Kind
	slot := wire.NoColumn
	switch err = r.table.next(&r.row); {
	case err != nil:
	case r.input.Log:
		kind, t, err = r.decodeLine(r.table.(*jsonTable), b)
	default:
		var p *event.Problem
		if t, slot, p = r.decoder.DecodeRow(r.defaults, r.row.cells, r.columns.named, b); p != nil {
			err = p
		}
	}
	if p, refused := err.(*event.Problem); refused {
		r.refuse(b, kind, slot, p)
		return kind, 0, nil
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("ingest: %s: after row %d: %w", r.input.Path, r.table.place(), err)
	}
	return kind, t, err
}

// refuse appends the refusal of the last row. Its position is the row's place in
// the file. slot is the column to blame, or negative.
func (r *fileRows) refuse(b *event.Batch, kind event.Kind, slot int, p *event.Problem) {
	column := ""
	if slot >= 0 {
		column = "column " + r.columns.slotName(slot) + ": "
	}
	place := r.table.place()
	b.Refused = append(b.Refused, event.Refusal{
		Position: event.Position(place), Kind: kind, Reason: p.Reason,
		Detail:   fmt.Sprintf("%s:%d: %s%s", r.input.Path, place, column, p.Detail()),
		Original: append([]byte(nil), r.table.text()...),
	})
}
