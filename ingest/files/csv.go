package files

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// skipMark skips the byte order mark that a file may begin with.
func skipMark(r *bufio.Reader) {
	if mark, _ := r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3) // they are in the buffer
	}
}

// spaces may stand around a value.
const spaces = " \t"

// csvTable reads CSV (RFC 4180, as encoding/csv does). Spaces around a value do not belong to it.
type csvTable struct {
	rows    rowText
	reader  *csv.Reader
	slots   []int // by column
	columns *columns
	line    int64 // the first of the last row
}

func newCSVTable(f *openedFile, c *columns) (*csvTable, error) {
	comma := ','
	if f.format == tsvFile {
		comma = '\t'
	}
	t := newCSVRows(f, comma)
	t.columns = c
	header, err := t.record()
	if err == io.EOF {
		return nil, errors.New("empty, want a line with the names of the columns")
	}
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if err := checkText(t.text(), len(header)); err != nil {
		return nil, err
	}
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = strings.Trim(name, spaces)
	}
	t.slots, err = c.setHeader(names)
	return t, err
}

// newCSVRows returns a table without columns yet.
func newCSVRows(r io.Reader, comma rune) *csvTable {
	in := bufio.NewReader(r)
	skipMark(in)
	t := &csvTable{rows: rowText{in: in}}
	t.reader = csv.NewReader(bufio.NewReaderSize(&t.rows, 1<<16))
	t.reader.Comma, t.reader.FieldsPerRecord, t.reader.ReuseRecord = comma, -1, true
	return t
}

// checkText refuses a header that shows another encoding, or another separator, as spreadsheets write them.
func checkText(header []byte, columns int) error {
	if bytes.HasPrefix(header, []byte("\xff\xfe")) || bytes.HasPrefix(header, []byte("\xfe\xff")) {
		return errors.New("this is UTF-16: save it as UTF-8")
	}
	if i := bytes.IndexAny(header, ",;|\t"); i >= 0 && columns == 1 && header[0] != '"' {
		return fmt.Errorf(
			"values are separated by %q: a .csv has commas, a .tsv has tabs",
			header[i],
		)
	}
	return nil
}

// next reads one row.
func (t *csvTable) next(row *fileRow) error {
	values, err := t.record()
	if err != nil {
		return err
	}
	row.reset(len(t.columns.names))
	for column, value := range values[:min(len(values), len(t.slots))] {
		if slot := t.slots[column]; slot >= 0 {
			c, value := &row.cells[slot], strings.Trim(value, spaces)
			if c.Kind = wire.NullCell; len(value) > 0 {
				c.Kind, c.Text = wire.TextCell, value
			}
		}
	}
	if len(values) != len(t.slots) {
		return event.Problemf(
			event.Malformed,
			"%d columns, the header has %d",
			len(values),
			len(t.slots),
		)
	}
	return nil
}

// record returns the values of the next row.
func (t *csvTable) record() ([]string, error) {
	t.rows.begin(t.reader.InputOffset())
	values, err := t.reader.Read()
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		t.line = int64(syntax.StartLine)
		return nil, event.Problemf(event.Malformed, "%v", syntax.Err)
	}
	if err == nil {
		line, _ := t.reader.FieldPos(0)
		t.line = int64(line)
	}
	return values, err
}

func (t *csvTable) text() []byte {
	return bytes.Trim(t.rows.text[:t.reader.InputOffset()-t.rows.from], "\r\n")
}

func (t *csvTable) place() int64 { return t.line }

// rowText passes the bytes of a file on to encoding/csv, and keeps those of the row at hand. A row
// that is too long ends the file: a quote too many would else have all of it read as one value.
type rowText struct {
	in   io.Reader
	text []byte // from the beginning of the row on
	from int64  // its place in the file
}

// begin forgets what is before a place.
func (r *rowText) begin(at int64) { r.text, r.from = r.text[at-r.from:], at }

// Read implements io.Reader.
func (r *rowText) Read(p []byte) (int, error) {
	if len(r.text) > fileRowBytesMax {
		return 0, fmt.Errorf(
			"the row after it is longer than %d bytes, or a quote in it has no end",
			fileRowBytesMax,
		)
	}
	n, err := r.in.Read(p)
	r.text = append(r.text, p[:n]...)
	return n, err
}
