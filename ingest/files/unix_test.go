//go:build unix

package files

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gqlstream/ingest/event"
)

// A file that can be read only once, such as a named pipe, is refused, and never waited
// for.
func TestNamedPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "edge.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	err := readQuietly(pipe)
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a named pipe: %v", err)
	}
	_, err = inferClasses(&Config{Inputs: []Input{{Path: pipe, Kind: event.KindLabel}}})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("classes from a pipe: %v", err)
	}
}
