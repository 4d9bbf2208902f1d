package wire

import (
	"encoding/binary"

	"gqlstream/ingest/event"
)

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

// sound is the problem of metadata that points outside itself.
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
