package ingest

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	flatbuffers "github.com/google/flatbuffers/go"
)

// The Arrow readers believe every count and length in the metadata of a file, and
// ask for memory accordingly: one flipped bit can ask for more than there is,
// which ends the process. So the counts are checked first, against the size of
// what holds them. A bad offset is a panic, which the caller recovers.

// Fields of the flatbuffers tables of Arrow's format (File.fbs, Schema.fbs,
// Message.fbs), by number.
const (
	footerSchema, footerDictionaries, footerBatches, footerMetadata = 1, 2, 3, 4
	schemaFields, schemaMetadata                                    = 1, 2
	fieldChildren, fieldMetadata                                    = 5, 6
	messageHeader                                                   = 2

	arrowBlockBytes = 24 // of a Block: offset, metadata length, body length
	arrowMagicBytes = 6
	arrowDepthMax   = 16 // types inside types
)

// checkArrowFile checks the footer of the file format.
func checkArrowFile(r randomFile) error {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail := make([]byte, 4+arrowMagicBytes)
	if size < int64(len(tail)) {
		return fmt.Errorf("damaged: %d bytes", size)
	}
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	if length > size-int64(len(tail)) || length < 8 {
		return fmt.Errorf("damaged: a footer of %d bytes in a file of %d", length, size)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-int64(len(tail))-length); err != nil {
		return err
	}
	root := rootTable(footer)
	if err := checkVector(root, footerMetadata, 4); err != nil {
		return err
	}
	for _, blocks := range []int{footerDictionaries, footerBatches} {
		if err := checkBlocks(root, blocks, size); err != nil {
			return err
		}
	}
	if schema, ok := subTable(root, footerSchema); ok {
		return checkArrowSchema(schema)
	}
	return fmt.Errorf("damaged: no schema")
}

// checkBlocks checks that the messages that a footer lists lie in the file.
func checkBlocks(t flatbuffers.Table, slot int, size int64) error {
	if err := checkVector(t, slot, arrowBlockBytes); err != nil {
		return err
	}
	at := fieldAt(t, slot)
	if at == 0 {
		return nil
	}
	start := t.Vector(at)
	for i := range t.VectorLen(at) {
		block := t.Bytes[int(start)+i*arrowBlockBytes:]
		offset := int64(binary.LittleEndian.Uint64(block))
		meta := int64(int32(binary.LittleEndian.Uint32(block[8:])))
		body := int64(binary.LittleEndian.Uint64(block[16:]))
		if offset < 0 || meta < 0 || body < 0 || offset > size || meta > size || body > size ||
			offset+meta+body > size {
			return fmt.Errorf("damaged: record %d lies outside the file", i)
		}
	}
	return nil
}

// checkArrowStream checks the schema that a stream begins with.
func checkArrowStream(r randomFile) error {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	head := make([]byte, 8)
	if _, err := r.ReadAt(head, 0); err != nil {
		return err
	}
	at, length := int64(4), int64(binary.LittleEndian.Uint32(head))
	if length == math.MaxUint32 { // a continuation marker comes first since Arrow 0.15
		at, length = 8, int64(binary.LittleEndian.Uint32(head[4:]))
	}
	if length < 8 || length > size-at {
		return fmt.Errorf("damaged: a schema of %d bytes in a file of %d", length, size)
	}
	message := make([]byte, length)
	if _, err := r.ReadAt(message, at); err != nil {
		return err
	}
	if schema, ok := subTable(rootTable(message), messageHeader); ok {
		return checkArrowSchema(schema)
	}
	return fmt.Errorf("damaged: no schema")
}

func checkArrowSchema(schema flatbuffers.Table) error {
	if err := checkVector(schema, schemaMetadata, 4); err != nil {
		return err
	}
	return checkFields(schema, schemaFields, 0)
}

// checkFields checks a vector of Field tables and what is in them.
func checkFields(t flatbuffers.Table, slot, depth int) error {
	if depth > arrowDepthMax {
		return fmt.Errorf("types more than %d deep", arrowDepthMax)
	}
	if err := checkVector(t, slot, 4); err != nil {
		return err
	}
	at := fieldAt(t, slot)
	if at == 0 {
		return nil
	}
	start := t.Vector(at)
	for i := range t.VectorLen(at) {
		field := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(start + flatbuffers.UOffsetT(4*i))}
		if err := checkVector(field, fieldMetadata, 4); err != nil {
			return err
		}
		if err := checkFields(field, fieldChildren, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkVector checks that a vector of items of so many bytes lies in the buffer.
func checkVector(t flatbuffers.Table, slot, itemBytes int) error {
	at := fieldAt(t, slot)
	if at == 0 {
		return nil
	}
	n, start := t.VectorLen(at), int(t.Vector(at))
	if n < 0 || start < 0 || start > len(t.Bytes) || n > (len(t.Bytes)-start)/itemBytes {
		return fmt.Errorf("damaged: a list of %d items in %d bytes", n, len(t.Bytes))
	}
	return nil
}

func rootTable(buf []byte) flatbuffers.Table {
	return flatbuffers.Table{Bytes: buf, Pos: flatbuffers.GetUOffsetT(buf)}
}

// fieldAt returns where a field of a table is, relative to it; 0 when absent.
func fieldAt(t flatbuffers.Table, slot int) flatbuffers.UOffsetT {
	return flatbuffers.UOffsetT(t.Offset(flatbuffers.VOffsetT(4 + 2*slot)))
}

func subTable(t flatbuffers.Table, slot int) (flatbuffers.Table, bool) {
	at := fieldAt(t, slot)
	if at == 0 {
		return flatbuffers.Table{}, false
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at + t.Pos)}, true
}
