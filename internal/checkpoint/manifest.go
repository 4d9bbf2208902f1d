package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Format is the version of the manifest and of the core tables: the graph, labels with their pairs,
// predictions with their evidence, members, attributes, and the accuracy of model versions. Every
// release reads these tables from FormatOldest to its own Format, so an upgrade never needs the
// log. docs/checkpoints.md describes them.
const Format, FormatOldest = 29, 28

// Derived is the version of the derived tables: kernel masses, posteriors, and the last published
// records. A state of another version is continued from its core tables alone. Raise it when a
// derived table or its meaning changes; releases before 0.3.0 write 0.
const Derived = 8

// NoDerived is the version of a state that has no derived tables yet; see
// incremental.RestoreTables.
const NoDerived = -1

// Manifest describes the contents of a checkpoint and its place in a history.
type Manifest struct {
	Format   int    `json:"format"`
	Position uint64 `json:"position"` // last position applied
	LogTime  int64  `json:"log_time"` // the log's time there, nanoseconds since 1970
	Emitted  bool   `json:"emitted"`  // the step that ended there emitted
	// assertions end there by this time, if it is not log time
	Clock  int64  `json:"clock,omitempty"`
	Stream Stream `json:"stream"`
	// position of each shard of this state in the output log
	Watermarks map[int]uint64 `json:"watermarks,omitempty"`
	// position of the last erasure up to Position
	Erased   uint64    `json:"erased,omitempty"`
	Config   string    `json:"config"` // digest of the core's configuration
	Classes  []string  `json:"classes,omitempty"`
	Derived  int       `json:"derived,omitempty"`
	Version  string    `json:"version"` // of the program that wrote it
	Written  time.Time `json:"written"`
	Sections []Entry   `json:"sections"`
	Checksum string    `json:"checksum"` // xxhash64 of the manifest with this field empty
}

// Stream identifies the history that the state was folded over, by its content.
type Stream struct {
	Name string `json:"name"`
	// of earlier releases: creation time of the stream
	Created time.Time `json:"created,omitzero"`
	Log     string    `json:"log,omitempty"` // name of the log in its settings
	Digest  string    `json:"digest"`        // of the log up to Position
}

// Entry is one section of a checkpoint.
type Entry struct {
	Name     string `json:"name"` // also the file's name
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"` // xxhash64, 16 hexadecimal digits
}

// ErrFormat is matched when the core tables of an intact checkpoint are of another release, which
// this one does not read.
var ErrFormat = errors.New("another release wrote it")

// checksumField precedes the checksum of a manifest, which is its last field.
const checksumField = `"checksum": "`

// encode returns the manifest as it is written, its checksum filled in.
func (m Manifest) encode() ([]byte, error) {
	m.Checksum = ""
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	m.Checksum = hexSum(xxhash.Sum64(data))
	return json.MarshalIndent(m, "", "  ")
}

// decodeManifest verifies the checksum of a manifest and reads it. Manifests of all releases have
// the same checksum, so one that is damaged differs from one of another release. Fields that this
// release does not know are ignored.
func decodeManifest(data []byte) (m Manifest, err error) {
	if !intact(data) {
		return m, errors.New("manifest does not match its checksum")
	}
	var written struct {
		Format  int    `json:"format"`
		Version string `json:"version"`
	}
	if err = json.Unmarshal(data, &written); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	m.Format, m.Version = written.Format, written.Version
	switch {
	case m.Format > Format:
		return m, fmt.Errorf("%w: %s is newer and writes format %d; this release reads "+
			"%d to %d. Continue with that release, or restore a backup from before the upgrade",
			ErrFormat, m.Version, m.Format, FormatOldest, Format)
	case m.Format < FormatOldest:
		return m, fmt.Errorf("%w: %s is older and writes format %d; this release reads "+
			"%d to %d. Move the directory of checkpoints away to build the state again from the "+
			"log, or continue with that release",
			ErrFormat, m.Version, m.Format, FormatOldest, Format)
	}
	if err = json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// Readable reports whether this release reads the core tables.
func (m *Manifest) Readable() bool { return FormatOldest <= m.Format && m.Format <= Format }

// intact reports whether the bytes of a manifest match the checksum in it: that of the same bytes
// with an empty checksum.
func intact(data []byte) bool {
	at := bytes.LastIndex(data, []byte(checksumField))
	if at < 0 {
		return false
	}
	before, after := data[:at+len(checksumField)], data[at+len(checksumField):]
	if len(after) < checksumDigits {
		return false
	}
	sum := xxhash.New()
	_, _ = sum.Write(before)
	_, _ = sum.Write(after[checksumDigits:])
	return string(after[:checksumDigits]) == hexSum(sum.Sum64())
}

// checksumDigits is the length of a checksum.
const checksumDigits = 16

func hexSum(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// Digest names a state by its sections, in their order: xxhash64 over their names,
// lengths and checksums, 16 hexadecimal digits. Two states of one digest are the
// same bytes, but for forgery.
func Digest(sections []Entry) string {
	h := xxhash.New()
	for _, s := range sections {
		fmt.Fprintf(h, "%s %d %s\n", s.Name, s.Bytes, s.Checksum)
	}
	return hexSum(h.Sum64())
}
