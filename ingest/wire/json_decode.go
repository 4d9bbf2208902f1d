package wire

import (
	"bytes"
	"errors"

	"gqlstream/ingest/event"
)

var newLine, newObject = []byte("\n"), []byte("\n{")

// decodeJSON reads one event or an array of events. A sniffed message may also turn
// out to be one event a line, and a message of lines is.
func (d *Decoder) decodeJSON(m *Message, b *event.Batch, lines, sniffed bool) *event.Problem {
	if p := checkText(m.Payload); p != nil {
		return p
	}
	r := &d.json
	r.reset(m.Payload, b)
	if most := d.eventsMax(m.Kind); lines && bytes.Count(m.Payload, newLine) > most &&
		len(bytes.SplitN(m.Payload, newObject, most+2)) > most+1 { // not worth reading
		return d.tooMany(m.Kind, most)
	}
	index, p := 0, (*event.Problem)(nil)
	if !lines && r.dec.PeekKind() == '[' {
		if index, p = d.jsonArray(m, b); p == nil && r.problem == nil && !r.end() {
			r.fail(errors.New("text after the end of the message"))
		}
	} else {
		index, p = d.jsonLines(m, b, lines, sniffed)
	}
	if p == nil && r.problem != nil {
		p = event.Problemf(event.Malformed, "event %d, %s", index, r.detail())
	}
	return p
}

// jsonArray reads an array of events and returns the index of the last.
func (d *Decoder) jsonArray(m *Message, b *event.Batch) (index int, p *event.Problem) {
	r := &d.json
	for r.open('[', "an array"); r.more(); index++ {
		if index == d.eventsMax(m.Kind) {
			return index, d.tooMany(m.Kind, index)
		}
		if !d.jsonEvent(m, b, index) {
			break
		}
	}
	return index, nil
}

// jsonLines reads one event, or with lines one event a line, of which there may be
// none. Text after the first event makes a sniffed message one of lines.
func (d *Decoder) jsonLines(m *Message, b *event.Batch, lines, sniffed bool) (index int, p *event.Problem) {
	r := &d.json
	for end := 0; !r.end() || !lines && index == 0; index++ {
		if index == d.eventsMax(m.Kind) {
			return index, d.tooMany(m.Kind, index)
		}
		if index > 0 {
			if !lines && !sniffed {
				r.fail(errors.New("text after the end of the message"))
				return index, nil
			}
			lines = true
			if next := bytes.IndexByte(m.Payload[end:], '{'); next < 0 || bytes.IndexByte(m.Payload[end:end+next], '\n') < 0 {
				r.fail(errors.New("text after the event on its line"))
				return index - 1, nil
			}
		}
		begin := int(r.dec.InputOffset())
		if !d.jsonEvent(m, b, index) {
			return index, nil
		}
		end = int(r.dec.InputOffset())
		text := m.Payload[begin+spaces(m.Payload[begin:end]) : end]
		if (lines || sniffed && !r.end()) && bytes.IndexByte(text, '\n') >= 0 {
			r.fail(errors.New("the event goes on after the end of its line"))
			return index, nil
		}
	}
	return index, nil
}

// tooMany is the problem of a message that holds more events than are allowed.
func (d *Decoder) tooMany(kind event.Kind, index int) *event.Problem {
	return event.Problemf(event.TooLarge, "event %d, byte %d: more than %d events in a message",
		index, d.json.dec.InputOffset(), d.eventsMax(kind))
}

// jsonEvent reads one event, and appends it to b or refuses it. It returns false on text that is not JSON.
func (d *Decoder) jsonEvent(m *Message, b *event.Batch, index int) bool {
	reader := &d.json
	if !reader.open('{', "the object of an event") {
		return false
	}
	start := int(reader.dec.InputOffset()) - 1
	r := d.begin(m.Kind)
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
