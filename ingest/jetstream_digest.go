package ingest

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"

	"gqlstream/ingest/wire"
)

// Digest identifies the content of a log up to a message. Message is xxhash64 over the broker's
// time, the subject and the payload of that message. Prefix is a chain over all messages so far:
// each link is xxhash64 over the previous link, the digest of the message, and the headers that
// decide how it is decoded. A start asks the broker for single messages and checks Message at every
// recorded position. The fold follows Prefix message by message, at some 50 ns each, and checks it
// at every recorded position. Both guard against mistakes, not against forgery.
//
// Prefix is 0 if it is unknown: in states of an earlier release, and after a hole that --skip
// skipped.
type Digest struct {
	Message uint64
	Prefix  uint64
}

// prefixStart is the prefix of the empty log.
var prefixStart = xxhash.Sum64String("gqlstream log")

// String returns 16 hexadecimal digits, a point, and 16 more if the prefix is known.
func (d Digest) String() string {
	switch {
	case d == Digest{}:
		return ""
	case d.Prefix == 0:
		return fmt.Sprintf("%016x", d.Message)
	}
	return fmt.Sprintf("%016x.%016x", d.Message, d.Prefix)
}

// ParseDigest is the inverse of String. Any other text gives the zero Digest.
func ParseDigest(text string) (d Digest) {
	if n, _ := fmt.Sscanf(text, "%16x.%16x", &d.Message, &d.Prefix); n == 0 || d.String() != text {
		return Digest{}
	}
	return d
}

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	*d = ParseDigest(string(text))
	return nil
}

// Agrees reports whether two digests can be of one log. An unknown prefix agrees with any.
func (d Digest) Agrees(o Digest) bool {
	return d.Message == o.Message && (d.Prefix == 0 || o.Prefix == 0 || d.Prefix == o.Prefix)
}

// digestAfter returns the digest after the next message of a log with the prefix before.
func digestAfter(
	prefix uint64, subject string, stored time.Time, headers nats.Header, payload []byte,
) Digest {
	d := Digest{Message: messageDigest(subject, stored, payload)}
	if prefix == 0 {
		return d
	}
	var room [128]byte
	link := binary.LittleEndian.AppendUint64(room[:0], prefix)
	link = binary.LittleEndian.AppendUint64(link, d.Message)
	for _, name := range []string{
		wire.HeaderContentType, wire.HeaderSchema, wire.HeaderChecksum, headerRetry,
	} {
		link = append(link, headers.Get(name)...)
		link = append(link, 0)
	}
	d.Prefix = max(xxhash.Sum64(link), 1)
	return d
}

// messageDigest returns the digest of one stored message.
func messageDigest(subject string, stored time.Time, payload []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(stored.UnixNano()))
	d.Write(at[:])
	d.WriteString(subject)
	d.Write([]byte{0})
	d.Write(payload)
	return max(d.Sum64(), 1)
}
