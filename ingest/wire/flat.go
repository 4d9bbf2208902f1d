package wire

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

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

// arrowBlock is the place of a message in an Arrow file.
type arrowBlock struct{ from, to int64 }

const (
	arrowBlocksFrom = 8  // bytes before the schema: the magic, padded
	arrowSuffix     = 10 // bytes after the footer: its length, and the magic
	// arrowGapMax bounds the bytes between two blocks: padding, and the mark of the end of the
	// stream before the footer.
	arrowGapMax = 64 + 8
)

// CheckArrowFooter walks the footer of an Arrow file of that size, which begins with head. It
// returns an error if a part of the footer lies outside of it, a block outside of the file, or
// bytes of the file in no block: rows that the footer leaves out would vanish.
func CheckArrowFooter(footer, head []byte, size int64) error {
	w := &walk{buf: footer}
	root := w.table(0)
	w.checkColumns(root.child(1), 1, 0)
	root.child(1).vector(2, 4) // its metadata
	const blockBytes = 24      // offset, length of the metadata, length of the body
	end := size - arrowSuffix - int64(len(footer))
	places := []arrowBlock{{end, end}}
	for _, field := range []int{2, 3} {
		blocks := root.items(field, blockBytes)
		for ; len(blocks) >= blockBytes && w.bad == ""; blocks = blocks[blockBytes:] {
			b := walk{buf: blocks}
			offset := int64(b.word(0, 8))
			head := int64(int32(b.word(8, 4)))
			body := int64(b.word(16, 8))
			if offset < 0 || head < 0 || body < 0 || offset > size || head > size-offset ||
				body > size-offset-head {
				w.fail("a block outside the file")
			}
			places = append(places, arrowBlock{offset, offset + head + body})
		}
	}
	slices.SortFunc(places, func(a, b arrowBlock) int { return cmp.Compare(a.from, b.from) })
	from := schemaEnd(head)
	if from == 0 {
		from = places[0].from
	}
	if w.bad == "" {
		w.checkGaps(places, from)
	}
	if w.bad != "" {
		return event.Problemf(event.Malformed, "footer: %s", w.bad)
	}
	return nil
}

// schemaEnd returns where the schema of an Arrow file ends that begins with head, or 0 if no
// length stands before it: Polars writes none, and writers of 2019 wrote it in another way.
func schemaEnd(head []byte) int64 {
	w := walk{buf: head}
	if w.word(arrowBlocksFrom, 4) != math.MaxUint32 {
		return 0
	}
	return arrowBlocksFrom + 8 + int64(w.word(arrowBlocksFrom+4, 4))
}

// checkGaps checks that blocks, in their order, leave no bytes out, from a byte of the file on.
func (w *walk) checkGaps(blocks []arrowBlock, from int64) {
	for _, b := range blocks {
		if b.from-from > arrowGapMax {
			w.fail(fmt.Sprintf("bytes %d to %d of the file are in no block", from, b.from))
		}
		from = max(from, b.to)
	}
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
