package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// rowsMax bounds the rows that an Arrow record batch or dictionary says it has.
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

// bind takes the nodes and buffers of a column from a record batch with that many rows.
func (t *table) bind(r *binder, c *column, rows int) *event.Problem {
	nulls, p := r.node(c, rows)
	if p != nil {
		return p
	}
	c.rows, c.nulls, c.valid, c.items, c.heap = rows, c.kind == NullCell, nil, nil, nil
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
	case c.kind == TextCell:
		return c.bindText(r)
	case c.kind == BoolCell:
		c.data, p = r.buffer(c, (rows+7)/8)
	default:
		c.data, p = r.buffer(c, rows*c.width)
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
	c.data, p = r.buffer(c, values*c.width)
	return p
}

// bindEncoded binds the indices of a dictionary-encoded column and checks them.
func (t *table) bindEncoded(r *binder, c *column) (p *event.Problem) {
	if c.data, p = r.buffer(c, c.rows*c.index.width); p != nil {
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
			if v, negative := c.index.int(c.data, i); negative || v >= uint64(c.values.rows) {
				return r.bad(c, "index outside the dictionary")
			}
		}
	}
	return nil
}

// bindText binds offsets and text, or views, and checks them.
func (c *column) bindText(r *binder) (p *event.Problem) {
	if c.view {
		return c.bindViews(r)
	}
	need := (c.rows + 1) * c.width
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
		at := wordAt(c.data, i, c.width)
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
			if _, ok := c.viewed(i); !ok {
				return r.bad(c, "text view outside the text")
			}
		}
	}
	return nil
}

// viewed returns the text of view i.
func (c *column) viewed(i int) (string, bool) {
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
	if c.kind == NullCell || c.invalid(i) {
		return true
	}
	if c.encoded {
		v, _ := c.index.int(c.data, i)
		return c.values.null(int(v))
	}
	return false
}

// text returns row i of a column of text, which is not null.
func (c *column) text(i int) string {
	if c.encoded {
		v, _ := c.index.int(c.data, i)
		c, i = c.values, int(v)
	}
	if c.view {
		s, _ := c.viewed(i)
		return s
	}
	return alias(c.heap[wordAt(c.data, i, c.width):wordAt(c.data, i+1, c.width)])
}

// wordAt returns word i of a buffer of words of 1, 2, 4 or 8 bytes.
func wordAt(data []byte, i, width int) uint64 {
	switch width {
	case 1:
		return uint64(data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return binary.LittleEndian.Uint64(data[8*i:])
}

// int returns integer i of a buffer as magnitude and sign.
func (t *arrowType) int(data []byte, i int) (magnitude uint64, negative bool) {
	v := wordAt(data, i, t.width)
	if !t.signed || v>>(8*t.width-1) == 0 {
		return v, false
	}
	return -(v | ^uint64(0)<<(8*t.width)), true
}

// float returns number i of a buffer of floating point numbers.
func (t *arrowType) float(data []byte, i int) float64 {
	if t.width == 4 {
		return float64(math.Float32frombits(uint32(wordAt(data, i, 4))))
	}
	return math.Float64frombits(wordAt(data, i, 8))
}
