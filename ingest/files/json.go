package files

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gqlstream/ingest/wire"
)

// jsonTable reads rows that are JSON objects: one a line (NDJSON, blank lines ignored), the
// elements of one array, or objects of several lines. The keys are the columns, and may differ from
// row to row; a key inside an object is called like both, with a dot between them. Without columns
// the table reads a log: the lines are events of all kinds, as on the wire with an additional
// member "kind". See LogWriter.
type jsonTable struct {
	lines   *bufio.Scanner
	values  *jsonValues // nil: one object a line
	line    int64       // of the last row, from 1
	columns *columns    // nil for a log
	path    string      // of a table, for advice
	raw     []byte
	object  wire.Object
}

// newJSONTable reads lines without their ends, and without the byte order mark before the first.
func newJSONTable(r io.Reader, c *columns) *jsonTable {
	in := bufio.NewReader(r)
	skipMark(in)
	return newJSONLines(in, c)
}

func newJSONLines(in *bufio.Reader, c *columns) *jsonTable {
	t := &jsonTable{lines: bufio.NewScanner(in), columns: c}
	t.lines.Buffer(nil, fileRowBytesMax+len("\r\n"))
	return t
}

// newJSONDocument reads a table. Its first lines show whether each line is an object.
func newJSONDocument(f *openedFile, path string, c *columns) (*jsonTable, error) {
	in := bufio.NewReaderSize(f, peekBytes)
	skipMark(in)
	if err := checkText(in); err != nil {
		return nil, err
	}
	head, _ := in.Peek(peekBytes)
	text := bytes.TrimLeft(head, " \t\r\n")
	var t *jsonTable
	switch {
	case isAssignment(text):
		return nil, errors.New(archiveAdvice(path))
	case bytes.HasPrefix(text, []byte("[")),
		bytes.HasPrefix(text, []byte("{")) && spansLines(text):
		t = &jsonTable{values: &jsonValues{in: in, line: 1}, columns: c}
	default:
		t = newJSONLines(in, c)
	}
	t.path = path
	return t, nil
}

// spansLines reports whether less than half of the lines are values, as in a text whose objects
// have several lines, or stand one after the other in one. In NDJSON, single lines may be damaged.
func spansLines(text []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.SkipValue() == nil {
		rest := bytes.TrimLeft(text[d.InputOffset():], " \t")
		if bytes.HasPrefix(rest, []byte("{")) {
			return true
		}
	}
	end := bytes.LastIndexByte(text, '\n') + 1 // the line after it may be longer
	all, whole := 0, 0
	for line := range bytes.Lines(text[:end]) {
		if line = bytes.Trim(line, " \t\r\n"); len(line) == 0 {
			continue
		}
		if all++; isJSON(line) {
			whole++
		}
	}
	return 2*whole < all
}

// isJSON reports whether the text is one JSON value; its objects may repeat keys.
func isJSON(text []byte) bool {
	return jsontext.Value(text).IsValid(
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// errUTF16 is the error of a text file in another encoding.
var errUTF16 = errors.New("this is UTF-16: save it as UTF-8")

func (t *jsonTable) text() []byte { return t.raw }
func (t *jsonTable) place() int64 { return t.line }

// next reads one row. For a log it leaves the line to decodeLine.
func (t *jsonTable) next(row *fileRow) (err error) {
	for {
		if t.values != nil {
			t.raw, err = t.values.next()
			t.line = t.values.began
		} else {
			t.raw, err = t.nextLine()
		}
		switch {
		case errors.Is(err, errLong) && t.columns != nil && t.columns.aliased == nil:
			return cmp.Or(adviseFrame(t.path, t.columns), adviseRows(t.path, t.columns), err)
		case err != nil:
			return err
		case t.columns == nil && len(bytes.Trim(t.raw, spaces)) > 0:
			return nil
		}
		if len(bytes.Trim(t.raw, spaces)) == 0 {
			continue
		}
		if err = t.parse(t.raw, row); err != nil && t.values != nil && !isJSON(t.raw) {
			return fmt.Errorf("the value of line %d is no JSON, so that its end is not known: %w",
				t.line, err)
		}
		return err
	}
}

// errLong is the error of a row that is too long.
var errLong = fmt.Errorf("longer than %d bytes", fileRowBytesMax)

func (t *jsonTable) nextLine() ([]byte, error) {
	if t.lines.Scan() {
		t.line++
		return t.lines.Bytes(), nil
	}
	if errors.Is(t.lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("the line after it is %w", errLong)
	}
	return nil, cmp.Or(t.lines.Err(), io.EOF)
}

// parse reads the members of one object into row. The first value shows whether the rows are
// inside of it.
func (t *jsonTable) parse(line []byte, row *fileRow) error {
	if t.columns.aliased == nil {
		if startsNested(line) {
			if err := adviseFrame(t.path, t.columns); err != nil {
				return err
			}
		}
		keys := t.keys(line)
		if t.columns.chooseAliases(keys); len(keys) > 0 && !t.columns.complete(keys) {
			if err := adviseRows(t.path, t.columns); err != nil {
				return err
			}
		}
	}
	row.reset(len(t.columns.names))
	problem := t.object.Read(line, t.columns.whole, func(key string) *wire.Cell {
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
		return problem
	}
	return nil
}

// keys returns the keys of an object.
func (t *jsonTable) keys(line []byte) (keys []string) {
	none := func(string) bool { return false }
	_ = t.object.Read(line, none, func(key string) *wire.Cell { // reported when the row is read
		keys = append(keys, strings.Clone(key))
		return nil
	})
	return keys
}

// jsonValues splits a text into values: the elements of one array, or values one after the other.
type jsonValues struct {
	in    *bufio.Reader
	line  int64 // the current one
	began int64 // line of the last value
	array bool
	ended bool // the array was closed
	count int
	raw   []byte
}

// next returns the next value, valid until the next call, or io.EOF.
func (v *jsonValues) next() ([]byte, error) {
	if v.ended {
		return nil, io.EOF
	}
	c, err := v.space()
	if v.count == 0 && c == '[' && err == nil {
		v.array = true
		c, err = v.space()
	} else if v.array && v.count > 0 && c == ',' && err == nil {
		if c, err = v.space(); c == ']' {
			return nil, fmt.Errorf("line %d: a comma before the end of the array", v.line)
		}
	} else if v.array && v.count > 0 && c != ']' && err == nil {
		return nil, fmt.Errorf("line %d: no comma between two elements of the array", v.line)
	}
	switch {
	case err == io.EOF && v.array:
		return nil, errors.New("the file ends before its array does")
	case err != nil:
		return nil, err
	case v.array && c == ']':
		v.ended = true
		if c, err = v.space(); err == nil {
			err = fmt.Errorf("line %d: %q after the end of the array", v.line, c)
		}
		return nil, err
	}
	v.count++
	v.began = v.line
	return v.value(c)
}

// space returns the first byte that is no white space.
func (v *jsonValues) space() (byte, error) {
	for {
		c, err := v.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			v.line++
		case ' ', '\t', '\r':
		default:
			return c, nil
		}
	}
}

// value returns the value that begins with c. It ends where its brackets are closed; one without
// brackets ends before a comma, a bracket or a line end.
func (v *jsonValues) value(c byte) (_ []byte, err error) {
	v.raw = v.raw[:0]
	depth, quoted, escaped := 0, false, false
	for ; ; c, err = v.in.ReadByte() {
		if err == io.EOF && depth == 0 && !quoted {
			return v.raw, nil
		} else if err == io.EOF {
			return nil, fmt.Errorf("the file ends inside the object of line %d", v.began)
		} else if err != nil {
			return nil, err
		}
		if depth == 0 && !quoted && len(v.raw) > 0 && bytes.IndexByte([]byte(",]}\n"), c) >= 0 {
			return v.raw, v.in.UnreadByte()
		}
		if v.raw = append(v.raw, c); len(v.raw) > fileRowBytesMax {
			return nil, fmt.Errorf("the value after it is %w", errLong)
		}
		switch {
		case c == '\n' && quoted:
			return nil, fmt.Errorf("line %d ends inside a text: a quote is missing, or too many",
				v.line)
		case c == '\n':
			v.line++
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return v.raw, nil
			}
		}
	}
}
