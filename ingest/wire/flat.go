package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

// flat is one flatbuffers table inside the metadata of an Arrow message. The accessors that a flatbuffers compiler
// generates trust every offset; these trust none: each read is checked against the buffer first, and a read that does
// not fit makes the whole walk bad, which its caller looks at once, at the end. A bad walk reads zeros and empty
// vectors, so no loop runs on hostile counts: a vector is never longer than the bytes it lies in.
type flat struct {
	w      *walk
	pos    int // of the table
	vtable int // 0 when the table is absent
	slots  int // fields that the vtable knows
	size   int // of the table
}

// walk is one buffer and whether all reads of it were sound so far.
type walk struct {
	buf []byte
	bad string // what was wrong first
}

// fits reports whether n bytes from pos on are in the buffer.
func (w *walk) fits(pos, n int, what string) bool {
	if pos < 0 || n < 0 || pos > len(w.buf)-n {
		if w.bad == "" {
			w.bad = what
		}
		return false
	}
	return true
}

// root returns the table that the buffer begins with.
func (w *walk) root() flat { return w.table(0, "root table") }

// table returns the table that the offset at pos points to.
func (w *walk) table(pos int, what string) flat {
	none := flat{w: w}
	if !w.fits(pos, flatbuffers.SizeUOffsetT, what) {
		return none
	}
	pos += int(flatbuffers.GetUOffsetT(w.buf[pos:]))
	if !w.fits(pos, flatbuffers.SizeSOffsetT, what) {
		return none
	}
	vtable := pos - int(flatbuffers.GetSOffsetT(w.buf[pos:]))
	if !w.fits(vtable, 2*flatbuffers.SizeVOffsetT, what) {
		return none
	}
	length := int(flatbuffers.GetVOffsetT(w.buf[vtable:]))
	size := int(flatbuffers.GetVOffsetT(w.buf[vtable+flatbuffers.SizeVOffsetT:]))
	if length < 4 || length%2 != 0 || size < 4 {
		w.fits(-1, 0, what)
		return none
	}
	if !w.fits(vtable, length, what) || !w.fits(pos, size, what) {
		return none
	}
	return flat{w: w, pos: pos, vtable: vtable, slots: length/2 - 2, size: size}
}

// at returns where field i of n bytes lies, or 0 when the table lacks it.
func (t flat) at(i, n int) int {
	if i >= t.slots {
		return 0
	}
	off := int(flatbuffers.GetVOffsetT(t.w.buf[t.vtable+4+2*i:]))
	if off == 0 {
		return 0
	}
	if off < flatbuffers.SizeSOffsetT || off+n > t.size {
		t.w.fits(-1, 0, "field outside its table")
		return 0
	}
	return t.pos + off
}

// number returns field i, an integer of size bytes, or 0.
func (t flat) number(i, size int) (v uint64) {
	if at := t.at(i, size); at != 0 {
		for j := at + size - 1; j >= at; j-- {
			v = v<<8 | uint64(t.w.buf[j])
		}
	}
	return v
}

// has reports whether the table has field i, a table or a vector.
func (t flat) has(i int) bool { return t.at(i, flatbuffers.SizeUOffsetT) != 0 }

// child returns the table in field i, absent when there is none.
func (t flat) child(i int) flat {
	at := t.at(i, flatbuffers.SizeUOffsetT)
	if at == 0 {
		return flat{w: t.w}
	}
	return t.w.table(at, "table outside its message")
}

// vector returns where the vector in field i begins and how many items of size bytes it has.
func (t flat) vector(i, size int) (pos, n int) {
	at := t.at(i, flatbuffers.SizeUOffsetT)
	if at == 0 {
		return 0, 0
	}
	const what = "vector outside its message"
	pos = at + int(flatbuffers.GetUOffsetT(t.w.buf[at:]))
	if !t.w.fits(pos, flatbuffers.SizeUOffsetT, what) {
		return 0, 0
	}
	n = int(flatbuffers.GetUOffsetT(t.w.buf[pos:]))
	pos += flatbuffers.SizeUOffsetT
	if n > len(t.w.buf) || !t.w.fits(pos, n*size, what) {
		t.w.fits(-1, 0, what)
		return 0, 0
	}
	return pos, n
}

// items returns the bytes of the vector in field i, whose items have size bytes.
func (t flat) items(i, size int) []byte {
	pos, n := t.vector(i, size)
	return t.w.buf[pos : pos+n*size]
}

// string returns the string in field i, which aliases the buffer.
func (t flat) string(i int) string { return alias(t.items(i, 1)) }

// tables returns how many tables the vector in field i has.
func (t flat) tables(i int) int {
	_, n := t.vector(i, flatbuffers.SizeUOffsetT)
	return n
}

// table returns table j of the vector in field i, which has more than j.
func (t flat) table(i, j int) flat {
	pos, _ := t.vector(i, flatbuffers.SizeUOffsetT)
	return t.w.table(pos+j*flatbuffers.SizeUOffsetT, "table outside its message")
}

// Fields of the flatbuffers tables of Arrow's format (Schema.fbs), by number.
const (
	schemaFields, schemaMetadata   = 1, 2
	columnChildren, columnMetadata = 5, 6

	arrowDepthMax = 16 // types inside types
)

// CheckArrowSchema walks the schema that an Arrow stream begins with, and returns an error if
// something in it lies outside of it. head is the beginning of the stream.
func CheckArrowSchema(head []byte) error {
	head = bytes.TrimPrefix(head, continuation) // which files of before 2019 lack
	if len(head) < 4 {
		return errors.New("damaged: no schema")
	}
	size := int(binary.LittleEndian.Uint32(head))
	if size > len(head)-4 {
		return fmt.Errorf("damaged: a schema of %d bytes, at most %d are there or are read", size, len(head)-4)
	}
	w := walk{buf: head[4 : 4+size]}
	return w.checkSchema(w.root().child(2))
}

// checkSchema walks a Schema table.
func (w *walk) checkSchema(schema flat) error {
	if schema.vtable == 0 && w.bad == "" {
		return errors.New("damaged: no schema")
	}
	schema.vector(schemaMetadata, 4)
	w.checkColumns(schema, schemaFields, 0)
	if w.bad != "" {
		return fmt.Errorf("damaged: %s", w.bad)
	}
	return nil
}

// checkColumns walks a vector of Field tables and the types inside them.
func (w *walk) checkColumns(t flat, slot, depth int) {
	if depth > arrowDepthMax && w.bad == "" {
		w.bad = fmt.Sprintf("types more than %d deep", arrowDepthMax)
	}
	for i := 0; i < t.tables(slot) && w.bad == ""; i++ {
		column := t.table(slot, i)
		column.vector(columnMetadata, 4)
		w.checkColumns(column, columnChildren, depth+1)
	}
}
