package event

import flatbuffers "github.com/google/flatbuffers/go"

// flat is one flatbuffers table inside the metadata of an Arrow message. The
// accessors that a flatbuffers compiler generates trust every offset; these
// trust none: each read is checked against the buffer first, and a read that
// does not fit makes the whole walk bad, which its caller looks at once, at the
// end. A bad walk reads zeros and empty vectors, so no loop runs on hostile
// counts: a vector is never longer than the bytes it lies in.
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
func (w *walk) root() flat {
	return w.follow(0, "root table")
}

// follow returns the table that the offset at pos points to.
func (w *walk) follow(pos int, what string) flat {
	if !w.fits(pos, flatbuffers.SizeUOffsetT, what) {
		return flat{w: w}
	}
	return w.table(pos+int(flatbuffers.GetUOffsetT(w.buf[pos:])), what)
}

// table returns the table at pos.
func (w *walk) table(pos int, what string) flat {
	none := flat{w: w}
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

// byte returns field i, or 0.
func (t flat) byte(i int) byte {
	if at := t.at(i, 1); at != 0 {
		return t.w.buf[at]
	}
	return 0
}

// short returns field i, or otherwise.
func (t flat) short(i int, otherwise int16) int16 {
	if at := t.at(i, 2); at != 0 {
		return flatbuffers.GetInt16(t.w.buf[at:])
	}
	return otherwise
}

// int returns field i, or 0.
func (t flat) int(i int) int32 {
	if at := t.at(i, 4); at != 0 {
		return flatbuffers.GetInt32(t.w.buf[at:])
	}
	return 0
}

// long returns field i, or 0.
func (t flat) long(i int) int64 {
	if at := t.at(i, 8); at != 0 {
		return flatbuffers.GetInt64(t.w.buf[at:])
	}
	return 0
}

// has reports whether the table has field i, a table or a vector.
func (t flat) has(i int) bool { return t.at(i, flatbuffers.SizeUOffsetT) != 0 }

// child returns the table in field i, absent when there is none.
func (t flat) child(i int) flat {
	at := t.at(i, flatbuffers.SizeUOffsetT)
	if at == 0 {
		return flat{w: t.w}
	}
	return t.w.follow(at, "table outside its message")
}

// vector returns the bytes of the vector in field i and the number of its items
// of size bytes.
func (t flat) vector(i, size int) (items []byte, n int) {
	at := t.at(i, flatbuffers.SizeUOffsetT)
	if at == 0 {
		return nil, 0
	}
	const what = "vector outside its message"
	pos := at + int(flatbuffers.GetUOffsetT(t.w.buf[at:]))
	if !t.w.fits(pos, flatbuffers.SizeUOffsetT, what) {
		return nil, 0
	}
	n = int(flatbuffers.GetUOffsetT(t.w.buf[pos:]))
	pos += flatbuffers.SizeUOffsetT
	if n > len(t.w.buf) || !t.w.fits(pos, n*size, what) {
		t.w.fits(-1, 0, what)
		return nil, 0
	}
	return t.w.buf[pos : pos+n*size], n
}

// string returns the string in field i, which aliases the buffer.
func (t flat) string(i int) string {
	b, _ := t.vector(i, 1)
	return alias(b)
}

// tables is a vector of tables.
type tables struct {
	w     *walk
	first int
	n     int
}

// tables returns the vector of tables in field i.
func (t flat) tables(i int) tables {
	items, n := t.vector(i, flatbuffers.SizeUOffsetT)
	if n == 0 {
		return tables{w: t.w}
	}
	at := t.at(i, flatbuffers.SizeUOffsetT)
	first := at + int(flatbuffers.GetUOffsetT(t.w.buf[at:])) + flatbuffers.SizeUOffsetT
	return tables{w: t.w, first: first, n: len(items) / flatbuffers.SizeUOffsetT}
}

// table returns table i, 0 <= i < n.
func (v tables) table(i int) flat {
	return v.w.follow(v.first+i*flatbuffers.SizeUOffsetT, "table outside its message")
}
