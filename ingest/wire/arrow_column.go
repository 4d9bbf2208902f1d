package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// rowsMax bounds the rows of an Arrow record batch or dictionary before anything
// else is known of it.
const rowsMax = 1 << 24

// readBatch binds the columns to a record batch and returns its rows.
func (t *table) readBatch(blk *block) (int, *event.Problem) {
	rows := blk.header.number(0, 8)
	if rows > rowsMax {
		return 0, event.Problemf(event.TooLarge, "byte %d: a record batch of %d rows", blk.at, int64(rows))
	}
	r, p := newBinder(blk, blk.header)
	for i := 0; i < len(t.columns) && p == nil; i++ {
		p = t.bind(&r, &t.columns[i], int(rows))
	}
	if p == nil {
		p = r.done()
	}
	return int(rows), p
}

// readDictionary binds a dictionary to its values.
func (t *table) readDictionary(blk *block) *event.Problem {
	id, batch := int64(blk.header.number(0, 8)), blk.header.child(1)
	if blk.header.number(2, 1) != 0 {
		return event.Problemf(event.Malformed,
			"byte %d: dictionary deltas are not read, write the dictionary whole", blk.at)
	}
	rows := batch.number(0, 8)
	if rows > rowsMax {
		return event.Problemf(event.TooLarge, "byte %d: a dictionary of %d values", blk.at, int64(rows))
	}
	r, p := newBinder(blk, batch)
	if p != nil {
		return p
	}
	at := slices.IndexFunc(t.dictionaries, func(d dictionary) bool { return d.id == id })
	if at < 0 {
		return event.Problemf(event.Malformed, "byte %d: dictionary %d of no column", blk.at, id)
	}
	d := &t.dictionaries[at]
	d.filled = true
	if p := t.bind(&r, &d.column, int(rows)); p != nil {
		return p
	}
	return r.done()
}

// bind takes what is a column's of a record batch of some rows.
func (t *table) bind(r *binder, c *column, rows int) *event.Problem {
	nulls, p := r.node(c, rows)
	if p != nil {
		return p
	}
	c.rows, c.nulls, c.valid, c.items, c.heap = rows, c.cell == cellNull, nil, nil, nil
	if c.nulls {
		return nil // no buffers
	}
	if c.valid, p = r.validity(c, rows, nulls); p != nil {
		return p
	}
	c.nulls = c.valid != nil
	switch {
	case c.list >= 0:
		return c.bindList(r)
	case c.encoded:
		return t.bindEncoded(r, c)
	case c.cell.isText():
		return c.bindText(r)
	case c.cell == cellBool:
		c.data, p = r.buffer(c, (rows+7)/8)
	default:
		c.data, p = r.buffer(c, rows*cellWidths[c.cell])
	}
	return p
}

// bindList binds the values of a fixed size list.
func (c *column) bindList(r *binder) *event.Problem {
	if c.list > event.ClassesMax { // so that the product below fits
		return r.bad(c, "list too long")
	}
	values := c.rows * int(c.list)
	nulls, p := r.node(c, values)
	if p != nil {
		return p
	}
	if c.items, p = r.validity(c, values, nulls); p != nil {
		return p
	}
	c.data, p = r.buffer(c, values*cellWidths[c.cell])
	return p
}

// bindEncoded binds the indices of a dictionary-encoded column and checks them.
func (t *table) bindEncoded(r *binder, c *column) (p *event.Problem) {
	if c.data, p = r.buffer(c, c.rows*cellWidths[c.index]); p != nil {
		return p
	}
	d := &t.dictionaries[c.dictionary]
	if !d.filled && c.rows > 0 {
		return r.bad(c, "no dictionary before the record batch")
	}
	c.values = &d.column
	c.nulls = c.nulls || c.values.nulls
	for i := range c.rows {
		if !c.invalid(i) {
			if v, negative := intAt(c.index, c.data, i); negative || v >= uint64(c.values.rows) {
				return r.bad(c, "index outside the dictionary")
			}
		}
	}
	return nil
}

// bindText binds offsets and text, or views, and checks them.
func (c *column) bindText(r *binder) (p *event.Problem) {
	if c.cell == cellViewUTF8 {
		return c.bindViews(r)
	}
	width := cellWidths[c.cell]
	need := (c.rows + 1) * width
	if c.rows == 0 {
		need = 0 // some writers leave the offsets out
	}
	if c.data, p = r.buffer(c, need); p != nil {
		return p
	}
	if c.heap, p = r.buffer(c, 0); p != nil || c.rows == 0 {
		return p
	}
	last := uint64(0)
	for i := range c.rows + 1 {
		var at uint64
		if width == 4 {
			at = uint64(binary.LittleEndian.Uint32(c.data[4*i:]))
		} else {
			at = binary.LittleEndian.Uint64(c.data[8*i:])
		}
		if at < last || at > uint64(len(c.heap)) {
			return r.bad(c, "text offset outside the text")
		}
		last = at
	}
	return nil
}

// bindViews binds the views of a column and checks them.
func (c *column) bindViews(r *binder) (p *event.Problem) {
	if c.data, p = r.buffer(c, c.rows*16); p != nil {
		return p
	}
	item, ok := take(&r.counts, 8)
	n := uint64(0)
	if ok {
		n = binary.LittleEndian.Uint64(item)
	}
	if !ok || n > uint64(len(r.buffers)/16) {
		return r.bad(c, "number of text buffers that cannot be")
	}
	c.views, _ = take(&r.buffers, int(n)*16)
	c.body = r.blk.body
	for i := range c.rows {
		if !c.invalid(i) {
			if _, ok := c.view(i); !ok {
				return r.bad(c, "text view outside the text")
			}
		}
	}
	return nil
}

// view returns the text of a view.
func (c *column) view(i int) (string, bool) {
	v := c.data[16*i : 16*i+16]
	n := binary.LittleEndian.Uint32(v)
	if n <= 12 {
		return alias(v[4 : 4+n]), true
	}
	which, at := binary.LittleEndian.Uint32(v[8:]), binary.LittleEndian.Uint32(v[12:])
	if uint64(which) >= uint64(len(c.views)/16) {
		return "", false
	}
	b, ok := slice(c.body, c.views[16*which:])
	if !ok || uint64(at)+uint64(n) > uint64(len(b)) {
		return "", false
	}
	return alias(b[at : at+n]), true
}

// invalid reports whether row i is marked null.
func (c *column) invalid(i int) bool {
	return c.valid != nil && c.valid[i/8]>>(i%8)&1 == 0
}

// null reports whether row i is null, itself or its value in the dictionary.
func (c *column) null(i int) bool {
	if !c.nulls {
		return false
	}
	if c.cell == cellNull || c.invalid(i) {
		return true
	}
	if c.encoded {
		v, _ := intAt(c.index, c.data, i)
		return c.values.null(int(v))
	}
	return false
}

// text returns row i of a column of text, which is not null.
func (c *column) text(i int) string {
	if c.encoded {
		v, _ := intAt(c.index, c.data, i)
		c, i = c.values, int(v)
	}
	switch c.cell {
	case cellUTF8:
		from := binary.LittleEndian.Uint32(c.data[4*i:])
		return alias(c.heap[from:binary.LittleEndian.Uint32(c.data[4*i+4:])])
	case cellLargeUTF8:
		from := binary.LittleEndian.Uint64(c.data[8*i:])
		return alias(c.heap[from:binary.LittleEndian.Uint64(c.data[8*i+8:])])
	}
	s, _ := c.view(i)
	return s
}

// intAt returns integer i of a buffer as magnitude and sign.
func intAt(c cell, data []byte, i int) (magnitude uint64, negative bool) {
	var v int64
	switch c {
	case cellU8:
		return uint64(data[i]), false
	case cellU16:
		return uint64(binary.LittleEndian.Uint16(data[2*i:])), false
	case cellU32:
		return uint64(binary.LittleEndian.Uint32(data[4*i:])), false
	case cellU64:
		return binary.LittleEndian.Uint64(data[8*i:]), false
	case cellI8:
		v = int64(int8(data[i]))
	case cellI16:
		v = int64(int16(binary.LittleEndian.Uint16(data[2*i:])))
	case cellI32:
		v = int64(int32(binary.LittleEndian.Uint32(data[4*i:])))
	default: // cellI64, cellTime
		v = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
	if v < 0 {
		return -uint64(v), true
	}
	return uint64(v), false
}

// floatAt returns number i of a buffer.
func floatAt(c cell, data []byte, i int) float64 {
	switch c {
	case cellF32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	case cellF64:
		return math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	v, negative := intAt(c, data, i)
	if negative {
		return -float64(v)
	}
	return float64(v)
}
