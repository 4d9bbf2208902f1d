package wire

import (
	"bytes"
	"errors"

	"gqlstream/ingest/event"
)

// decodeJSON reads one event or an array of events, or with several also events one after another.
func (d *Decoder) decodeJSON(m *Message, b *event.Batch, several bool) *event.Problem {
	if p := checkText(m.Payload); p != nil {
		return p
	}
	r := &d.json
	r.reset(m.Payload, b)
	array := r.dec.PeekKind() == '[' && r.open('[', "an array")
	follows := func(index int) bool {
		if array {
			return r.more()
		}
		return index == 0 || several && !r.end()
	}
	index := 0
	for ; r.problem == nil && follows(index); index++ {
		if most := d.eventsMax(m.Kind); index == most {
			return event.Problemf(event.TooLarge, "event %d, byte %d: more than %d events in a message",
				index, r.dec.InputOffset(), most)
		}
		if !d.jsonEvent(m, b, index) {
			break
		}
	}
	if r.problem == nil && !r.end() {
		r.fail(errors.New("text after the end of the message"))
	}
	if r.problem != nil {
		return event.Problemf(event.Malformed, "event %d, %s", index, r.detail())
	}
	return nil
}

// jsonEvent reads one event, and appends it to b or refuses it. It returns false on text that is not JSON.
func (d *Decoder) jsonEvent(m *Message, b *event.Batch, index int) bool {
	reader := &d.json
	if !reader.open('{', "the object of an event") {
		return false
	}
	start := int(reader.dec.InputOffset()) - 1
	r := &d.begin(m, 1)[0]
	if !d.jsonMembers(m, r) {
		return false
	}
	if p := d.finish(m, r, index); p != nil {
		b.Cut(m.Kind, r.at)
		m.refuse(b, index, p, func() []byte { return reader.text[start:reader.dec.InputOffset()] })
	}
	return true
}

// jsonMembers reads the members of an event's object into the record.
func (d *Decoder) jsonMembers(m *Message, r *record) bool {
	reader, kind, given := &d.json, m.Kind, uint32(0)
	for at := 0; reader.more(); {
		key, ok := reader.str()
		if !ok {
			return false
		}
		i := findField(kind, key, at)
		if i < 0 {
			if !m.SaysKind || key != "kind" {
				r.refuse(event.Problemf(event.UnknownField, "%v events have no field %s: %s",
					kind, Quote(key), nearest{key, fieldNames[kind]}))
			}
			if !reader.skip() {
				return false
			}
			continue
		}
		s := &fields[kind][i]
		if given&(1<<s.field) != 0 { // by its alias: of one name the library sees to it
			return reader.fail(errors.New("field " + Quote(s.name).String() + " given twice"))
		}
		given |= 1 << s.field
		c := &d.cell
		if *c = (Cell{}); !reader.cell(c) {
			return false
		}
		if at = i + 1; c.Kind == NullCell && !s.holds.accepts[jsonForm].holds(NullCell) {
			continue // the same as not given
		}
		if p := d.set(jsonForm, s, r, c); p != nil {
			r.refuse(p)
		}
	}
	return reader.problem == nil
}

// attributeObject reads attributes from the JSON of an object, which is sound unless it is text of a file.
func (d *Decoder) attributeObject(r *record, s *fieldSpec, f form, c *Cell) *event.Problem {
	reader := &d.inner
	reader.reset(bytesOf(c.Text), d.batch)
	var first *event.Problem
	if !reader.open('{', "an object") {
		return s.unfit(f, c)
	}
	for reader.more() {
		key, ok := reader.str()
		d.value = Cell{}
		if !ok || !reader.cell(&d.value) {
			return s.unfit(f, c)
		}
		if p := d.attribute(r, jsonForm, key, &d.value); p != nil && first == nil {
			first = p
		}
	}
	if reader.problem != nil || !reader.end() {
		return s.unfit(f, c)
	}
	return first
}

// configText reads the configuration in a cell: one JSON object.
func (d *Decoder) configText(c *Cell) ([]byte, *event.Problem) {
	if c.Kind == ObjectCell {
		return bytesOf(c.Text), nil
	}
	text := bytes.TrimSpace(bytesOf(c.Text))
	if len(text) == 0 || text[0] != '{' {
		return nil, event.Problemf(event.BadValue, "config must be a JSON object")
	}
	reader := &d.inner
	reader.reset(text, d.batch)
	if !reader.skip() {
		return nil, event.Problemf(event.BadValue, "config: %s", reader.detail())
	}
	if !reader.end() {
		return nil, event.Problemf(event.BadValue, "config: text after the end of the object")
	}
	return text, nil
}
