package files

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// skipMark skips a byte order mark at the beginning of a file.
func skipMark(r *bufio.Reader) {
	if mark, _ := r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3) // Peek has buffered them
	}
}

// spaces may stand around a value.
const spaces = " \t"

// csvTable reads CSV (RFC 4180, as encoding/csv does), also with other separators, and lines whose
// values are separated by spaces. Spaces around a value do not belong to it.
type csvTable struct {
	rows   rowText
	reader *csv.Reader
	// words reads lines of values between spaces; nil: there is a separator
	words    *bufio.Scanner
	slots    []int    // by column
	names    []string // a line of names in the file; it may be there again
	columns  *columns
	line     int64 // the first of the last row
	skipped  int64 // lines before the first row
	commas   bool  // numbers may have a comma before their fraction
	numbered bool  // rows may begin with their number
	ahead    bool  // the row after the header was read
	pending  []string
	failed   error // of this row
}

// newCSVTable reads the lines before the rows: comments, and the names of the columns unless header
// has them.
func newCSVTable(f *openedFile, c *columns, header []string) (*csvTable, error) {
	in := bufio.NewReaderSize(f, peekBytes)
	skipMark(in)
	if err := checkText(in); err != nil {
		return nil, err
	}
	p, err := readPreamble(in, header != nil)
	if err != nil {
		return nil, err
	}
	separator := p.separator
	if separator == 0 {
		separator = separatorOf(firstLine(in), f.format)
	}
	head, _ := in.Peek(peekBytes)
	quoted := bytes.HasPrefix(head, []byte(`"`))
	head = bytes.Clone(head)
	t := newCSVRows(in, separator, quoted)
	t.numbered = quoted
	t.columns = c
	t.skipped = p.lines
	t.commas = separator == ';'
	if err := p.refuse(); err != nil {
		return nil, err
	}
	names, err := t.header(p, header)
	if err != nil {
		return nil, err
	}
	if t.slots, err = c.setHeader(names); err != nil && header == nil {
		if below := namesBelow(head, f.format, c.kind, p.lines); below != "" {
			return nil, errors.New(below)
		}
		if lacks := columnsError(""); errors.As(err, &lacks) {
			err = lacks + columnsError(t.adviseBelow())
		}
	}
	return t, err
}

// newCSVRows returns a table without columns yet. A separator ' ' is any number of spaces and tabs,
// or one space where values are quoted.
func newCSVRows(r io.Reader, separator rune, quoted bool) *csvTable {
	t := &csvTable{rows: rowText{in: r}}
	if separator == ' ' && !quoted {
		t.words = bufio.NewScanner(r)
		t.words.Buffer(nil, fileRowBytesMax+len("\r\n"))
		return t
	}
	t.reader = csv.NewReader(bufio.NewReaderSize(&t.rows, 1<<16))
	t.reader.Comma = separator
	t.reader.FieldsPerRecord = -1
	t.reader.ReuseRecord = true
	return t
}

// header returns the names of the columns: those given, those in a comment, or those of the first
// row. A row that is longer than the names ends with a separator, or begins with the number of the
// row, as write.table of R writes it.
func (t *csvTable) header(p preamble, given []string) (names []string, err error) {
	first, err := t.record()
	switch {
	case err == io.EOF:
		return nil, errors.New("empty, want a line with the names of the columns")
	case err != nil && given == nil:
		return nil, fmt.Errorf("line %d: %w", t.place(), err)
	}
	if names = slices.Clone(given); names == nil {
		names = p.names(first, t.columns.kind, t.split)
	}
	if t.ahead, t.failed = true, err; names != nil {
		t.pending = cloneAll(first)
		if _, err := newColumns(t.columns.kind, nil, nil).setHeader(t.pending); err == nil {
			t.names = t.pending
		}
	} else {
		names = cloneAll(first)
		t.names = names
		t.pending, t.failed = t.record()
		t.pending = cloneAll(t.pending)
	}
	for i, name := range names {
		names[i] = wire.TrimText(name)
	}
	if err := checkEnds(names); err != nil {
		return nil, err
	}
	if row := t.pending; t.failed == nil && len(row) == len(names)+1 && given == nil {
		switch {
		case wire.TrimText(row[len(row)-1]) == "":
			return append(names, ""), nil
		case t.numbered && isWhole(row[0]):
			return append([]string{""}, names...), nil
		}
	}
	return names, nil
}

// isWhole reports whether text is a number of a row.
func isWhole(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

func cloneAll(values []string) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = strings.Clone(value)
	}
	return out
}

// errNamesAgain is the problem of a line of names among the rows.
var errNamesAgain = event.Problemf(event.Malformed, "the names of the columns")

// next reads one row.
func (t *csvTable) next(row *fileRow) error {
	values, err := t.pending, t.failed
	if !t.ahead {
		values, err = t.record()
	}
	t.ahead, t.pending = false, nil
	if err != nil {
		return err
	}
	if t.names != nil && slices.Equal(values, t.names) {
		return errNamesAgain
	}
	row.reset(len(t.columns.names))
	for column, value := range values[:min(len(values), len(t.slots))] {
		if slot := t.slots[column]; slot >= 0 {
			c, value := &row.cells[slot], wire.TrimText(value)
			if c.Kind = wire.NullCell; len(value) > 0 {
				c.Kind, c.Text = wire.TextCell, value
			}
		}
	}
	if begin := values[0]; len(values) != len(t.slots) &&
		(strings.HasPrefix(begin, "#") || strings.HasPrefix(begin, "%")) {
		return event.Problemf(event.Malformed, "a comment between the rows: remove it")
	}
	if len(values) != len(t.slots) {
		return event.Problemf(event.Malformed, "%d columns, the header has %d; if all rows have "+
			"as many, give their names with --columns, an empty one for a column to skip",
			len(values), len(t.slots))
	}
	return nil
}

// record returns the values of the next row.
func (t *csvTable) record() ([]string, error) {
	if t.words != nil {
		return t.nextWords()
	}
	t.rows.dropBefore(t.reader.InputOffset())
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

// nextWords returns the values of the next line that is not blank.
func (t *csvTable) nextWords() ([]string, error) {
	for t.words.Scan() {
		t.line++
		if values := strings.Fields(t.words.Text()); len(values) > 0 {
			return values, nil
		}
	}
	if errors.Is(t.words.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("the line after it is longer than %d bytes", fileRowBytesMax)
	}
	return nil, cmp.Or(t.words.Err(), io.EOF)
}

// split divides a text as a line of the file.
func (t *csvTable) split(text string) []string {
	if t.words != nil {
		return strings.Fields(text)
	}
	return strings.Split(text, string(t.reader.Comma))
}

func (t *csvTable) text() []byte {
	if t.words != nil {
		return t.words.Bytes()
	}
	return bytes.Trim(t.rows.text[:t.reader.InputOffset()-t.rows.from], "\r\n")
}

func (t *csvTable) place() int64 { return t.skipped + t.line }

// rowText passes the bytes of a file on to encoding/csv, and keeps those of the current row. A row
// that is too long ends the file: one stray quote would otherwise make the rest of the file one
// value.
type rowText struct {
	in   io.Reader
	text []byte // from the start of the current row
	from int64  // its place in the file
}

// dropBefore drops the bytes before a place.
func (r *rowText) dropBefore(at int64) {
	r.text = r.text[at-r.from:]
	r.from = at
}

// Read implements io.Reader.
func (r *rowText) Read(p []byte) (int, error) {
	if len(r.text) > fileRowBytesMax {
		return 0, fmt.Errorf(
			"the row after it is longer than %d bytes, or a quote in it has no end",
			fileRowBytesMax)
	}
	n, err := r.in.Read(p)
	r.text = append(r.text, p[:n]...)
	return n, err
}
