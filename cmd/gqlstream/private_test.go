package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that names people must be readable by its owner alone, also where one was there that
// others could read.
func TestFilesThatNamePeopleArePrivate(t *testing.T) {
	dir := t.TempDir()
	for _, before := range []os.FileMode{0, 0o644, 0o666} {
		path := filepath.Join(dir, before.String())
		if before != 0 {
			if err := os.WriteFile(path, []byte("longer than what follows"), before); err != nil {
				t.Fatal(err)
			}
		}
		if err := writePrivate(path, []byte("people")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("a file of mode %v became one of %v, %v", before, info.Mode(), err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "people" {
			t.Errorf("the file holds %q, %v", text, err)
		}
	}
}
