package event

import "encoding/binary"

// continuation is what every message inside an Arrow stream begins with.
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

// decodeArrow reads an Arrow stream: a schema, dictionaries, record batches and
// perhaps the end mark. It never copies what a size in the input says it should,
// and looks at no byte before it has checked that it is there.
func (d *Decoder) decodeArrow(m *Message, b *Batch) (*Problem, error) {
	if p := checkStream(m.Payload); p != nil {
		return p, nil
	}
	t := &d.table
	t.reset(m.Kind, d.k)
	var blk block
	for at := 0; at < len(m.Payload); {
		n, p := readBlock(m.Payload, at, &blk)
		if p != nil {
			return p, nil
		}
		at += n
		switch {
		case blk.kind == 0: // the end mark
			if at != len(m.Payload) {
				return problemf(Malformed, "byte %d: bytes after the end of the stream", at), nil
			}
		case !t.ready:
			version, p := t.readSchema(&blk)
			if p == nil {
				p = sound(&blk)
			}
			if p != nil {
				return p, nil
			}
			if p, err := checkVersion(version, m.Position); p != nil || err != nil {
				return p, err
			}
			if p := t.bindSchema(); p != nil {
				return p, nil
			}
		default:
			if p := d.arrowBlock(m, b, &blk); p != nil {
				return p, nil
			}
		}
	}
	if !t.ready {
		return problemf(Malformed, "byte %d: the stream has no schema", len(m.Payload)), nil
	}
	return nil, nil
}

// arrowBlock reads a block that follows the schema.
func (d *Decoder) arrowBlock(m *Message, b *Batch, blk *block) *Problem {
	t := &d.table
	switch blk.kind {
	case headerDictionary:
		p := t.readDictionary(blk)
		if p == nil {
			p = sound(blk)
		}
		return p
	case headerBatch:
		n, p := t.readBatch(blk)
		if p == nil {
			p = sound(blk)
		}
		if p != nil {
			return p
		}
		if limit := d.eventsMax(m.Kind); t.before+n > limit {
			return problemf(TooLarge, "byte %d: more than %d events in a message", blk.at, limit)
		}
		if (t.before+n)*t.attributes > AttributesPerMessage {
			return problemf(TooLarge, "byte %d: more than %d attributes in a message",
				blk.at, AttributesPerMessage)
		}
		p = d.arrowRows(m, b, n)
		t.before += n
		return p
	}
	return problemf(Malformed,
		"byte %d: Arrow message of type %d where a record batch should stand", blk.at, blk.kind)
}

// checkStream refuses payloads that are plainly not an Arrow stream.
func checkStream(payload []byte) *Problem {
	if len(payload) < 8 {
		return problemf(Malformed, "%d bytes are too few for an Arrow stream", len(payload))
	}
	if string(payload[:6]) == "ARROW1" {
		return problemf(Malformed, "byte 0: this is the Arrow file format, send the stream format")
	}
	return nil
}

// sound is the problem of metadata that points outside itself.
func sound(blk *block) *Problem {
	if bad := blk.walk.bad; bad != "" {
		return problemf(Malformed, "byte %d: Arrow metadata is damaged: %s", blk.at, bad)
	}
	return nil
}

// readBlock reads the block that begins at a byte of the payload and returns how
// many bytes it takes.
func readBlock(payload []byte, at int, blk *block) (int, *Problem) {
	rest := payload[at:]
	if len(rest) < 8 || string(rest[:4]) != string(continuation) {
		return 0, problemf(Malformed, "byte %d: an Arrow message should begin here", at)
	}
	size := int(int32(binary.LittleEndian.Uint32(rest[4:])))
	*blk = block{at: at}
	if size == 0 {
		return 8, nil
	}
	if size < 8 || size > len(rest)-8 {
		return 0, problemf(Malformed, "byte %d: Arrow metadata of %d bytes, %d are left",
			at, size, len(rest)-8)
	}
	blk.walk.buf = rest[8 : 8+size]
	message := blk.walk.root()
	version := message.short(0, 0)
	blk.kind = message.byte(1)
	blk.header = message.child(2)
	length := message.long(3)
	if p := sound(blk); p != nil {
		return 0, p
	}
	if version != 3 && version != 4 { // MetadataVersion V4 and V5
		return 0, problemf(Malformed, "byte %d: Arrow metadata version V%d, V4 and V5 are read",
			at, int(version)+1)
	}
	if blk.kind == 0 || blk.header.vtable == 0 {
		return 0, problemf(Malformed, "byte %d: Arrow message without a header", at)
	}
	left := len(rest) - 8 - size
	if length < 0 || length > int64(left) {
		return 0, problemf(Malformed, "byte %d: Arrow body of %d bytes, %d are left",
			at, length, left)
	}
	blk.body = rest[8+size : 8+size+int(length)]
	return 8 + size + int(length), nil
}
