package wire

import (
	"cmp"

	"gqlstream/ingest/event"
)

// originalsPerMessage bounds the bytes of refused rows as JSON, in multiples of
// event.MessageBytesMax: with views and dictionaries, one long text can be in many rows.
const originalsPerMessage = 4

// decodeArrow reads an Arrow stream: a schema, dictionaries, record batches and perhaps the end
// mark. It never allocates by a size in the input, and checks that a byte exists before it reads
// it.
func (d *Decoder) decodeArrow(m *Message, b *event.Batch) *event.Problem {
	t := &d.table
	clear(t.columns)
	*t = table{kind: m.Kind, k: d.k, columns: t.columns[:0], classes: t.classes[:0]}
	var blk block
	for at := 0; at < len(m.Payload); {
		n, p := blk.read(m.Payload, at)
		if p != nil {
			return p
		}
		switch at += n; {
		case blk.kind != 0 && len(t.columns) > 0:
			p = d.arrowBlock(m, b, &blk)
		case blk.kind != 0:
			p = t.readSchema(&blk)
			p = cmp.Or(blk.sound(),
				p) // damaged metadata reads as zeros, which would look like a wrong column
		case at != len(m.Payload): // after the end mark
			p = event.Problemf(event.Malformed, "byte %d: bytes after the end of the stream", at)
		}
		if p != nil {
			return p
		}
	}
	if len(t.columns) == 0 {
		return event.Problemf(event.Malformed, "byte %d: the stream has no schema", len(m.Payload))
	}
	return nil
}

// arrowBlock reads a block after the schema.
func (d *Decoder) arrowBlock(m *Message, b *event.Batch, blk *block) *event.Problem {
	t := &d.table
	if blk.kind == headerDictionary {
		return t.readDictionary(blk)
	} else if blk.kind != headerBatch {
		return blk.problem("Arrow message of type %d in place of a record batch", blk.kind)
	}
	n, p := blk.readBatch(blk.header, t.columns)
	if p != nil {
		return p
	}
	if limit := d.eventsMax(m.Kind); t.before+n > limit {
		return event.Problemf(event.TooLarge, "byte %d: more than %d events in a message",
			blk.at, limit)
	}
	if (t.before+n)*t.attributes > event.AttributesPerMessage {
		return event.Problemf(event.TooLarge, "byte %d: more than %d attributes in a message",
			blk.at, event.AttributesPerMessage)
	}
	p = d.arrowRows(m, b, n)
	t.before += n
	return p
}

// arrowRows appends the rows of the current record batch to b. It returns a problem if the refused
// rows of the message take too much space.
func (d *Decoder) arrowRows(m *Message, b *event.Batch, rows int) *event.Problem {
	t := &d.table
	for row := range rows {
		r, index := d.appendEvent(m.Kind), t.before+row
		for i := range t.columns {
			if c := &t.columns[i]; !c.numbered && !d.readID(r, c, row) {
				d.readCell(r, c, row)
			}
		}
		if len(t.classes) > 0 {
			d.value = Cell{List: d.probabilities[:0]}
			t.readClasses(row, &d.value)
			d.probabilities = d.value.List
			d.storeCell(arrowForm, specOf(r.kind, fieldProbabilities), r, &d.value)
		}
		p := d.finish(m, r, index)
		if p == nil {
			continue
		}
		b.Truncate(m.Kind, r.at)
		m.refuse(b, index, p, func() []byte {
			original := t.appendRow(nil, row)
			t.originals += len(original)
			return original
		})
		if t.originals > originalsPerMessage*event.MessageBytesMax {
			return event.Problemf(event.TooLarge, "row %d: the refused rows take too much room",
				index)
		}
	}
	return nil
}

// readID is the fast path for integers, which most ids are.
func (d *Decoder) readID(r *draft, c *column, row int) bool {
	if c.spec.holds != &idType || c.kind != UintCell || c.signed || !isSet(c.valid, row) {
		return false
	}
	r.seen |= 1 << c.spec.field
	id := event.NumberID(wordAt(c.data, row, c.width))
	switch v := c.spec.value(d.batch, r.at).(type) {
	case *event.ID:
		*v = id
	case *event.Reference:
		*v = event.Reference{ID: id, Given: true}
	}
	return true
}

// readCell reads a row of a column into the record.
func (d *Decoder) readCell(r *draft, c *column, row int) {
	v := &d.cell
	*v = Cell{List: d.probabilities[:0]}
	c.value(row, v)
	if d.probabilities = v.List; c.spec.field != fieldAttributes {
		d.storeCell(arrowForm, c.spec, r, v)
	} else if v.Kind != NullCell { // a null is no attribute: a table cannot remove one
		r.refuse(d.attribute(r, arrowForm, c.name, v))
	}
}

// readClasses sets v to the list of the columns p0 to p{K-1} of a row, or to null if all are null.
func (t *table) readClasses(row int, v *Cell) {
	v.Kind = NullCell
	for _, at := range t.classes {
		c := &t.columns[at]
		if v.Append(c.float(c.data, row), isSet(c.valid, row)); isSet(c.valid, row) {
			v.Kind = ListCell
		}
	}
}

// appendRow appends row i of the current record batch as a JSON event. Numbers that JSON cannot
// express become strings, so that reading the event again refuses it again.
func (t *table) appendRow(dst []byte, i int) []byte {
	dst = append(dst, '{')
	n := len(dst)
	attributes := []byte(nil)
	list := Cell{}
	for j := range t.columns {
		var v Cell
		c := &t.columns[j]
		switch c.value(i, &v); {
		case c.numbered,
			// a label without a class is withdrawn
			v.Kind == NullCell && c.spec.field != fieldClass:
			continue
		case c.spec.field == fieldAttributes:
			// as a string it would be a valid value
			if v.Kind == NumberCell && v.Number-v.Number != 0 {
				v = Cell{Kind: ListCell, List: []float64{v.Number}}
			}
			attributes = appendCell(appendKey(attributes, 0, c.name), &v)
			continue
		case c.spec.field == fieldOp && (v.Kind == UintCell || v.Kind == BoolCell) &&
			v.Integer < uint64(len(c.spec.words)):
			v = Cell{Kind: TextCell, Text: c.spec.words[v.Integer]}
		case c.spec.field == fieldConfig:
			if text, p := (&Decoder{}).configText(&v); p == nil {
				v = Cell{Kind: ObjectCell, Text: alias(text)}
			}
		}
		dst = appendCell(appendKey(dst, n, c.spec.name), &v)
	}
	if t.readClasses(i, &list); list.Kind == ListCell {
		dst = appendCell(appendKey(dst, n, "probabilities"), &list)
	}
	if attributes != nil {
		dst = append(append(append(appendKey(dst, n, "attributes"), '{'), attributes...), '}')
	}
	return append(dst, '}')
}
