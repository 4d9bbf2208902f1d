package ingest

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"

	"gqlstream/ingest/wire"
)

// Digest says what a log holds up to a message. Message is xxhash64 over the broker's time, the
// subject and the payload of that message. Prefix is a chain over all messages up to it: each link
// is xxhash64 over the link before, the digest of the message, and the headers that decide how it
// is decoded. The broker can be asked for one message, so a start checks Message at every position
// that something has kept; the fold follows Prefix message by message, at some 50 ns each, and
// checks it wherever somebody has kept it. Both guard against mistakes, not against forgery.
//
// Prefix is 0 where it is not known: behind a state of an earlier release, and behind a hole that
// --skip has passed.
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

// ParseDigest is the inverse of String. What is none is the zero Digest.
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

// digestAfter returns the digest after the next message of a log that has the prefix before.
func digestAfter(
	prefix uint64,
	subject string,
	stored time.Time,
	headers nats.Header,
	payload []byte,
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

// messageDigest identifies a stored message by itself.
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
