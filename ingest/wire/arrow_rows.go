package wire

import (
	"cmp"
	"math"
	"strconv"

	"gqlstream/ingest/event"
)

// chunkRows is the number of rows that are turned at a time, column by column: few enough that
// their records stay in the caches.
const chunkRows = 256

// originalsPerMessage bounds the bytes of refused rows as JSON, in multiples of
// event.MessageBytesMax: views and dictionaries can say one long text many times.
const originalsPerMessage = 4

// decodeArrow reads an Arrow stream: a schema, dictionaries, record batches and perhaps the end mark. It never copies
// what a size in the input says it should, and looks at no byte before it has checked that it is there.
func (d *Decoder) decodeArrow(m *Message, b *event.Batch) *event.Problem {
	if p := checkStream(m.Payload); p != nil {
		return p
	}
	t := &d.table
	t.reset(m.Kind, d.k)
	var blk block
	for at := 0; at < len(m.Payload); {
		n, p := readBlock(m.Payload, at, &blk)
		if p != nil {
			return p
		}
		at += n
		switch {
		case blk.kind == 0: // the end mark
			if at != len(m.Payload) {
				return event.Problemf(event.Malformed, "byte %d: bytes after the end of the stream", at)
			}
		case !t.ready:
			version, p := t.readSchema(&blk)
			if p := cmp.Or(p, sound(&blk)); p != nil {
				return p
			}
			if p := checkVersion(version); p != nil {
				return p
			}
			if p := t.bindSchema(); p != nil {
				return p
			}
		default:
			if p := d.arrowBlock(m, b, &blk); p != nil {
				return p
			}
		}
	}
	if !t.ready {
		return event.Problemf(event.Malformed, "byte %d: the stream has no schema", len(m.Payload))
	}
	return nil
}

// arrowBlock reads a block that follows the schema.
func (d *Decoder) arrowBlock(m *Message, b *event.Batch, blk *block) *event.Problem {
	t := &d.table
	switch blk.kind {
	case headerDictionary:
		return cmp.Or(t.readDictionary(blk), sound(blk))
	case headerBatch:
		n, p := t.readBatch(blk)
		if p := cmp.Or(p, sound(blk)); p != nil {
			return p
		}
		if limit := d.eventsMax(m.Kind); t.before+n > limit {
			return event.Problemf(event.TooLarge, "byte %d: more than %d events in a message", blk.at, limit)
		}
		if (t.before+n)*t.attributes > event.AttributesPerMessage {
			return event.Problemf(event.TooLarge, "byte %d: more than %d attributes in a message",
				blk.at, event.AttributesPerMessage)
		}
		p = d.arrowRows(m, b, n)
		t.before += n
		return p
	}
	return event.Problemf(event.Malformed,
		"byte %d: Arrow message of type %d where a record batch should stand", blk.at, blk.kind)
}

// arrowRows appends the rows of the record batch at hand to b.
func (d *Decoder) arrowRows(m *Message, b *event.Batch, rows int) *event.Problem {
	t, step := &d.table, chunkRows
	if m.Kind == event.KindPrediction {
		step = max(1, min(step, 1<<16/d.k)) // bounds the probabilities of a chunk
	}
	for first := 0; first < rows; first += step {
		records := d.begin(m, min(step, rows-first))
		for i := range t.columns {
			if c := &t.columns[i]; c.field != fieldProbabilities {
				d.readColumn(c, first, records)
			}
		}
		if m.Kind == event.KindPrediction {
			d.readProbabilities(first, records)
		}
		kept := records[0].at
		for i := range records {
			r := &records[i]
			p := d.finish(m, r, t.before+first+i)
			if p == nil {
				if kept != r.at {
					b.Move(m.Kind, kept, r.at)
				}
				kept++
				continue
			}
			if p = d.refuseRow(m, b, first+i, p); p != nil {
				return p
			}
		}
		b.Cut(m.Kind, kept)
	}
	return nil
}

// refuseRow refuses a row of the record batch at hand. It returns the problem of a
// message whose refused rows take too much room.
func (d *Decoder) refuseRow(m *Message, b *event.Batch, row int, p *event.Problem) *event.Problem {
	t := &d.table
	m.refuse(b, t.before+row, p, func() []byte {
		original := t.appendRow(nil, row)
		t.originals += len(original)
		return original
	})
	if t.originals > originalsPerMessage*event.MessageBytesMax {
		return event.Problemf(event.TooLarge, "row %d: the refused rows take too much room", t.before+row)
	}
	return nil
}

// readColumn reads a column into the records, whose first is a row. Ids, weights and
// timestamps without nulls, which nearly every edge is made of, have a fast way.
func (d *Decoder) readColumn(c *column, first int, records []record) {
	s, data := c.spec, c.data
	switch {
	case c.nulls:
	case s.holds == &idType && c.kind == UintCell && !c.signed:
		for i := range records {
			records[i].seen |= 1 << s.field
			*s.value(d.batch, records[i].at).(*event.ID) = event.NumberID(wordAt(data, first+i, c.width))
		}
		return
	case s.holds == &weightType && c.kind == NumberCell:
		for i := range records {
			records[i].seen |= 1 << s.field
			*s.value(d.batch, records[i].at).(*float64) = c.float(data, first+i)
		}
		return
	case s.holds == &timeType && c.kind == TimeCell && c.ticks == 1e9:
		for i := range records {
			v := int64(wordAt(data, first+i, 8))
			if v < -int64(event.TimeMax) || v > int64(event.TimeMax) {
				break
			}
			records[i].seen |= 1 << s.field
			*s.value(d.batch, records[i].at).(*event.Time) = event.Time(v)
			if i == len(records)-1 {
				return
			}
		}
	}
	d.readCells(c, first, records)
}

// readCells reads a column of any type into the records, whose first is a row.
func (d *Decoder) readCells(c *column, first int, records []record) {
	for i := range records {
		r, v := &records[i], &d.cell
		*v = Cell{}
		c.value(first+i, v)
		var p *event.Problem
		switch {
		case c.field == fieldAttributes:
			if v.Kind != NullCell { // a null is not an attribute: a table cannot take one away
				p = d.attribute(r, arrowForm, c.name, v)
			}
		case v.Kind != NullCell, c.field == fieldClass:
			p = d.set(arrowForm, c.spec, r, v)
		}
		if p != nil {
			r.refuse(p)
		}
	}
}

// value makes v row i of the column.
func (c *column) value(i int, v *Cell) {
	switch {
	case c.null(i):
		v.Kind = NullCell
	case c.list >= 0:
		v.Kind = ListCell
		for at := i * int(c.list); at < (i+1)*int(c.list); at++ {
			x := math.NaN()
			if c.holds(at) {
				x = c.float(c.data, at)
			}
			v.Append(x)
		}
	case c.kind == TextCell:
		v.Kind, v.Text = TextCell, c.text(i)
	case c.kind == BoolCell:
		v.Kind = BoolCell
		if c.data[i/8]>>(i%8)&1 == 1 {
			v.Integer = 1
		}
	case c.kind == NumberCell:
		v.Kind, v.Number = NumberCell, c.float(c.data, i)
	case c.kind == TimeCell:
		v.Kind, v.Integer = TimeCell, math.MaxInt64
		ticks, nanos := int64(wordAt(c.data, i, 8)), 1e9/c.ticks
		if limit := math.MaxInt64 / nanos; ticks >= -limit && ticks <= limit {
			v.Integer = uint64(ticks * nanos)
		}
	default:
		n, negative := c.int(c.data, i)
		v.Kind, v.Integer = UintCell, n
		if negative {
			v.Kind, v.Number, v.Text = NumberCell, -float64(n), "-"+strconv.FormatUint(n, 10) // no other number of a table has digits
		}
	}
}

// readProbabilities reads the probabilities of the records, whose first is a row: from
// a column of lists, or from the columns p0 to p{K-1}.
func (d *Decoder) readProbabilities(first int, records []record) {
	t, k := &d.table, d.k
	if need := len(records) * k; cap(d.probabilities) < need {
		d.probabilities = make([]float64, need)
	}
	var lists *column
	if at := t.by[fieldProbabilities]; at > 0 {
		lists = &t.columns[at-1]
	}
	for i := range records {
		r := &records[i]
		r.probabilities = d.probabilities[i*k : (i+1)*k]
		for j := range r.probabilities {
			c, at := lists, (first+i)*k+j
			if lists == nil && len(t.classes) > 0 {
				c, at = &t.columns[t.classes[j]], first+i
			}
			if c == nil || c.null(first+i) || !c.holds(at) {
				continue
			}
			r.probabilities[j] = c.float(c.data, at)
			r.given++
		}
		if r.given > 0 {
			r.seen |= 1 << fieldProbabilities
		}
		if certain := r.has(fieldClass) && r.class != event.NoClass; r.given > 0 && r.given < k && !certain {
			r.refuse(missing(event.KindPrediction, "some of its probabilities"))
		}
	}
}

// holds reports whether value at of the lists of a column is not null.
func (c *column) holds(at int) bool { return c.items == nil || c.items[at/8]>>(at%8)&1 == 1 }

// appendRow appends row i of the record batch at hand as a JSON event. Numbers that
// JSON cannot write are strings, so that reading it again refuses it again.
func (t *table) appendRow(dst []byte, i int) []byte {
	dst = append(dst, '{')
	n, given, attributes := len(dst), false, []byte(nil)
	list := Cell{Kind: ListCell}
	for range t.classes {
		list.Append(math.NaN())
	}
	for j := range t.columns {
		var v Cell
		c := &t.columns[j]
		switch c.value(i, &v); {
		case v.Kind == NullCell && c.field != fieldClass: // a label without a class is withdrawn
			continue
		case c.class > 0:
			list.List[c.class-1], given = v.Number, true
			continue
		case c.field == fieldAttributes:
			if v.Kind == NumberCell && v.Number-v.Number != 0 { // as a string it would be a value
				v = Cell{Kind: ListCell, List: []float64{v.Number}}
			}
			attributes = appendCell(appendKey(attributes, 0, c.name), &v)
			continue
		case c.field == fieldOp && v.Kind != TextCell && v.Integer < uint64(len(c.spec.words)):
			v = Cell{Kind: TextCell, Text: c.spec.words[v.Integer]}
		case c.field == fieldConfig:
			if text, p := (&Decoder{}).configText(&v); p == nil {
				v = Cell{Kind: ObjectCell, Text: alias(text)}
			}
		}
		dst = appendCell(appendKey(dst, n, c.spec.name), &v)
	}
	if given {
		dst = appendCell(appendKey(dst, n, "probabilities"), &list)
	}
	if attributes != nil {
		dst = append(append(append(appendKey(dst, n, "attributes"), '{'), attributes...), '}')
	}
	return append(dst, '}')
}
