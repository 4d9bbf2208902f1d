package wire

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"gqlstream/ingest/event"
)

// ErrMalformed is matched by the error of a message that was refused whole. No event of the
// message is in the batch; the batch's last Refusal holds it.
var ErrMalformed = errors.New("event: message refused")

// ErrUnknownVersion is matched by the error of a message in a schema version that this package does not read.
// The batch is as before. The pipeline must stop: to go on without the message would be a wrong history.
var ErrUnknownVersion = errors.New("event: unknown schema version")

// checkVersion returns what is wrong with a schema version, a positive integer; absent is version 1.
func checkVersion(version string, position event.Position) (*event.Problem, error) {
	if version == "" || version == schemaVersion {
		return nil, nil
	}
	n, err := strconv.ParseUint(version, 10, 31)
	if err != nil || n == 0 || version[0] == '0' || version[0] == '+' {
		return event.Problemf(event.Malformed, "schema version %s is not a positive integer", Quote(version)), nil
	}
	return nil, fmt.Errorf("%w: message at position %d has schema version %s, this program reads version %s: continue with a release "+
		"of gqlstream that reads version %s", ErrUnknownVersion, position, version, schemaVersion, version)
}

// detailTextBytesMax bounds the input that is quoted in a detail.
const detailTextBytesMax = 48

// Quote is input that stands in a detail: quoted and not long.
type Quote string

func (input Quote) String() string {
	s := input[:min(len(input), detailTextBytesMax)]
	q := strconv.Quote(string(s))
	if len(input) > len(s) {
		return q + fmt.Sprintf("... (%d bytes)", len(input))
	}
	return q
}

// nearest is advice that is only looked for when it is read.
type nearest struct {
	name  string
	known []string
}

func (n nearest) String() string { return event.Nearest(n.name, n.known) }

// refuse appends the refusal of one event, or counts it where the message has RefusalsMax.
// original returns the event as JSON.
func (m *Message) refuse(b *event.Batch, index int, p *event.Problem, original func() []byte) {
	r := event.Refusal{Position: m.Position, Index: index, Kind: m.Kind, Reason: p.Reason}
	n := len(b.Refused)
	if m.RefusalsMax == 0 || n < m.RefusalsMax || b.Refused[n-m.RefusalsMax].Position != m.Position {
		r.Detail, r.Original = p.Detail(), original()
	} else if last := &b.Refused[n-1]; last.Reason == p.Reason && last.Index+last.More+1 == index {
		last.More++
		return
	}
	b.Refused = append(b.Refused, r)
}

// bytesOf returns s as bytes that share its memory and must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// alias returns b as a string that shares its memory.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
