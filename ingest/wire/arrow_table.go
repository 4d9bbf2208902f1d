package wire

import (
	"encoding/binary"
	"math/bits"

	"gqlstream/ingest/event"
)

// table is the Arrow stream at hand: its columns, bound to the record batch at
// hand. Everything in it aliases the message. After a successful readBatch every
// row below the batch's length can be read without looking at bounds again.
type table struct {
	kind         event.Kind
	k            int
	ready        bool            // the schema was read
	originals    int             // bytes of the refused rows as JSON
	before       int             // rows of the record batches before this one
	columns      []column        // in the order of the schema
	by           [fieldCount]int // index+1 in columns of each field
	attributes   int             // columns that are attributes
	classes      []int           // index in columns of p0 to p{K-1}
	dictionaries []dictionary
}

// column is one column of the schema and what the record batch at hand has of it.
type column struct {
	name     string
	typeName string
	spec     *fieldSpec
	field    field
	class    int   // of the columns p0, p1, ...: the class + 1
	list     int32 // values a row of a fixed size list, else -1
	arrowType

	encoded    bool  // the rows are indices into a dictionary
	encoding   int64 // id of the dictionary
	dictionary int   // index in table.dictionaries
	index      arrowType

	rows   int
	nulls  bool   // some row may be null
	valid  []byte // one bit a row, or nil when all are valid
	items  []byte // of a list: one bit a value, or nil
	data   []byte // values, indices, offsets or views
	heap   []byte // text behind the offsets
	views  []byte // the Buffer structs behind the views
	body   []byte // what the views' buffers lie in
	values *column
}

// dictionary holds the values of one dictionary.
type dictionary struct {
	id     int64
	filled bool
	column column
}

// reset forgets the last message and keeps its memory.
func (t *table) reset(kind event.Kind, k int) {
	clear(t.columns)
	clear(t.dictionaries)
	*t = table{
		kind: kind, k: k, columns: t.columns[:0],
		classes: t.classes[:0], dictionaries: t.dictionaries[:0],
	}
}

// addDictionary makes room for the dictionary of a column.
func (t *table) addDictionary(c *column) *event.Problem {
	for i := range t.dictionaries {
		if d := &t.dictionaries[i]; d.id == c.encoding {
			if d.column.arrowType != c.arrowType {
				return event.Problemf(event.Malformed, "column %s: two types for dictionary %d",
					Quote(c.name), d.id)
			}
			c.dictionary = i
			return nil
		}
	}
	c.dictionary = len(t.dictionaries)
	t.dictionaries = append(t.dictionaries, dictionary{
		id:     c.encoding,
		column: column{name: c.name, arrowType: c.arrowType, list: -1},
	})
	return nil
}

// binder hands out the nodes and buffers of one record batch in their order.
type binder struct {
	blk     *block
	nodes   []byte // FieldNode structs: length, null count
	buffers []byte // Buffer structs: offset, length
	counts  []byte // variadic buffer counts
}

// newBinder reads a RecordBatch table.
func newBinder(blk *block, batch flat) (binder, *event.Problem) {
	r := binder{blk: blk, nodes: batch.items(1, 16), buffers: batch.items(2, 16), counts: batch.items(4, 8)}
	if batch.has(3) {
		return r, event.Problemf(event.Malformed,
			"byte %d: compressed Arrow bodies are not read, write without compression", blk.at)
	}
	return r, sound(blk)
}

// take returns the next struct of size bytes of a vector.
func take(vector *[]byte, size int) ([]byte, bool) {
	if len(*vector) < size {
		return nil, false
	}
	item := (*vector)[:size]
	*vector = (*vector)[size:]
	return item, true
}

// bad returns a problem of a column.
func (r *binder) bad(c *column, what string) *event.Problem {
	return event.Problemf(event.Malformed, "byte %d: column %s: %s", r.blk.at, Quote(c.name), what)
}

// node reads the next node, which has rows rows, and reports whether it has nulls.
func (r *binder) node(c *column, rows int) (nulls bool, p *event.Problem) {
	item, ok := take(&r.nodes, 16)
	if !ok {
		return false, r.bad(c, "no node")
	}
	length := int64(binary.LittleEndian.Uint64(item))
	count := int64(binary.LittleEndian.Uint64(item[8:]))
	if length != int64(rows) || count < 0 || count > length {
		return false, r.bad(c, "node with a length or a number of nulls that cannot be")
	}
	return count > 0, nil
}

// buffer reads the next buffer, which has at least need bytes.
func (r *binder) buffer(c *column, need int) ([]byte, *event.Problem) {
	item, ok := take(&r.buffers, 16)
	if !ok {
		return nil, r.bad(c, "no buffer")
	}
	b, ok := slice(r.blk.body, item)
	if !ok {
		return nil, r.bad(c, "buffer outside the body")
	}
	if len(b) < need {
		return nil, r.bad(c, "buffer too short for the rows")
	}
	return b, nil
}

// slice returns the part of a body that a Buffer struct names.
func slice(body, item []byte) ([]byte, bool) {
	at := binary.LittleEndian.Uint64(item)
	size := binary.LittleEndian.Uint64(item[8:])
	if at > uint64(len(body)) || size > uint64(len(body))-at {
		return nil, false
	}
	return body[at : at+size], true
}

// validity reads a validity buffer of rows bits; nil says that all are valid.
func (r *binder) validity(c *column, rows int, nulls bool) ([]byte, *event.Problem) {
	b, p := r.buffer(c, 0)
	if p != nil || len(b) == 0 {
		if p == nil && nulls {
			p = r.bad(c, "nulls without a validity buffer")
		}
		return nil, p
	}
	if len(b) < (rows+7)/8 {
		return nil, r.bad(c, "validity buffer too short for the rows")
	}
	valid := 0
	for i := range rows / 8 {
		valid += bits.OnesCount8(b[i])
	}
	for i := rows &^ 7; i < rows; i++ {
		valid += int(b[i/8] >> (i % 8) & 1)
	}
	if valid == rows {
		return nil, nil
	}
	return b, nil
}

// done refuses nodes and buffers that no column has taken.
func (r *binder) done() *event.Problem {
	if len(r.nodes)+len(r.buffers)+len(r.counts) > 0 {
		return event.Problemf(event.Malformed, "byte %d: more nodes or buffers than columns", r.blk.at)
	}
	return nil
}

// continuation begins every message inside an Arrow stream.
var continuation = []byte{0xff, 0xff, 0xff, 0xff}

// The types of messages inside an Arrow stream (Message.fbs).
const (
	headerSchema     = 1
	headerDictionary = 2
	headerBatch      = 3
)

// block is one message inside an Arrow stream.
type block struct {
	walk   walk
	kind   byte
	header flat
	body   []byte
	at     int // where it begins in the payload
}

// checkStream refuses payloads that are plainly not an Arrow stream.
func checkStream(payload []byte) *event.Problem {
	if len(payload) < 8 {
		return event.Problemf(event.Malformed, "%d bytes are too few for an Arrow stream", len(payload))
	}
	if string(payload[:6]) == "ARROW1" {
		return event.Problemf(event.Malformed, "byte 0: this is the Arrow file format, send the stream format")
	}
	return nil
}

// sound returns the problem of metadata that points outside itself, nil for other metadata.
func sound(blk *block) *event.Problem {
	if bad := blk.walk.bad; bad != "" {
		return event.Problemf(event.Malformed, "byte %d: Arrow metadata is damaged: %s", blk.at, bad)
	}
	return nil
}

// readBlock reads the block that begins at a byte of the payload and returns how
// many bytes it takes.
func readBlock(payload []byte, at int, blk *block) (int, *event.Problem) {
	rest := payload[at:]
	if len(rest) < 8 || string(rest[:4]) != string(continuation) {
		return 0, event.Problemf(event.Malformed, "byte %d: an Arrow message should begin here", at)
	}
	size := int(int32(binary.LittleEndian.Uint32(rest[4:])))
	*blk = block{at: at}
	if size == 0 {
		return 8, nil
	}
	if size < 8 || size > len(rest)-8 {
		return 0, event.Problemf(event.Malformed, "byte %d: Arrow metadata of %d bytes, %d are left",
			at, size, len(rest)-8)
	}
	blk.walk.buf = rest[8 : 8+size]
	message := blk.walk.root()
	version := int16(message.number(0, 2))
	blk.kind = byte(message.number(1, 1))
	blk.header = message.child(2)
	length := int64(message.number(3, 8))
	if p := sound(blk); p != nil {
		return 0, p
	}
	if version != 3 && version != 4 { // MetadataVersion V4 and V5
		return 0, event.Problemf(event.Malformed, "byte %d: Arrow metadata version V%d, V4 and V5 are read",
			at, int(version)+1)
	}
	if blk.kind == 0 || blk.header.vtable == 0 {
		return 0, event.Problemf(event.Malformed, "byte %d: Arrow message without a header", at)
	}
	left := len(rest) - 8 - size
	if length < 0 || length > int64(left) {
		return 0, event.Problemf(event.Malformed, "byte %d: Arrow body of %d bytes, %d are left",
			at, length, left)
	}
	blk.body = rest[8+size : 8+size+int(length)]
	return 8 + size + int(length), nil
}
