package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Format is the version of the manifest and of the state in the sections. A binary reads this one
// and refuses others. A new field of the manifest must be omitted from its JSON when it is zero, so
// that checksums of older manifests still fit.
const Format = 29

// Manifest describes the contents of a checkpoint and its place in a history.
type Manifest struct {
	Format   int    `json:"format"`
	Position uint64 `json:"position"` // last position applied
	LogTime  int64  `json:"log_time"` // the log's time there, nanoseconds since 1970
	Emitted  bool   `json:"emitted"`  // the step that ended there emitted
	Stream   Stream `json:"stream"`
	// position of each shard of this state in the output log
	Watermarks map[int]uint64 `json:"watermarks,omitempty"`
	// position of the last erasure up to Position
	Erased   uint64    `json:"erased,omitempty"`
	Config   string    `json:"config"` // digest of the core's configuration
	Classes  []string  `json:"classes,omitempty"`
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

// errFormat is matched when another release wrote a checkpoint, whose state this one does not read.
var errFormat = errors.New("checkpoint: of another format")

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

// decodeManifest reads a manifest and verifies its checksum, which an unknown field does not fit.
func decodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	err := json.Unmarshal(data, &m) // goes on after a field of another type
	if m.Format > Format {
		return m, fmt.Errorf("%w: written by a newer release: format %d, this one reads %d",
			errFormat, m.Format, Format)
	}
	again, failed := m.encode()
	switch {
	case cmp.Or(err, failed) != nil:
		return m, fmt.Errorf("manifest: %w", cmp.Or(err, failed))
	case !bytes.Equal(again, data):
		return m, errors.New("manifest does not match its checksum")
	case m.Format < Format:
		return m, fmt.Errorf(
			"%w: written by an older release (%s): format %d, this one reads %d. Move the "+
				"directory of"+
				" checkpoints away to build the state again from the log, or continue with that "+
				"release",
			errFormat,
			m.Version,
			m.Format,
			Format,
		)
	}
	return m, nil
}

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
