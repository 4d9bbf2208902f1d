package wire

import (
	"encoding/binary"
	"math"
	"strconv"

	"gqlstream/ingest/event"
)

// table is the current Arrow stream: its columns, bound to the current record batch. All of it
// aliases the message. After a sound bind, every row below the batch's length can be read without
// bounds checks.
type table struct {
	kind       event.Kind
	k          int
	originals  int      // bytes of the refused rows as JSON
	before     int      // rows of earlier record batches
	columns    []column // in the order of the schema; at least one
	attributes int      // columns that are attributes
	classes    []int    // index in columns of p0 to p{K-1}; empty: none
}

// column is one column of the schema, and its part of the current record batch.
type column struct {
	name     string
	typeName string
	spec     *fieldSpec
	numbered bool // one of the columns p0, p1, ...
	list     int  // values a row of a fixed size list, else 0
	arrowType

	values   *column // values of the dictionary into which the rows are indices; nil: no dictionary
	encoding int64   // id of the dictionary
	index    arrowType

	rows  int
	valid []byte // one bit a row, or nil when all are valid
	items []byte // of a list: one bit a value, or nil
	data  []byte // values, indices, offsets or views
	heap  []byte // text behind the offsets, or the body behind the views
	views []byte // the Buffer structs behind the views
}

// continuation begins every message inside an Arrow stream.
var continuation = []byte{0xff, 0xff, 0xff, 0xff}

// The types of messages inside an Arrow stream (Message.fbs).
const (
	headerSchema     = 1
	headerDictionary = 2
	headerBatch      = 3
)

// block is one message inside an Arrow stream. Columns take the nodes and buffers of a record batch
// in order.
type block struct {
	walk
	kind    byte
	header  flat
	body    []byte
	at      int    // start in the payload
	nodes   []byte // FieldNode structs: length, null count
	buffers []byte // Buffer structs: offset, length
	counts  []byte // variadic buffer counts
}

// problem returns the problem of a message that is damaged or not one of ours.
func (b *block) problem(format string, args ...any) *event.Problem {
	return event.Problemf(event.Malformed, "byte %d: "+format, append([]any{b.at}, args...)...)
}

// sound returns the problem of a block whose metadata or buffers point outside it, or nil.
func (b *block) sound() *event.Problem {
	if b.bad != "" {
		return b.problem("Arrow message is damaged: %s", b.bad)
	}
	return nil
}

// read reads the block at a byte of the payload and returns its length.
func (b *block) read(payload []byte, at int) (int, *event.Problem) {
	*b = block{at: at}
	rest := payload[at:]
	if len(rest) < 8 || string(rest[:4]) != string(continuation) {
		return 0, b.problem("no Arrow message begins here")
	}
	size := int(int32(binary.LittleEndian.Uint32(rest[4:])))
	if rest = rest[8:]; size == 0 {
		return 8, nil
	}
	if size < 8 || size > len(rest) {
		return 0, b.problem("Arrow metadata of %d bytes, %d are left", size, len(rest))
	}
	b.buf, rest = rest[:size], rest[size:]
	message := b.table(0)
	version := int16(message.number(0, 2))
	length := int64(message.number(3, 8))
	b.kind, b.header = byte(message.number(1, 1)), message.child(2)
	switch {
	case b.bad != "":
		return 0, b.sound()
	case version != 3 && version != 4: // MetadataVersion V4 and V5
		return 0, b.problem("Arrow metadata version V%d, V4 and V5 are read", int(version)+1)
	case b.kind == 0 || b.header.pos == 0:
		return 0, b.problem("Arrow message without a header")
	case length < 0 || length > int64(len(rest)):
		return 0, b.problem("Arrow body of %d bytes, %d are left", length, len(rest))
	}
	b.body = rest[:length]
	return 8 + size + int(length), nil
}

// readBatch binds columns to a RecordBatch table and returns its rows.
func (b *block) readBatch(batch flat, columns []column) (int, *event.Problem) {
	rows := batch.number(0, 8)
	switch {
	case rows > event.MessageBytesMax:
		// a row takes at least a bit, and few rows are allowed anyway
		return 0, event.Problemf(event.TooLarge, "byte %d: a record batch of %d rows",
			b.at, int64(rows))
	case batch.at(3) != 0:
		return 0, b.problem("compressed Arrow bodies are not read, write without compression")
	}
	b.nodes, b.buffers, b.counts = batch.items(1, 16), batch.items(2, 16), batch.items(4, 8)
	for i := 0; i < len(columns) && b.bad == ""; i++ {
		columns[i].bind(b, int(rows))
	}
	if len(b.nodes)+len(b.buffers)+len(b.counts) > 0 {
		b.fail("more nodes or buffers than columns")
	}
	return int(rows), b.sound()
}

// readDictionary binds the columns with a dictionary to its values.
func (t *table) readDictionary(b *block) *event.Problem {
	id, found := int64(b.header.number(0, 8)), false
	if b.header.number(2, 1) != 0 {
		return b.problem("dictionary deltas are not read, write the dictionary whole")
	}
	for i := range t.columns {
		if c := &t.columns[i]; c.values != nil && c.encoding == id {
			values := []column{*c.values}
			if _, p := b.readBatch(b.header.child(1), values); p != nil {
				return p
			}
			*c.values, found = values[0], true
		}
	}
	if !found {
		return b.problem("dictionary %d of no column", id)
	}
	return nil
}

// nextPair returns the next struct of a vector of structs of two words.
func (b *block) nextPair(vector *[]byte) (first, second uint64) {
	if len(*vector) < 16 {
		b.fail("fewer nodes or buffers than columns")
		return 0, 0
	}
	first, second = wordAt(*vector, 0, 8), wordAt(*vector, 1, 8)
	*vector = (*vector)[16:]
	return first, second
}

// node reads the next node, which must have that many rows, and reports whether some are null.
func (b *block) node(rows int) (nulls bool) {
	length, count := b.nextPair(&b.nodes)
	if length != uint64(rows) || count > length {
		b.fail("a node with a length or a number of nulls that cannot be")
	}
	return count > 0
}

// buffer reads the next buffer, which has at least need bytes.
func (b *block) buffer(need int) []byte {
	at, size := b.nextPair(&b.buffers)
	data, ok := slice(b.body, at, size)
	if !ok || len(data) < need {
		b.fail("a buffer outside the body, or too short for the rows")
	}
	return data
}

// slice returns size bytes of a body from at on, if they are there.
func slice(body []byte, at, size uint64) ([]byte, bool) {
	if at > uint64(len(body)) || size > uint64(len(body))-at {
		return nil, false
	}
	return body[at : at+size], true
}

// validity reads a validity buffer of rows bits; nil means that all are valid.
func (b *block) validity(rows int, nulls bool) []byte {
	valid := b.buffer(0)
	switch {
	case len(valid) == 0 && !nulls:
		return nil
	case len(valid) < (rows+7)/8:
		b.fail("a validity buffer that is missing or too short for the rows")
	}
	return valid
}

// bind takes the nodes and buffers of the column from a record batch with that many rows, and
// checks them.
func (c *column) bind(b *block, rows int) {
	nulls := b.node(rows)
	c.rows, c.valid, c.items = rows, nil, nil
	if c.kind == NullCell {
		return // no buffers
	}
	c.valid = b.validity(rows, nulls)
	switch {
	case c.list > 0:
		nulls = b.node(rows * c.list)
		c.items = b.validity(rows*c.list, nulls)
		c.data = b.buffer(rows * c.list * c.width)
	case c.values != nil:
		c.data = b.buffer(rows * c.index.width)
		for i := 0; i < rows && b.bad == ""; i++ {
			if v, negative := c.index.int(c.data, i); isSet(c.valid, i) &&
				(negative || v >= uint64(c.values.rows)) {
				b.fail("an index outside the dictionary, or before it")
			}
		}
	case c.view:
		c.bindViews(b)
	case c.kind == TextCell:
		c.bindText(b)
	case c.kind == BoolCell:
		c.data = b.buffer((rows + 7) / 8)
	default:
		c.data = b.buffer(rows * c.width)
	}
}

// bindText binds offsets and text and checks them.
func (c *column) bindText(b *block) {
	// some writers omit the offsets if there are no rows
	need := (c.rows + min(c.rows, 1)) * c.width
	c.data = b.buffer(need)
	c.heap = b.buffer(0)
	last := uint64(0)
	for i := 0; i <= c.rows && need > 0 && b.bad == ""; i++ {
		at := wordAt(c.data, i, c.width)
		if at < last || at > uint64(len(c.heap)) {
			b.fail("a text offset outside the text")
		}
		last = at
	}
}

// bindViews binds the views of a column and checks them.
func (c *column) bindViews(b *block) {
	c.data, c.heap = b.buffer(c.rows*16), b.body
	if len(b.counts) < 8 || wordAt(b.counts, 0, 8) > uint64(len(b.buffers)/16) {
		b.fail("a number of text buffers that cannot be")
		return
	}
	n := 16 * int(wordAt(b.counts, 0, 8))
	c.views = b.buffers[:n]
	b.buffers = b.buffers[n:]
	b.counts = b.counts[8:]
	for i := 0; i < c.rows && b.bad == ""; i++ {
		if _, ok := c.viewed(i); !ok && isSet(c.valid, i) {
			b.fail("a text view outside the text")
		}
	}
}

// viewed returns the text of view i.
func (c *column) viewed(i int) (string, bool) {
	v := c.data[16*i : 16*i+16]
	n := binary.LittleEndian.Uint32(v)
	if n <= 12 {
		return alias(v[4 : 4+n]), true
	}
	which := int(binary.LittleEndian.Uint32(v[8:]))
	at := binary.LittleEndian.Uint32(v[12:])
	if which >= len(c.views)/16 {
		return "", false
	}
	text, _ := slice(c.heap, wordAt(c.views, 2*which, 8), wordAt(c.views, 2*which+1, 8))
	text, ok := slice(text, uint64(at), uint64(n))
	return alias(text), ok
}

// isSet reports whether bit i of a validity buffer is set. Without a buffer all bits are set.
func isSet(valid []byte, i int) bool { return valid == nil || valid[i/8]>>(i%8)&1 == 1 }

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

// value sets v to row i of the column.
func (c *column) value(i int, v *Cell) {
	switch {
	case c.kind == NullCell || !isSet(c.valid, i):
		v.Kind = NullCell
	case c.values != nil:
		at, _ := c.index.int(c.data, i)
		c.values.value(int(at), v)
	case c.list > 0:
		v.Kind = ListCell
		for at := i * c.list; at < (i+1)*c.list; at++ {
			v.Append(c.float(c.data, at), isSet(c.items, at))
		}
	case c.view:
		v.Kind = TextCell
		v.Text, _ = c.viewed(i)
	case c.kind == TextCell:
		v.Kind, v.Text = TextCell, alias(
			c.heap[wordAt(c.data, i, c.width):wordAt(c.data, i+1, c.width)])
	case c.kind == BoolCell:
		v.Kind, v.Integer = BoolCell, uint64(c.data[i/8]>>(i%8)&1)
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
			// for messages: only negative integers have digits
			v.Kind, v.Number, v.Text = NumberCell, -float64(n), "-"+strconv.FormatUint(n, 10)
		}
	}
}
