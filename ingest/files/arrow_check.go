package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"gqlstream/ingest/wire"
)

// The Arrow readers believe every count and length in the metadata of a file, and ask for memory
// accordingly: one flipped bit can ask for more than there is, which ends the process. So the
// metadata is walked first, and its counts are checked against the size of what holds them.

const arrowMagic = "ARROW1"

// checkArrowFile checks the magic that the file begins with, and its footer.
func checkArrowFile(r randomFile) error {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size == 0 {
		return errors.New("empty, want an Arrow file")
	}
	magic := make([]byte, len(arrowMagic))
	if _, err := r.ReadAt(magic, 0); err != nil || string(magic) != arrowMagic {
		return errors.New("it does not begin as one; streams of Arrow are not read")
	}
	tail := make([]byte, 4+len(arrowMagic))
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
