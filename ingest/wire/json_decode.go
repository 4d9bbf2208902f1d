package wire

import (
	"bytes"
	"errors"

	"gqlstream/ingest/event"
)

// decodeJSON reads one event or an array of events. If the content type was detected, text after
// the first event makes the message NDJSON.
func (d *Decoder) decodeJSON(m *Message, b *event.Batch, sniffed bool) *event.Problem {
	r, index := &d.json, 0
	r.reset(m.Payload, 0, b)
	if r.dec.PeekKind() == '[' {
		for r.open('[', "an array"); r.more(); index++ {
			if p := d.jsonEvent(m, b, index); p != nil {
				return p
			}
		}
	} else if p := d.jsonEvent(m, b, 0); p != nil {
		return p
	} else if sniffed && !r.blank() {
		b.Rollback(d.before)
		return d.decodeLines(m, b)
	}
	if !r.end("message") {
		return d.badEvent(index)
	}
	return nil
}

// decodeLines reads one event a line. Lines may be blank.
func (d *Decoder) decodeLines(m *Message, b *event.Batch) *event.Problem {
	r, index, at := &d.json, 0, 0
	for line := range bytes.Lines(m.Payload) {
		r.reset(line, at, b)
		if at += len(line); r.blank() {
			continue
		}
		if p := d.jsonEvent(m, b, index); p != nil {
			return p
		}
		if !r.end("event on its line") {
			return d.badEvent(index)
		}
		index++
	}
	return nil
}

// badEvent returns the problem of text that is not JSON.
func (d *Decoder) badEvent(index int) *event.Problem {
	return event.Problemf(event.Malformed, "event %d, %s", index, d.json.detail())
}

// jsonEvent reads one event, and appends it to b or refuses it. It returns the problem of text that
// is not JSON, or of too many events.
func (d *Decoder) jsonEvent(m *Message, b *event.Batch, index int) *event.Problem {
	reader := &d.json
	start := reader.dec.InputOffset()
	if most := d.eventsMax(m.Kind); index == most {
		return event.Problemf(event.TooLarge, "event %d, byte %d: more than %d events in a message",
			index, reader.before+start, most)
	}
	r := d.appendEvent(m.Kind)
	if !d.jsonMembers(m, r) {
		return d.badEvent(index)
	}
	if p := d.finish(m, r, index); p != nil {
		b.Truncate(m.Kind, r.at)
		m.refuse(b, index, p, func() []byte { return reader.since(start) })
	}
	return nil
}

// jsonMembers reads an event's object into the draft.
func (d *Decoder) jsonMembers(m *Message, r *draft) bool {
	reader, given := &d.json, uint32(0)
	return reader.object("the object of an event", func(key string) bool {
		i := findField(m.Kind, key)
		if i < 0 {
			if !m.SaysKind || key != "kind" {
				r.refuse(event.Problemf(event.UnknownField, "%v events have no field %s: %s",
					m.Kind, Quote(key), nearest{key, fieldNames[m.Kind]}))
			}
			return reader.skip()
		}
		s := &fields[m.Kind][i]
		// given twice, by name and alias: the library refuses the same name twice
		if given>>s.field&1 != 0 {
			return reader.fail(errors.New("field " + Quote(s.name).String() + " given twice"))
		}
		given |= 1 << s.field
		if d.cell = (Cell{}); !reader.cell(&d.cell) {
			return false
		}
		d.storeCell(jsonForm, s, r, &d.cell)
		return true
	})
}

// attributeObject reads attributes from the JSON of an object. The JSON has been checked unless it
// is text of a file.
func (d *Decoder) attributeObject(r *draft, s *fieldSpec, f form, c *Cell) (first *event.Problem) {
	reader := &d.inner
	reader.reset(bytesOf(c.Text), 0, d.batch)
	reader.object("an object", func(key string) bool {
		if d.value = (Cell{}); !reader.cell(&d.value) {
			return false
		}
		if p := d.attribute(r, jsonForm, key, &d.value); first == nil {
			first = p
		}
		return true
	})
	if !reader.end("object") {
		return s.unfit(f, c)
	}
	return first
}

// configText reads the configuration in a cell: one JSON object.
func (d *Decoder) configText(c *Cell) ([]byte, *event.Problem) {
	if c.Kind == ObjectCell {
		return bytesOf(c.Text), nil
	}
	reader, text := &d.inner, bytes.TrimSpace(bytesOf(c.Text))
	reader.reset(text, 0, d.batch)
	if reader.dec.PeekKind() != '{' {
		return nil, event.Problemf(event.BadValue, "config must be a JSON object")
	}
	if reader.skip(); !reader.end("object") {
		return nil, event.Problemf(event.BadValue, "config: %s", reader.detail())
	}
	return text, nil
}
