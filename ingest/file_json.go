package ingest

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"gqlstream/ingest/event"
)

// jsonTable reads NDJSON: one object a line, blank lines ignored. The keys are
// the columns, and may differ from row to row.
type jsonTable struct {
	lines   *lineReader
	columns *columns
	raw     []byte
	scan    jsonScan
}

func newJSONTable(f *openedFile, c *columns) *jsonTable {
	return &jsonTable{lines: newLineReader(f), columns: c}
}

func (t *jsonTable) text() []byte { return t.raw }
func (t *jsonTable) place() int64 { return t.lines.line }

// next reads one row.
func (t *jsonTable) next(row *fileRow) error {
	for {
		line, err := t.lines.next()
		t.raw = line
		if err != nil {
			return err
		}
		if t.lines.line == 1 && len(line) >= 3 && string(line[:3]) == "\xef\xbb\xbf" {
			line = line[3:]
		}
		if len(trimSpaces(line)) > 0 {
			return t.parse(line, row)
		}
	}
}

// parse reads the members of one object into row.
func (t *jsonTable) parse(line []byte, row *fileRow) error {
	row.reset(len(t.columns.names))
	s := &t.scan
	s.reset(line)
	if !s.punct('{') {
		return s.bad("want an object")
	}
	if s.punct('}') {
		return s.end()
	}
	for {
		key, ok := s.string()
		if !ok || !s.punct(':') {
			return s.bad(`want "name": value`)
		}
		slot := t.columns.find(key)
		for len(row.cells) < len(t.columns.names) {
			row.cells = append(row.cells, cell{})
		}
		var spare cell
		c := &spare
		if slot >= 0 {
			if c = &row.cells[slot]; c.kind != absentCell {
				return badRowf(event.Malformed, "%s is given twice", t.columns.slotName(slot))
			}
		}
		if !s.value(c, row) {
			return s.bad("want a value for " + shortQuote(key))
		}
		if s.punct('}') {
			return s.end()
		}
		if !s.punct(',') {
			return s.bad("want , or }")
		}
	}
}

// jsonScan walks over one JSON text.
type jsonScan struct {
	text []byte
	at   int
}

func (s *jsonScan) reset(text []byte) { s.text, s.at = text, 0 }

func (s *jsonScan) bad(want string) error {
	return badRowf(event.Malformed, "byte %d: not JSON: %s", s.at, want)
}

// end checks that nothing follows.
func (s *jsonScan) end() error {
	s.spaces()
	if s.at < len(s.text) {
		return s.bad("want the end of the line")
	}
	return nil
}

func (s *jsonScan) spaces() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// punct takes the byte c, after white space, if it is there.
func (s *jsonScan) punct(c byte) bool {
	s.spaces()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// string takes a string, which aliases the text unless it has escapes.
func (s *jsonScan) string() (string, bool) {
	if !s.punct('"') {
		return "", false
	}
	start, plain, ascii := s.at, true, true
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			raw := s.text[start:s.at]
			s.at++
			if !ascii && !utf8.Valid(raw) {
				return "", false
			}
			if plain {
				return aliasString(raw), true
			}
			var out string
			err := json.Unmarshal(s.text[start-1:s.at], &out)
			return out, err == nil
		case c == '\\':
			plain = false
			s.at++
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// value takes a value into c.
func (s *jsonScan) value(c *cell, row *fileRow) bool {
	s.spaces()
	if s.at == len(s.text) {
		return false
	}
	switch s.text[s.at] {
	case '"':
		text, ok := s.string()
		c.kind, c.text = textCell, text
		return ok
	case '{':
		start := s.at
		c.kind = objectCell
		if !s.skip() {
			return false
		}
		c.text = aliasString(s.text[start:s.at])
		return json.Valid(s.text[start:s.at])
	case '[':
		return s.numbers(c, row)
	case 't':
		c.kind, c.integer = boolCell, 1
		return s.word("true")
	case 'f':
		c.kind = boolCell
		return s.word("false")
	case 'n':
		c.kind = nullCell
		return s.word("null")
	}
	return s.numeral(c)
}

func (s *jsonScan) word(w string) bool {
	if len(s.text)-s.at >= len(w) && string(s.text[s.at:s.at+len(w)]) == w {
		s.at += len(w)
		return true
	}
	return false
}

// numeral takes a number. One of digits only that fits is an unsigned integer.
func (s *jsonScan) numeral(c *cell) bool {
	start := s.at
	for s.at < len(s.text) && numeralByte(s.text[s.at]) {
		s.at++
	}
	text := s.text[start:s.at]
	if len(text) == 0 {
		return false
	}
	if len(text) < 20 && (text[0] != '0' || len(text) == 1) {
		n, digits := uint64(0), true
		for _, d := range text {
			digits = digits && d-'0' <= 9
			n = 10*n + uint64(d-'0')
		}
		if digits {
			c.kind, c.integer = uintCell, n
			return true
		}
	}
	if !json.Valid(text) {
		return false
	}
	if n, err := strconv.ParseUint(aliasString(text), 10, 64); err == nil {
		c.kind, c.integer = uintCell, n
		return true
	}
	c.kind, c.text = numberCell, aliasString(text)
	c.number, _ = strconv.ParseFloat(c.text, 64) // the text is a number; overflow gives an infinity
	return true
}

func numeralByte(c byte) bool {
	return c-'0' <= 9 || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// numbers takes an array of numbers.
func (s *jsonScan) numbers(c *cell, row *fileRow) bool {
	from := len(row.list)
	c.kind = listCell
	s.at++
	if !s.punct(']') {
		for {
			var x cell
			s.spaces()
			if !s.numeral(&x) {
				return false
			}
			if x.kind == uintCell {
				x.number = float64(x.integer)
			}
			row.list = append(row.list, x.number)
			if s.punct(']') {
				break
			}
			if !s.punct(',') {
				return false
			}
		}
	}
	c.list = row.list[from:len(row.list):len(row.list)]
	return true
}

// skip passes over an object without looking closely.
func (s *jsonScan) skip() bool {
	depth := 0
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '"':
			if _, ok := s.string(); !ok {
				return false
			}
			s.at--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return true
			}
		}
	}
	return false
}
