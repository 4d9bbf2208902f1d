package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"gqlstream/ingest/event"
)

// arrowBlock is the place of a message in an Arrow file.
type arrowBlock struct {
	from, head, body int64 // head: bytes of the metadata and of its length
	kind             byte  // 0: the mark of the end of a stream, or padding
}

// to returns where the block ends.
func (b arrowBlock) to() int64 { return b.from + b.head + b.body }

const (
	arrowBlocksFrom = 8  // bytes before the schema: the magic, padded
	arrowSuffix     = 10 // bytes after the footer: its length, and the magic
	// arrowGapMax bounds the bytes between two blocks: padding, and the mark of the end of the
	// stream before the footer.
	arrowGapMax      = 64 + 8
	arrowMetadataMax = 64 << 20 // bytes of one message
	arrowPaddingMax  = 128      // bytes behind the last buffer of a body; writers align by 8 or 64
)

// arrowMessages visits the messages of an Arrow file or stream, and reads only their metadata.
type arrowMessages struct {
	r        io.ReaderAt
	at, end  int64 // the next message begins at a byte, and the last one ends before another
	metadata []byte
	// How many counts of text buffers a reader takes from a record batch, and from the dictionary
	// of an id: one for each column of views. It does not look at how many there are.
	views        int
	columns      int // of a record batch, each with at least one node
	dictionaries map[int64]int
}

// problem returns the problem of a damaged file.
func (m *arrowMessages) problem(format string, args ...any) error {
	return event.Problemf(event.Malformed, "damaged: byte %d: "+format,
		append([]any{m.at}, args...)...)
}

// read returns n bytes of the file from a byte on. They are valid until the next call.
func (m *arrowMessages) read(from, n int64) ([]byte, error) {
	m.metadata = slices.Grow(m.metadata[:0], int(n))[:n]
	_, err := m.r.ReadAt(m.metadata, from)
	return m.metadata, err
}

// next returns the next message and goes behind it.
func (m *arrowMessages) next() (arrowBlock, error) {
	b := arrowBlock{from: m.at, head: 8}
	prefix, err := m.read(m.at, max(0, min(b.head, m.end-m.at)))
	if err != nil {
		return b, err
	}
	size := int64(0)
	switch {
	case len(prefix) >= 4 && binary.LittleEndian.Uint32(prefix) == 0:
		b.head = 4 // padding, or how writers of 2019 marked the end
	case len(prefix) < 8 || !bytes.HasPrefix(prefix, continuation):
		return b, m.problem("no Arrow message begins here")
	default:
		size = int64(int32(binary.LittleEndian.Uint32(prefix[4:])))
	}
	if size == 0 {
		m.at = b.to()
		return b, nil
	}
	if size < 8 || size > min(arrowMetadataMax, m.end-m.at-b.head) {
		return b, m.problem("Arrow metadata of %d bytes", size)
	}
	metadata, err := m.read(m.at+b.head, size)
	if err != nil {
		return b, err
	}
	w := walk{buf: metadata}
	message := w.table(0)
	b.kind, b.head, b.body = byte(message.number(1, 1)), b.head+size, int64(message.number(3, 8))
	m.check(&w, b.kind, message.child(2))
	message.vector(4, 4) // its metadata: a reader allocates by its length
	if b.body < 0 || b.body > m.end-m.at-b.head {
		w.fail("a body outside the file")
	}
	switch b.kind {
	case headerBatch:
		w.checkBody(message.child(2), b.body)
	case headerDictionary:
		w.checkBody(message.child(2).child(1), b.body)
	}
	if w.bad != "" {
		return b, m.problem("%s", w.bad)
	}
	m.at = b.to()
	return b, nil
}

// check checks the header of a message of a kind.
func (m *arrowMessages) check(w *walk, kind byte, header flat) {
	switch kind {
	case headerSchema:
	case headerBatch:
		if _, nodes := header.vector(1, 16); nodes < m.columns {
			w.fail("fewer nodes than columns")
		}
		w.checkCounts(header, m.views)
	case headerDictionary:
		w.checkCounts(header.child(1), m.dictionaries[int64(header.number(0, 8))])
	default:
		w.fail("an Arrow message that is no schema and no batch")
	}
}

// checkBody checks that the buffers of a record batch fill its body. A reader skips the body by its
// length, so one that is too long would hide the messages behind it.
func (w *walk) checkBody(batch flat, body int64) {
	buffers, end := batch.items(2, 16), uint64(0)
	for i := range len(buffers) / 16 {
		from, length := wordAt(buffers, 2*i, 8), wordAt(buffers, 2*i+1, 8)
		if from > uint64(body) || length > uint64(body)-from {
			w.fail("a buffer outside the body of its batch")
			return
		}
		end = max(end, from+length)
	}
	if uint64(body)-end > arrowPaddingMax {
		w.fail("a body that is longer than its buffers")
	}
}

// checkCounts checks that a record batch has counts of text buffers for its columns of views, and
// as many buffers as they claim: a reader allocates by them.
func (w *walk) checkCounts(batch flat, views int) {
	_, buffers := batch.vector(2, 16)
	counts := batch.items(4, 8)
	if batch.at(4) != 0 && len(counts)/8 < views {
		w.fail("columns without a number of text buffers")
	}
	for i := range len(counts) / 8 {
		n := wordAt(counts, i, 8)
		if n > uint64(buffers) {
			w.fail("a number of text buffers that cannot be")
			return
		}
		buffers -= int(n)
	}
}

// The types of columns whose text buffers are counted (Schema.fbs).
const (
	typeBinaryView = 23
	typeTextView   = 24
)

// setSchema checks a schema, and counts its columns of views.
func (m *arrowMessages) setSchema(w *walk, schema flat) {
	w.checkColumns(schema, 1, 0)
	schema.vector(2, 4) // its metadata
	m.dictionaries = map[int64]int{}
	if w.bad == "" {
		m.views, m.columns = m.countViews(schema, 1), schema.tables(1)
	}
}

// countViews counts the columns of views in a vector of Field tables and inside them. Those inside
// a dictionary count for it.
func (m *arrowMessages) countViews(t flat, slot int) (total int) {
	for i := range t.tables(slot) {
		column := t.table(slot, i)
		n := m.countViews(column, 5)
		if kind := column.number(2, 1); kind == typeBinaryView || kind == typeTextView {
			n++
		}
		if dictionary := column.child(4); dictionary.pos != 0 {
			id := int64(dictionary.number(0, 8))
			m.dictionaries[id] = max(m.dictionaries[id], n)
		} else {
			total += n
		}
	}
	return total
}

// CheckArrowFile walks an Arrow file of a size: its footer, and the metadata of all messages before
// it. It returns an error if a part lies outside of the file, if the footer does not list exactly
// the batches that the file has, whose rows would vanish, or if a batch claims more buffers than it
// lists.
func CheckArrowFile(r io.ReaderAt, footer []byte, size int64) error {
	m := &arrowMessages{r: r, at: arrowBlocksFrom, end: size - arrowSuffix - int64(len(footer))}
	w := &walk{buf: footer}
	root := w.table(0)
	m.setSchema(w, root.child(1))
	root.vector(4, 4) // its metadata
	listed := listedBlocks(root, 2, headerDictionary)
	listed = append(listed, listedBlocks(root, 3, headerBatch)...)
	if w.bad != "" {
		return event.Problemf(event.Malformed, "footer: %s", w.bad)
	}
	slices.SortFunc(listed, func(a, b arrowBlock) int { return cmp.Compare(a.from, b.from) })
	if err := m.passSchema(int64(len(footer))); err != nil {
		return err
	}
	for gap := int64(0); m.at < m.end; {
		b, err := m.next()
		if err != nil {
			return err
		}
		if b.kind == 0 {
			if gap += b.head; gap > arrowGapMax {
				return m.problem("bytes that are in no message")
			}
			continue
		}
		gap = 0
		if len(listed) == 0 || b != listed[0] {
			return event.Problemf(event.Malformed,
				"damaged: the footer does not list the batch of bytes %d to %d", b.from, b.to())
		}
		listed = listed[1:]
	}
	if len(listed) > 0 {
		return event.Problemf(event.Malformed,
			"damaged: the footer lists a batch at byte %d, where none begins", listed[0].from)
	}
	return nil
}

// listedBlocks returns the blocks of a kind that a field of a footer lists.
func listedBlocks(footer flat, field int, kind byte) (listed []arrowBlock) {
	const blockBytes = 24 // offset, length of the metadata, length of the body
	blocks := footer.items(field, blockBytes)
	for ; len(blocks) >= blockBytes; blocks = blocks[blockBytes:] {
		listed = append(listed, arrowBlock{
			kind: kind,
			from: int64(wordAt(blocks, 0, 8)),
			head: int64(int32(wordAt(blocks, 2, 4))),
			body: int64(wordAt(blocks, 2, 8)),
		})
	}
	return listed
}

// passSchema goes behind the schema at the beginning of a file, whose footer has a length.
func (m *arrowMessages) passSchema(footer int64) error {
	from := m.at
	if b, err := m.next(); err == nil && b.kind == headerSchema {
		return nil
	}
	// Polars writes the schema without its length. It ends where a message begins, and is not much
	// longer than the footer, which repeats it.
	m.at = from
	head, err := m.read(from, max(0, min(footer+arrowGapMax, m.end-from)))
	if err != nil {
		return err
	}
	w := walk{buf: head}
	if w.table(0).number(1, 1) != headerSchema || w.bad != "" {
		return m.problem("no schema")
	}
	for at := 8; at <= len(head)-8; at += 8 {
		if bytes.HasPrefix(head[at:], continuation) {
			m.at += int64(at)
			return nil
		}
	}
	return m.problem("no message follows the schema")
}

// CheckArrowStream walks the metadata of all messages of an Arrow stream of a size. It returns an
// error if a part lies outside of the stream, or if a batch claims more buffers than it lists. A
// stream without the mark of its end may have lost batches; ended reports whether it has the mark.
func CheckArrowStream(r io.ReaderAt, size int64) (ended bool, err error) {
	m := &arrowMessages{r: r, end: size}
	schema, err := m.next()
	if err != nil {
		return false, err
	}
	if schema.kind != headerSchema {
		return false, event.Problemf(event.Malformed, "damaged: no schema")
	}
	w := walk{buf: m.metadata}
	if m.setSchema(&w, w.table(0).child(2)); w.bad != "" {
		return false, event.Problemf(event.Malformed, "damaged: schema: %s", w.bad)
	}
	for m.at < m.end {
		b, err := m.next()
		switch {
		case err != nil:
			return false, err
		case b.kind == headerSchema:
			return false, m.problem("a second schema")
		case b.kind == 0 && m.at < m.end:
			return false, event.Problemf(event.Malformed, "damaged: bytes follow the end of the "+
				"Arrow stream; is it two streams in one file?")
		case b.kind == 0:
			return true, nil
		}
	}
	return false, nil
}
