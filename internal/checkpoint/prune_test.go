package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gqlstream/internal/testfile"
)

// Checkpoints with erased data must go as soon as two newer ones are without it, and not
// before. Checkpoints that an earlier build has set aside go at once.
func TestErasedCheckpointsGo(t *testing.T) {
	for _, c := range []struct {
		name  string
		saves []Manifest
		want  string
	}{
		{
			"no erasure",
			[]Manifest{{Position: 1}, {Position: 2}, {Position: 3}, {Position: 4}},
			"[4 3 2]",
		},
		{
			"one newer",
			[]Manifest{{Position: 1}, {Position: 2}, {Position: 5, Erased: 4}},
			"[5 2 1]",
		},
		{"two newer", []Manifest{
			{Position: 1},
			{Position: 2},
			{Position: 5, Erased: 4},
			{Position: 6, Erased: 4},
		}, "[6 5]"},
		{"at the erasure", []Manifest{
			{Position: 2},
			{Position: 4, Erased: 4},
			{Position: 5, Erased: 4},
			{Position: 6, Erased: 4},
		}, "[6 5 4]"},
		{"again and again", []Manifest{
			{Position: 2},
			{Position: 4, Erased: 3},
			{Position: 6, Erased: 5},
			{Position: 8, Erased: 7},
		}, "[8 6]"},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, FileName(3)+".damaged"), 0o700); err != nil {
			t.Fatal(err)
		}
		dir, err := Open(Disk{}, root)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range c.saves {
			if _, err := dir.Save(saved(m)); err != nil {
				t.Fatal(err)
			}
		}
		positions, err := dir.List()
		if err != nil || fmt.Sprint(positions) != c.want {
			t.Errorf("%s: kept %v, %v; want %s", c.name, positions, err, c.want)
		}
		if names, err := os.ReadDir(root); err != nil || len(names) != len(positions) {
			t.Errorf("%s: %v is left, %v", c.name, names, err)
		}
	}
}

// A start must finish a prune that a crash interrupted. It must drop nothing if the manifest that
// names the erasure is damaged.
func TestAStartDropsErasedCheckpoints(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	for path, list := range map[string][]Manifest{
		root:  {{Position: 2}, {Position: 6, Erased: 4}},
		other: {{Position: 5, Erased: 4}},
	} {
		dir, err := Open(Disk{}, path)
		for _, m := range list {
			if err == nil {
				_, err = dir.Save(saved(m))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// 5 comes from another store, so that no Save drops it.
	if err := os.Rename(filepath.Join(other, FileName(5)),
		filepath.Join(root, FileName(5))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, FileName(5), ManifestFile)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		manifest []byte
		want     string
	}{{append([]byte("x"), sound[1:]...), "[6 5 2]"}, {sound, "[6 5]"}} {
		testfile.Write(t, file, c.manifest)
		again, err := Open(Disk{}, root)
		if err != nil {
			t.Fatal(err)
		}
		if positions, err := again.List(); err != nil || fmt.Sprint(positions) != c.want {
			t.Errorf("kept %v, %v; want %s", positions, err, c.want)
		}
	}
}
