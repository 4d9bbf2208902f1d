package files

import "gqlstream/ingest/wire"

// jsonTable reads NDJSON: one object a line, blank lines ignored. The keys are
// the columns, and may differ from row to row. Without columns it reads a log: the lines
// are events of all kinds, as on the wire with one member more, "kind". See LogWriter.
type jsonTable struct {
	lines   *lineReader
	columns *columns // nil of a log
	raw     []byte
	object  wire.Object
}

func (t *jsonTable) text() []byte { return t.raw }
func (t *jsonTable) place() int64 { return t.lines.line }

// next reads one row. What a line of a log says is not one: see decodeLine.
func (t *jsonTable) next(row *fileRow) (err error) {
	if t.raw, err = t.lines.notBlank(); err != nil || t.columns == nil {
		return err
	}
	return t.parse(t.raw, row)
}

// parse reads the members of one object into row.
func (t *jsonTable) parse(line []byte, row *fileRow) error {
	row.reset(len(t.columns.names))
	problem := t.object.Read(line, func(key string) *wire.Cell {
		slot := t.columns.find(key)
		for len(row.cells) < len(t.columns.names) {
			row.cells = append(row.cells, wire.Cell{})
		}
		if slot < 0 {
			return nil
		}
		return &row.cells[slot]
	})
	if problem != nil {
		return &badRow{*problem}
	}
	return nil
}
