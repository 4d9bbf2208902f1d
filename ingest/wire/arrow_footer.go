package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Fields of the flatbuffers tables of Arrow's format (File.fbs, Schema.fbs), by number.
const (
	footerSchema, footerDictionaries, footerBatches, footerMetadata = 1, 2, 3, 4
	schemaFields, schemaMetadata                                    = 1, 2
	columnChildren, columnMetadata                                  = 5, 6

	arrowBlockBytes = 24 // of a Block: offset, metadata length, body length
	arrowDepthMax   = 16 // types inside types
)

// CheckArrowFooter walks the footer of an Arrow file of so many bytes, and returns an
// error if something in it lies outside the footer or the file.
func CheckArrowFooter(footer []byte, size int64) error {
	w := walk{buf: footer}
	root := w.root()
	root.vector(footerMetadata, 4)
	for _, slot := range []int{footerDictionaries, footerBatches} {
		blocks := root.items(slot, arrowBlockBytes)
		for i := range len(blocks) / arrowBlockBytes {
			block := blocks[i*arrowBlockBytes:]
			offset := int64(binary.LittleEndian.Uint64(block))
			meta := int64(int32(binary.LittleEndian.Uint32(block[8:])))
			body := int64(binary.LittleEndian.Uint64(block[16:]))
			if min(offset, meta, body) < 0 || max(offset, meta, body) > size || offset+meta+body > size {
				return fmt.Errorf("damaged: record %d lies outside the file", i)
			}
		}
	}
	return w.checkSchema(root.child(footerSchema))
}

// CheckArrowSchema walks the metadata of the message that an Arrow stream begins with,
// and returns an error if something in it lies outside.
func CheckArrowSchema(message []byte) error {
	w := walk{buf: message}
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
