package files

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"gqlstream/ingest/wire"
)

// The Arrow readers believe every count and length in the metadata of a file, and ask for memory
// accordingly: one flipped bit can ask for more than there is, which ends the process. So the
// metadata is walked first, and its counts are checked against the size of what holds them.

const arrowMagicBytes = 6

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
	return wire.CheckArrowFooter(footer, size)
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
	return wire.CheckArrowSchema(message)
}
