package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gqlstream/ingest/event"
)

// jsonReader reads the values of a JSON text as cells. The grammar is the library's, in its strict
// form: RFC 8259, UTF-8 without halves of surrogate pairs, and no repeated key in an object. It
// keeps the first error.
type jsonReader struct {
	text    []byte
	before  int64        // bytes of the message before the text
	buf     bytes.Buffer // the library reads directly from it
	dec     jsontext.Decoder
	batch   *event.Batch // owner of strings with escapes; nil: none
	outer   int          // lists around the text
	scratch []byte       // of a string with escapes
	list    []float64    // backing of lists
	problem error
}

// reset starts with another text, at a byte of its message.
func (r *jsonReader) reset(text []byte, before int, batch *event.Batch) {
	r.text = text
	r.before = int64(before)
	r.batch = batch
	r.problem = nil
	r.buf = *bytes.NewBuffer(text)
	r.dec.Reset(&r.buf)
}

// errDepth is the error of a text with too many objects and arrays inside each other.
var errDepth = fmt.Errorf("more than %d objects and arrays inside each other", event.JSONDepthMax)

// fail keeps the first error and returns false.
func (r *jsonReader) fail(err error) bool {
	if r.problem == nil {
		r.problem = err
	}
	return false
}

// detail describes the error with its place.
func (r *jsonReader) detail() string {
	var syntax *jsontext.SyntacticError
	at, what := r.dec.InputOffset(), r.problem.Error()
	switch {
	case errors.Is(r.problem, jsontext.ErrDuplicateName) && errors.As(r.problem, &syntax):
		at, what = syntax.ByteOffset, "key "+Quote(syntax.JSONPointer.LastToken()).String()+
			" given twice"
	case errors.Is(r.problem, io.ErrUnexpectedEOF), r.problem == io.EOF:
		at, what = int64(len(r.text)), "the text ends too early"
	case errors.As(r.problem, &syntax):
		at, what = syntax.ByteOffset, syntax.Err.Error()
	case r.problem == errDepth:
		at-- // the bracket was read
	}
	return fmt.Sprintf("byte %d: %s", r.before+at, what)
}

// open reads the { or [ of a list.
func (r *jsonReader) open(bracket jsontext.Kind, wanted string) bool {
	if kind := r.dec.PeekKind(); kind != bracket && kind != 0 {
		return r.fail(fmt.Errorf("%s in place of %s", kind, wanted))
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.fail(err)
	}
	if r.dec.StackDepth()+r.outer > event.JSONDepthMax {
		return r.fail(errDepth)
	}
	return true
}

// more reports whether another item follows in the current list; if not, it reads the end of the
// list.
func (r *jsonReader) more() bool {
	if kind := r.dec.PeekKind(); kind != '}' && kind != ']' {
		return r.problem == nil
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.fail(err)
	}
	return false
}

// object reads an object. member reads the value of a key, unless it fails.
func (r *jsonReader) object(wanted string, member func(key string) bool) bool {
	for r.open('{', wanted); r.more(); {
		if key, ok := r.str(); !ok || !member(key) {
			return false
		}
	}
	return r.problem == nil
}

// str reads a string, which aliases the text unless it has escapes.
func (r *jsonReader) str() (string, bool) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return "", r.fail(err)
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return alias(raw[1 : len(raw)-1]), true
	}
	if r.scratch, err = jsontext.AppendUnquote(r.scratch[:0], raw); err != nil {
		return "", r.fail(err)
	}
	if r.batch == nil {
		return string(r.scratch), true
	}
	return r.batch.Keep(alias(r.scratch)), true
}

// cell reads any value.
func (r *jsonReader) cell(c *Cell) (ok bool) {
	switch kind := r.dec.PeekKind(); kind {
	case '"':
		c.Kind = TextCell
		c.Text, ok = r.str()
		return ok
	case '0':
		raw, err := r.dec.ReadValue()
		if err != nil {
			return r.fail(err)
		}
		c.number(alias(raw))
		return true
	case 't', 'f', 'n':
		c.Kind = BoolCell
		if kind == 'n' {
			c.Kind = NullCell
		} else if kind == 't' {
			c.Integer = 1
		}
		if _, err := r.dec.ReadToken(); err != nil {
			return r.fail(err)
		}
		return true
	case '{':
		start := r.dec.InputOffset()
		ok = r.skip()
		c.Kind, c.Text = ObjectCell, alias(r.since(start))
		return ok
	case '[':
		return r.numbers(c)
	}
	if _, err := r.dec.ReadToken(); err != nil { // a list that ends where a value is expected
		return r.fail(err)
	}
	return r.fail(errors.New("no value"))
}

// number sets c to the JSON number text.
func (c *Cell) number(text string) {
	c.Kind, c.Text = NumberCell, text
	if areDigits(text) {
		if v, err := strconv.ParseUint(text, 10, 64); err == nil {
			c.Kind, c.Integer = UintCell, v
			return
		}
	}
	c.Number, _ = strconv.ParseFloat(text, 64) // overflow gives an infinity
}

// numbers reads an array. Values that are not numbers are checked as JSON only.
func (r *jsonReader) numbers(c *Cell) bool {
	if !r.open('[', "an array") {
		return false
	}
	c.Kind, c.List = ListCell, r.list[:0]
	for r.more() {
		if r.dec.PeekKind() == '0' {
			raw, err := r.dec.ReadValue()
			if err != nil {
				return r.fail(err)
			}
			x, _ := strconv.ParseFloat(alias(raw), 64) // overflow gives an infinity
			c.Append(x, true)
		} else if c.Append(0, false); !r.skip() {
			return false
		}
	}
	r.list = c.List
	return r.problem == nil
}

// skip reads any value, checking only its syntax.
func (r *jsonReader) skip() bool {
	for depth := r.dec.StackDepth(); ; {
		if _, err := r.dec.ReadToken(); err != nil {
			return r.fail(err)
		}
		if now := r.dec.StackDepth(); now+r.outer > event.JSONDepthMax {
			return r.fail(errDepth)
		} else if now <= depth {
			return true
		}
	}
}

// since returns the object read since an offset, perhaps after a comma or a colon.
func (r *jsonReader) since(start int64) []byte {
	text := r.text[start:r.dec.InputOffset()]
	return text[max(0, bytes.IndexByte(text, '{')):]
}

// blank reports whether only white space is left.
func (r *jsonReader) blank() bool {
	return len(bytes.TrimLeft(r.text[r.dec.InputOffset():], " \t\r\n")) == 0
}

// end refuses further text, and reports whether the text was sound.
func (r *jsonReader) end(of string) bool {
	if r.problem == nil && !r.blank() {
		r.fail(errors.New("text after the end of the " + of))
	}
	return r.problem == nil
}

// Object reads JSON objects that are rows of a file. It reuses scratch memory, so it has one owner
// at a time.
type Object struct{ reader jsonReader }

// Read reads the members of the object in text into the cells that member returns for their keys;
// nil skips one. Members of an object inside are read under both keys with a dot between them,
// unless whole reports that the object itself is wanted as a cell. Referenced memory is valid until
// the text changes, or until the next Read. It returns a problem if text is not such an object.
func (o *Object) Read(
	text []byte, whole func(key string) bool, member func(key string) *Cell,
) *event.Problem {
	r := &o.reader
	r.reset(text, 0, nil)
	o.members("", whole, member)
	if !r.end("object") {
		return event.Problemf(event.Malformed, "not JSON: %s", r.detail())
	}
	return nil
}

// members reads the members of an object whose own key, with a dot, is before.
func (o *Object) members(
	before string, whole func(key string) bool, member func(key string) *Cell,
) bool {
	r := &o.reader
	return r.object("an object", func(key string) bool {
		if before != "" {
			key = before + key
		}
		if r.dec.PeekKind() == '{' && !whole(key) {
			return o.members(key+".", whole, member)
		}
		c := member(key)
		switch {
		case c == nil:
			return r.skip()
		case c.Kind != AbsentCell:
			return r.fail(errors.New("field " + Quote(key).String() + " given twice"))
		}
		return r.cell(c)
	})
}
