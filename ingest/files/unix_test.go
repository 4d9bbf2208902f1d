//go:build unix

package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gqlstream/ingest/event"
)

// A named pipe is read once, sorted like any file, and never waited for twice.
func TestNamedPipesAreReadOnce(t *testing.T) {
	leakCheck(t)
	pipe := filepath.Join(t.TempDir(), "edge.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte("src,dst,ts\n1,2,30\n3,4,10\n5,6,20\n"), 0) }()
	got := sequence(readAll(t, Config{Inputs: []Input{{Path: pipe, Kind: event.KindEdge}}}))
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if want := []string{"edge 3 @10", "edge 5 @20", "edge 1 @30"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	_, err := inferClasses([]Input{{Path: pipe, Kind: event.KindLabel}}, nil)
	if err == nil || !strings.Contains(err.Error(), "read only once") {
		t.Errorf("classes from a pipe: %v", err)
	}
}
