package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Checkpoints that hold what was erased must go as soon as two newer ones do not,
// and not before; what an earlier build has set aside goes at once.
func TestErasedCheckpointsGo(t *testing.T) {
	for _, c := range []struct {
		name  string
		saves []Manifest
		want  string
	}{
		{"no erasure", []Manifest{{Position: 1}, {Position: 2}, {Position: 3}, {Position: 4}}, "[4 3 2]"},
		{"one newer", []Manifest{{Position: 1}, {Position: 2}, {Position: 5, Erased: 4}}, "[5 2 1]"},
		{"two newer", []Manifest{{Position: 1}, {Position: 2}, {Position: 5, Erased: 4}, {Position: 6, Erased: 4}}, "[6 5]"},
		{"at the erasure", []Manifest{{Position: 2}, {Position: 4, Erased: 4}, {Position: 5, Erased: 4}, {Position: 6, Erased: 4}}, "[6 5 4]"},
		{"again and again", []Manifest{{Position: 2}, {Position: 4, Erased: 3}, {Position: 6, Erased: 5}, {Position: 8, Erased: 7}}, "[8 6]"},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, fileName(3)+".damaged"), 0o700); err != nil {
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

// While one of the two newer checkpoints is damaged nothing must go, and a start
// must finish what a crash left undone.
func TestErasedCheckpointsStayBesideDamagedOnes(t *testing.T) {
	for _, damage := range []uint64{5, 6} {
		root := t.TempDir()
		dir, err := Open(Disk{}, root)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []Manifest{{Position: 2}, {Position: 6, Erased: 4}} {
			if _, err := dir.Save(saved(m)); err != nil {
				t.Fatal(err)
			}
		}
		other := t.TempDir() // 5 comes from elsewhere, so that no Save drops what it should
		elsewhere, err := Open(Disk{}, other)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := elsewhere.Save(saved(Manifest{Position: 5, Erased: 4})); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(other, fileName(5)), filepath.Join(root, fileName(5))); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(root, fileName(damage), "*"))
		if err != nil {
			t.Fatal(err)
		}
		file := files[0]
		if strings.HasSuffix(file, manifestFile) {
			file = files[1]
		}
		sound, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{append([]byte("x"), sound[1:]...), sound} {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			want := "[6 5 2]"
			if &data[0] == &sound[0] {
				want = "[6 5]"
			}
			again, err := Open(Disk{}, root)
			if err != nil {
				t.Fatal(err)
			}
			if positions, err := again.List(); err != nil || fmt.Sprint(positions) != want {
				t.Errorf("damage to %d: kept %v, %v; want %s", damage, positions, err, want)
			}
		}
	}
}
