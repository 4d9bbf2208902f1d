package wire

import (
	"errors"

	"gqlstream/ingest/event"
)

// Object reads JSON objects that are the rows of a file. It keeps scratch memory, so it
// has one owner at a time.
type Object struct{ reader jsonReader }

// Read reads the members of the object in text into the cells that member returns for
// their keys; nil skips one. What the cells point to is valid until the text changes,
// or until the next Read. The problem is that of text that is no such object.
func (o *Object) Read(text []byte, member func(key string) *Cell) *event.Problem {
	r := &o.reader
	r.reset(text, nil)
	if r.dec.PeekKind() != '{' {
		return event.Problemf(event.Malformed, "not JSON: want an object")
	}
	for r.open('{', "an object"); r.more(); {
		key, ok := r.str()
		if !ok {
			break
		}
		c := member(key)
		switch {
		case c == nil:
			ok = r.skip()
		case c.Kind != AbsentCell:
			ok = r.fail(errors.New("field " + Quote(key).String() + " given twice"))
		default:
			ok = r.cell(c)
		}
		if !ok {
			break
		}
	}
	if r.problem == nil && !r.end() {
		r.fail(errors.New("text after the end of the object"))
	}
	if r.problem != nil {
		return event.Problemf(event.Malformed, "not JSON: %s", r.detail())
	}
	return nil
}
