package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
)

// content returns the bytes of a section at a position.
func content(position uint64, section string) []byte {
	r := rand.New(rand.NewPCG(position, uint64(len(section))))
	data := make([]byte, 20+r.IntN(40))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// saved returns a checkpoint with the sections of its position.
func saved(m Manifest) *Checkpoint {
	c := New(m)
	for _, name := range []string{"vertices.arrow", "edges.arrow"} {
		c.Add(name, content(m.Position, name))
	}
	return c
}

func checkIntact(c *Checkpoint) error {
	for name, data := range saved(c.Manifest).Sections {
		if !bytes.Equal(c.Sections[name], data) {
			return fmt.Errorf("section %s of %d is not what was written", name, c.Manifest.Position)
		}
	}
	return nil
}

// After a fault or a crash at any operation of a Save, with torn writes and lost
// entries, Load gives the checkpoint before or the new one, whole, and the next
// Save works. GQLSTREAM_DISKFAULTS sets the seeds (make faults: 2000).
func TestEveryFaultLeavesAWholeCheckpoint(t *testing.T) {
	seeds, runs := uint64(campaign.Size(t, "GQLSTREAM_DISKFAULTS", 60)), 0
	for _, crash := range []bool{false, true} {
		for seed := range seeds {
			for failAt := 1; ; failAt++ {
				finished, err := faultAt(seed, failAt, crash)
				if err != nil {
					t.Fatalf("seed %d, operation %d, crash %t: %v", seed, failAt, crash, err)
				}
				if runs++; finished {
					break
				}
			}
		}
	}
	t.Logf("%d runs with a fault", runs)
}

// faultAt saves checkpoints 10 and 20, the second with a fault, and recovers. It
// reports whether the second save needed fewer operations than failAt.
func faultAt(seed uint64, failAt int, crash bool) (finished bool, err error) {
	disk := newFaultyFS(seed)
	dir, err := Open(disk, "state")
	if err != nil {
		return false, err
	}
	if _, err := dir.Save(saved(Manifest{Position: 10})); err != nil {
		return false, err
	}
	disk.ops, disk.failAt, disk.crash = 0, failAt, crash
	_, saveErr := dir.Save(saved(Manifest{Position: 20}))
	finished = disk.ops < failAt
	disk.failAt = 0
	if crash && !finished {
		disk = disk.restart()
	}
	if dir, err = Open(disk, "state"); err != nil {
		return finished, err
	}
	c, err := dir.Load(func(error) {})
	switch {
	case err != nil:
		return finished, err
	case c == nil:
		return finished, errors.New("no checkpoint is left")
	case saveErr == nil && c.Manifest.Position != 20:
		return finished, fmt.Errorf(
			"a checkpoint that was reported durable is gone: %d is the newest",
			c.Manifest.Position,
		)
	}
	if err := checkIntact(c); err != nil {
		return finished, err
	}
	if _, err := dir.Save(saved(Manifest{Position: 30})); err != nil {
		return finished, fmt.Errorf("save after recovery: %w", err)
	}
	if c, err = dir.Load(func(error) {}); err != nil || c.Manifest.Position != 30 {
		return finished, fmt.Errorf("load after recovery: %v, %w", c, err)
	}
	return finished, nil
}

// Every single bit flip and every truncation of every file of a checkpoint must be
// found before anything is decoded, and Load must fall back on the one before.
func TestEveryBitFlipIsFound(t *testing.T) {
	root := t.TempDir()
	dir, err := Open(Disk{}, root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []uint64{1, 2} {
		if _, err := dir.Save(saved(Manifest{Position: p, Config: "c"})); err != nil {
			t.Fatal(err)
		}
	}
	flips := 0
	for _, name := range []string{ManifestFile, "vertices.arrow", "edges.arrow"} {
		file := filepath.Join(root, FileName(2), name)
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(good) {
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			mustNotRead(t, dir, file, bad, fmt.Sprintf("%s with bit %d flipped", name, bit))
			flips++
		}
		for n := range good {
			mustNotRead(t, dir, file, good[:n], fmt.Sprintf("%s cut to %d bytes", name, n))
		}
		mustNotRead(t, dir, file, append(bytes.Clone(good), 0), name+" with a byte more")
		testfile.Write(t, file, good)
	}
	t.Logf("%d bit flips", flips)
	if err := os.Remove(filepath.Join(root, FileName(2), ManifestFile)); err != nil {
		t.Fatal(err)
	}
	damaged := 0
	c, err := dir.Load(func(error) { damaged++ })
	if err != nil || c.Manifest.Position != 1 || damaged != 1 {
		t.Fatalf("load without the newest manifest: %+v, %v", c, err)
	}
	if _, err := dir.Save(saved(Manifest{Position: 2, Config: "c"})); err != nil {
		t.Fatal(err)
	}
	if c, err := dir.Read(2); err != nil || checkIntact(c) != nil {
		t.Errorf("a damaged checkpoint is not replaced by one of its position: %v", err)
	}
}

// A run that reads the log again with another configuration saves checkpoints at earlier positions
// than the old ones. The new checkpoints must be kept and be the newest. The old ones must go.
func TestACheckpointReplacesThoseOfAnotherConfiguration(t *testing.T) {
	dir, err := Open(Disk{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Manifest{
		{Position: 7, Config: "a"},
		{Position: 8, Config: "a"},
		{Position: 9, Config: "a"},
		{Position: 2, Config: "b"},
		{Position: 3, Config: "b"},
	} {
		if _, err := dir.Save(saved(m)); err != nil {
			t.Fatal(err)
		}
	}
	if positions, err := dir.List(); err != nil || fmt.Sprint(positions) != "[3 2]" {
		t.Errorf("kept %v, %v; want those of the new configuration", positions, err)
	}
	named := Manifest{Position: 3, Config: "b", Classes: []string{"left", "right"}}
	if _, err := dir.Save(saved(named)); err != nil {
		t.Fatal(err)
	}
	if c, err := dir.Load(func(error) {}); err != nil ||
		!slices.Equal(c.Manifest.Classes, named.Classes) {
		t.Errorf("%v, %v; want the state with other names of classes", c, err)
	}
}

// A checkpoint that a crash leaves in its place must stay at the next start, although others that
// nobody goes on from lie further on.
func TestACrashLeavesNoFollowerBehind(t *testing.T) {
	placed := 0
	for failAt := 1; ; failAt++ {
		disk := newFaultyFS(uint64(failAt))
		dir, err := Open(disk, "state")
		for _, position := range []uint64{70, 80, 90} {
			if err == nil {
				_, err = dir.Save(saved(Manifest{Position: position, Config: "a"}))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		disk.ops, disk.failAt, disk.crash = 0, failAt, true
		_, _ = dir.Save(saved(Manifest{Position: 10, Config: "b"}))
		finished := disk.ops < failAt
		disk.failAt, disk.crashed = 0, false // all that was done has come to the disk
		_, before := dir.Read(10)
		if dir, err = Open(disk, "state"); err != nil {
			t.Fatal(err)
		}
		if _, err := dir.Read(10); before == nil && err != nil {
			t.Errorf(
				"a start after a crash in operation %d drops the new checkpoint: %v",
				failAt,
				err,
			)
		}
		if before == nil {
			placed++
		}
		if finished {
			break
		}
	}
	if placed < 3 {
		t.Errorf("in %d crashes only the checkpoint was in its place", placed)
	}
}

// Damaged checkpoints, and whole ones that nobody can go on from, keep no new one out, nor the two
// before it, while a run that went back has not come to where they lie.
func TestCheckpointsFurtherOnKeepNoneOut(t *testing.T) {
	root := t.TempDir()
	dir, err := Open(Disk{}, root)
	if err != nil {
		t.Fatal(err)
	}
	save := func(positions ...uint64) {
		for _, p := range positions {
			if _, err := dir.Save(saved(Manifest{Position: p})); err != nil {
				t.Fatal(err)
			}
		}
	}
	save(70, 80, 90)
	for _, p := range []uint64{80, 90} {
		if err := os.Truncate(filepath.Join(root, FileName(p), "edges.arrow"), 3); err != nil {
			t.Fatal(err)
		}
	}
	save(10, 20, 30, 40)
	if dir, err = Open(Disk{}, root); err != nil { // which drops nothing that Save has kept
		t.Fatal(err)
	}
	for _, p := range []uint64{20, 30, 40} {
		if _, err := dir.Read(p); err != nil {
			t.Errorf("a checkpoint was dropped for the sake of others that lie further on: %v", err)
		}
	}
	save(100, 110, 120)
	if positions, err := dir.List(); err != nil || fmt.Sprint(positions) != "[120 110 100]" {
		t.Errorf("kept %v, %v; want the newest three", positions, err)
	}
}

func mustNotRead(t *testing.T, dir *Dir, file string, data []byte, what string) {
	t.Helper()
	testfile.Write(t, file, data)
	if _, err := dir.Read(2); err == nil {
		t.Fatalf("%s was read as if it were intact", what)
	}
}

// A directory keeps three checkpoints and refuses those of a newer release.
func TestThreeAreKeptAndNewerOnesRefused(t *testing.T) {
	root := t.TempDir()
	dir, err := Open(Disk{}, root)
	if err != nil {
		t.Fatal(err)
	}
	for p := range uint64(6) {
		if _, err := dir.Save(saved(Manifest{Position: p})); err != nil {
			t.Fatal(err)
		}
	}
	positions, err := dir.List()
	if err != nil || fmt.Sprint(positions) != "[5 4 3]" {
		t.Fatalf("kept %v, %v; want the newest three", positions, err)
	}
	newer := filepath.Join(root, FileName(9))
	if err := os.Mkdir(newer, 0o700); err != nil {
		t.Fatal(err)
	}
	// A newer release may have other fields, and give ours other types.
	other := []byte("{\n  \"format\": 1000,\n  \"position\": \"ten\",\n  \"checksum\": \"\"\n}")
	sum := hexSum(xxhash.Sum64(other))
	other = bytes.Replace(other, []byte(`"checksum": "`), []byte(`"checksum": "`+sum), 1)
	testfile.Write(t, filepath.Join(newer, ManifestFile), other)
	if _, err := dir.Load(func(error) {}); !errors.Is(err, ErrFormat) {
		t.Errorf("load beside a newer format: %v, want ErrFormat", err)
	}
	damaged := bytes.Replace(other, []byte("1000"), []byte("1001"), 1)
	if _, err := decodeManifest(damaged); err == nil || errors.Is(err, ErrFormat) {
		t.Errorf("a damaged manifest of another format: %v, want that it is damaged", err)
	}
}

// A manifest of a later release, with a field that this one does not know and another version of
// derived tables, is read: only other core tables are refused.
func TestManifestsOfLaterReleasesAreRead(t *testing.T) {
	data, err := Manifest{Format: Format, Position: 9, Derived: Derived + 1}.encode()
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := bytes.Cut(data, []byte(`"checksum"`))
	data = append(before, "\"regions\": [3],\n  \"checksum\": \"\"\n}"...)
	sum := hexSum(xxhash.Sum64(data))
	data = bytes.Replace(data, []byte(`"checksum": "`), []byte(`"checksum": "`+sum), 1)
	m, err := decodeManifest(data)
	if err != nil || m.Position != 9 || m.Derived != Derived+1 {
		t.Errorf("%+v, %v; want position 9 with derived tables of version %d", m, err, Derived+1)
	}
}

// A checkpoint of an older release must stop a start with a message that gives advice, and
// must not be removed.
func TestOlderFormatIsRefusedWithAdvice(t *testing.T) {
	root := t.TempDir()
	dir, err := Open(Disk{}, root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Save(saved(Manifest{Position: 4})); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(root, FileName(9))
	if err := os.Mkdir(older, 0o700); err != nil {
		t.Fatal(err)
	}
	data, err := Manifest{Format: FormatOldest - 1, Position: 9, Version: "v0.1"}.encode()
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(older, ManifestFile), data)
	_, err = dir.Load(func(error) {})
	if !errors.Is(err, ErrFormat) {
		t.Fatalf("load of an older format: %v, want ErrFormat", err)
	}
	c, where := dir.LoadWhere(
		func(*Manifest) bool { return true },
		func(damage error) { t.Error(damage) },
	)
	if where != nil || c == nil || c.Manifest.Position != 4 {
		t.Errorf("among those of this release: %v, %v, want that of position 4", c, where)
	}
	if early := dir.CheckFormat(); early == nil || early.Error() != err.Error() {
		t.Errorf("before it is needed the directory is said to be %v, want %v", early, err)
	}
	for _, part := range []string{
		root, "v0.1", fmt.Sprint("format ", FormatOldest-1),
		"Move the directory", "from the log",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q: %v", part, err)
		}
	}
	if _, err := os.Stat(older); err != nil {
		t.Error(err)
	}
}
