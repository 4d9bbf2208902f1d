package ingest

import (
	"fmt"
	"io"

	"gqlstream/ingest/event"
)

// fileTable is a file as a table of rows.
type fileTable interface {
	// next reads the next row. It returns io.EOF after the last, a *badRow when
	// this row cannot be read but the ones after it can, and any other error when
	// the file cannot be read on.
	next(row *fileRow) error
	// text is the last row as it stands in the file.
	text() []byte
	// place is the line of the last row, or its number in files without lines.
	place() int64
}

// fileRows reads the rows of one table as events of one kind.
type fileRows struct {
	input   FileInput
	file    *openedFile
	columns *columns
	table   fileTable
	decode  rowDecoder
	row     fileRow
	classes int
}

// rowDecoder turns rows into events. What it puts into events is never reused.
type rowDecoder struct {
	decoder    *event.Decoder
	classes    int
	remove     bool   // every edge is a removal
	version    string // of predictions without one
	columns    *columns
	text       arena[byte]
	attributes arena[event.Attribute]
	p          []float64
}

// openRows opens one table. The classes may be unknown (zero) when only its
// cells are looked at.
func openRows(input FileInput, config *FileConfig, decoder *event.Decoder) (*fileRows, error) {
	file, err := openFile(input.Path)
	if err != nil {
		return nil, err
	}
	r := &fileRows{
		input: input, file: file, columns: newColumns(input.Kind, config.Columns),
		classes: config.Classes.K(),
	}
	if err = r.openTable(); err == nil {
		err = r.checkColumns(config.Strict)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("ingest: %s: %w", input.Path, err)
	}
	r.decode = rowDecoder{
		decoder: decoder, classes: r.classes, remove: config.Remove, version: config.Version,
		columns: r.columns, p: make([]float64, 0, r.classes),
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
		r.table, r.file.stop, err = newParquetTable(r.file, r.columns)
	case arrowFile:
		r.table, r.file.stop, err = newArrowTable(r.file, r.columns)
	}
	return err
}

// checkColumns refuses columns that cannot be meant.
func (r *fileRows) checkColumns(strict bool) error {
	if n := r.columns.highest; r.columns.header && n > 0 && r.classes > 0 && n != r.classes {
		return fmt.Errorf("probability columns p0 to p%d for %d classes, want %d of them",
			n-1, r.classes, r.classes)
	}
	if w := r.columns.warning(); strict && w != "" {
		return fmt.Errorf("unknown columns (strict): %s", w)
	}
	return nil
}

func (r *fileRows) opened() *openedFile { return r.file }

// mayHaveTimes reports whether the table has a column with times, or its columns
// are not known before its rows.
func (r *fileRows) mayHaveTimes() bool { return !r.columns.header || r.columns.has(timeSlot) }

// warning says which columns were ignored so far, or is empty.
func (r *fileRows) warning() string {
	if w := r.columns.warning(); w != "" {
		return r.input.Path + ": " + w
	}
	return ""
}

// next appends the event of the next row to b, or its refusal, and returns the
// event's time. It returns io.EOF after the last row.
func (r *fileRows) next(b *event.Batch) (event.Time, error) {
	err := r.table.next(&r.row)
	if err == nil {
		t, slot, problem := r.decode.row(&r.row, b)
		if problem != nil {
			r.refuse(b, slot, problem)
		}
		return t, nil
	}
	if err == io.EOF {
		return 0, io.EOF
	}
	if bad, ok := err.(*badRow); ok {
		r.refuse(b, -1, &bad.problem)
		return 0, nil
	}
	return 0, fmt.Errorf("ingest: %s: after row %d: %w", r.input.Path, r.table.place(), err)
}

// refuse appends the refusal of the last row. Its position is the row's place in
// the file. slot is the column to blame, or negative.
func (r *fileRows) refuse(b *event.Batch, slot int, p *event.Problem) {
	column := ""
	if slot >= 0 {
		column = "column " + r.columns.slotName(slot) + ": "
	}
	place := r.table.place()
	b.Refused = append(b.Refused, event.Refusal{
		Position: event.Position(place), Kind: r.input.Kind, Reason: p.Reason,
		Detail:   fmt.Sprintf("%s:%d: %s%s", r.input.Path, place, column, p.Detail),
		Original: append([]byte(nil), r.table.text()...),
	})
}
