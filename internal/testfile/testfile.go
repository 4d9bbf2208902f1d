// Package testfile writes the files of tests.
package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file and returns its path. A failure ends the test.
func Write[T string | []byte](t testing.TB, path string, content T) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// New writes a file into a new directory of the test and returns its path.
func New[T string | []byte](t testing.TB, name string, content T) string {
	t.Helper()
	return Write(t, filepath.Join(t.TempDir(), name), content)
}
