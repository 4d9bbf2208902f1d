package checkpoint

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

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

// Look returns the directory of checkpoints at path to read them while a process
// may be writing there. Unlike Open it clears nothing away; Save and Load, which
// does, are not for it.
func Look(fs FS, path string) *Dir { return &Dir{fs: fs, path: path} }
