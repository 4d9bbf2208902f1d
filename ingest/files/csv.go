package files

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// badRow is the error of a table's next for a row that cannot be read. The rows after it can.
type badRow struct{ problem event.Problem }

func (e *badRow) Error() string { return e.problem.Error() }

func badRowf(reason event.Reason, format string, args ...any) error {
	return &badRow{*event.Problemf(reason, format, args...)}
}

// lineReader reads lines without copying them.
type lineReader struct {
	r    *bufio.Reader
	line int64 // of the last line, from 1
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, fileRowBytesMax)}
}

// next returns the next line without its end, "\n" or "\r\n", nor the byte order mark before the
// first. It is valid until the next call. A line that is too long is a *badRow and skipped.
func (l *lineReader) next() ([]byte, error) {
	if l.line == 0 {
		if mark, _ := l.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
			_, _ = l.r.Discard(3) // they are in the buffer
		}
	}
	line, err := l.r.ReadSlice('\n')
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	l.line++
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.r.ReadSlice('\n')
		}
		if err == nil || err == io.EOF {
			err = badRowf(event.TooLarge, "longer than %d bytes", fileRowBytesMax)
		}
		return nil, err
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// spaces may stand around a value.
const spaces = " \t"

// notBlank returns the next line with more than spaces and tabs.
func (l *lineReader) notBlank() (line []byte, err error) {
	for err == nil && len(bytes.Trim(line, spaces)) == 0 {
		line, err = l.next()
	}
	return line, err
}

// csvTable reads CSV (RFC 4180, as encoding/csv does). A line without quotes, which is nearly every
// line, is split here; others go through encoding/csv. Spaces around a value do not belong to it.
type csvTable struct {
	lines   *lineReader
	comma   byte
	slots   []int // by column
	columns *columns
	values  [][]byte
	raw     []byte // text of the last row
	first   int64  // its first line
	feed    csvFeed
	quoted  *csv.Reader
}

func newCSVTable(f *openedFile, c *columns) (*csvTable, error) {
	t := &csvTable{lines: newLineReader(f), comma: ',', columns: c}
	c.untyped = true
	if f.format == tsvFile {
		t.comma = '\t'
	}
	t.resetQuoted()
	header, err := t.record()
	if err == io.EOF {
		return nil, errors.New("empty, want a line with the names of the columns")
	}
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if err := checkText(t.raw, len(header)); err != nil {
		return nil, err
	}
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = string(bytes.Trim(name, spaces))
	}
	t.slots, err = c.setHeader(names)
	return t, err
}

// checkText refuses a header that shows another encoding, or another separator, as spreadsheets write them.
func checkText(header []byte, columns int) error {
	if bytes.HasPrefix(header, []byte("\xff\xfe")) || bytes.HasPrefix(header, []byte("\xfe\xff")) {
		return errors.New("this is UTF-16: save it as UTF-8")
	}
	if i := bytes.IndexAny(header, ",;|\t"); i >= 0 && columns == 1 && header[0] != '"' {
		return fmt.Errorf("values are separated by %q: a .csv has commas, a .tsv has tabs", header[i])
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
			c, value := &row.cells[slot], bytes.Trim(value, spaces)
			if c.Kind = wire.NullCell; len(value) > 0 {
				c.Kind, c.Text = wire.TextCell, aliasString(value)
			}
		}
	}
	if len(values) != len(t.slots) {
		return badRowf(event.Malformed, "%d columns, the header has %d", len(values), len(t.slots))
	}
	return nil
}

// record returns the values of the next row. They are good until the next call.
func (t *csvTable) record() ([][]byte, error) {
	line, err := t.line()
	if err != nil {
		return nil, err
	}
	t.values = t.values[:0]
	if bytes.IndexByte(line, '"') >= 0 {
		values, err := t.readQuoted(line)
		for _, value := range values {
			t.values = append(t.values, bytesOf(value))
		}
		return t.values, err
	}
	for more := true; more; {
		value := line
		if i := bytes.IndexByte(line, t.comma); i >= 0 {
			value, line = line[:i], line[i+1:]
		} else {
			more = false
		}
		t.values = append(t.values, value)
	}
	return t.values, nil
}

// line returns the next line that is not empty.
func (t *csvTable) line() (line []byte, err error) {
	for err == nil && len(line) == 0 {
		line, err = t.lines.next()
	}
	t.raw, t.first = line, t.lines.line
	return line, err
}

func (t *csvTable) text() []byte { return t.raw }
func (t *csvTable) place() int64 { return t.first }

// readQuoted has encoding/csv read the row that begins with line. It takes
// further lines only while the row goes on.
func (t *csvTable) readQuoted(line []byte) ([]string, error) {
	t.feed = csvFeed{lines: t.lines, text: t.feed.text[:0]}
	t.feed.add(line)
	fields, err := t.quoted.Read()
	t.raw = bytes.TrimSuffix(t.feed.text, []byte("\r\n"))
	if err == nil {
		return fields, nil
	}
	var syntax *csv.ParseError
	switch {
	case t.feed.err != nil && t.feed.err != io.EOF:
		err = t.feed.err
	case errors.As(err, &syntax):
		err = badRowf(event.Malformed, "%v", syntax.Err)
	}
	t.resetQuoted()
	return nil, err
}

func (t *csvTable) resetQuoted() {
	t.quoted = csv.NewReader(&t.feed)
	t.quoted.Comma = rune(t.comma)
	t.quoted.FieldsPerRecord = -1
}

// csvFeed hands encoding/csv one line a Read, so that it never reads beyond the
// end of the row it is asked for.
type csvFeed struct {
	lines *lineReader
	text  []byte // all lines of the row
	sent  int    // of text
	err   error
}

// add ends the line with "\r\n", of which encoding/csv makes "\n": so a "\r" that
// belongs to the line stays.
func (f *csvFeed) add(line []byte) { f.text = append(append(f.text, line...), "\r\n"...) }

// Read implements io.Reader.
func (f *csvFeed) Read(p []byte) (int, error) {
	if f.sent == len(f.text) {
		var line []byte
		if line, f.err = f.lines.next(); f.err != nil {
			return 0, f.err
		}
		if len(f.text)+len(line) >= fileRowBytesMax {
			f.err = badRowf(event.TooLarge, "a quoted value goes on for more than %d bytes", fileRowBytesMax)
			return 0, f.err
		}
		f.add(line)
	}
	n := copy(p, f.text[f.sent:])
	f.sent += n
	return n, nil
}
