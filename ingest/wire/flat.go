package wire

import "fmt"

// flat is one flatbuffers table inside the metadata of an Arrow message. The accessors that a
// flatbuffers compiler generates trust every offset; these trust none. Each word is checked against
// the buffer first. A word outside it marks the whole walk as bad, which the caller checks once, at
// the end. A bad walk reads zeros and empty vectors, so no loop runs on hostile counts: a vector is
// never longer than its bytes.
type flat struct {
	w   *walk
	pos int // position of the table; 0 if absent, since every buffer begins with an offset
}

// walk is one buffer, and the first problem of reading it; nil if it is sound.
type walk struct {
	buf     []byte
	bad     string
	columns int // Field tables seen by checkColumns
}

// fail records a problem.
func (w *walk) fail(what string) {
	if w.bad == "" {
		w.bad = what
	}
}

// word returns the integer of size bytes at pos.
func (w *walk) word(pos, size int) (v uint64) {
	if pos < 0 || pos > len(w.buf)-size {
		w.fail("metadata that points outside itself")
		return 0
	}
	for i := pos + size - 1; i >= pos; i-- {
		v = v<<8 | uint64(w.buf[i])
	}
	return v
}

// table returns the table at the offset at pos. The root is at 0.
func (w *walk) table(pos int) flat { return flat{w, pos + int(w.word(pos, 4))} }

// at returns the position of field i, or 0 if the table lacks it.
func (t flat) at(i int) int {
	if t.pos == 0 {
		return 0
	}
	vtable, slot := t.pos-int(int32(t.w.word(t.pos, 4))), 4+2*i
	if slot >= int(t.w.word(vtable, 2)) {
		return 0
	}
	if offset := int(t.w.word(vtable+slot, 2)); offset != 0 {
		return t.pos + offset
	}
	return 0
}

// number returns field i, an integer of size bytes, or 0.
func (t flat) number(i, size int) uint64 {
	if at := t.at(i); at != 0 {
		return t.w.word(at, size)
	}
	return 0
}

// child returns the table in field i, absent if there is none.
func (t flat) child(i int) flat {
	if at := t.at(i); at != 0 {
		return t.w.table(at)
	}
	return flat{w: t.w}
}

// vector returns the start of the vector in field i, and its number of items of size bytes.
func (t flat) vector(i, size int) (pos, n int) {
	at := t.at(i)
	if at == 0 {
		return 0, 0
	}
	pos = at + int(t.w.word(at, 4))
	n = int(t.w.word(pos, 4))
	if pos += 4; n > 0 && n > (len(t.w.buf)-pos)/size {
		t.w.fail("a vector outside its message")
		return 0, 0
	}
	return pos, n
}

// items returns the bytes of the vector in field i, whose items have size bytes.
func (t flat) items(i, size int) []byte {
	pos, n := t.vector(i, size)
	if n == 0 {
		return nil
	}
	return t.w.buf[pos : pos+n*size]
}

// string returns the string in field i, which aliases the buffer.
func (t flat) string(i int) string { return alias(t.items(i, 1)) }

// tables returns how many tables the vector in field i has.
func (t flat) tables(i int) int {
	_, n := t.vector(i, 4)
	return n
}

// table returns table j of the vector in field i, which has more than j.
func (t flat) table(i, j int) flat {
	pos, _ := t.vector(i, 4)
	return t.w.table(pos + 4*j)
}

// arrowDepthMax bounds types inside types.
const arrowDepthMax = 16

// CheckArrowSchema walks the schema at the beginning of an Arrow stream, and returns an error if a
// part lies outside of it. head is the beginning of the stream.
func CheckArrowSchema(head []byte) error {
	var b block
	if _, p := b.read(head, 0); p != nil {
		return p
	} else if b.kind != headerSchema {
		b.fail("no schema")
	}
	b.header.vector(2, 4) // its metadata
	if b.checkColumns(b.header, 1, 0); b.bad != "" {
		return b.sound()
	}
	return nil
}

// checkColumns walks a vector of Field tables and the types inside them. Each table takes four
// bytes, and the offset to it four more, so their number is bounded: several offsets to one table
// could otherwise make more places than anybody can visit.
func (w *walk) checkColumns(t flat, slot, depth int) {
	if depth > arrowDepthMax {
		w.fail(fmt.Sprintf("types more than %d deep", arrowDepthMax))
	}
	for i := 0; i < t.tables(slot) && w.bad == ""; i++ {
		if w.columns++; w.columns > len(w.buf)/8 {
			w.fail("columns that share their types")
		}
		column := t.table(slot, i)
		column.vector(6, 4) // its metadata
		w.checkColumns(column, 5, depth+1)
	}
}
