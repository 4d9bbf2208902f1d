//go:build unix

package files

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// damage changes a file in up to three places: bits, bytes, lengths, parts that are cut out,
// doubled or exchanged, and a lost end. Half of the places lie in the last kilobyte, where a footer
// is.
func damage(r *rand.Rand, whole []byte) []byte {
	data := bytes.Clone(whole)
	for range 1 + r.IntN(3) {
		if len(data) < 16 {
			return data
		}
		at := r.IntN(len(data) - 8)
		if last := len(data) - 1024; last > 0 && r.IntN(2) == 0 {
			at = last + r.IntN(1016)
		}
		n := min(1+r.IntN(64), len(data)-at)
		switch r.IntN(9) {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1:
			data[at] = byte(r.Uint32())
		case 2: // a length or an offset
			binary.LittleEndian.PutUint32(data[at:], 1<<r.IntN(32)-uint32(r.IntN(2)))
		case 3:
			binary.LittleEndian.PutUint64(data[at:], 1<<r.IntN(64)-uint64(r.IntN(2)))
		case 4: // a varint of Parquet
			copy(data[at:], binary.AppendUvarint(nil, 1<<r.IntN(40)))
		case 5:
			clear(data[at : at+n])
		case 6:
			data = append(data[:at:at], data[at+n:]...)
		case 7:
			other := r.IntN(len(data) - n + 1)
			copy(data[at:at+n], bytes.Clone(data[other:other+n]))
		case 8:
			data = data[:at]
		}
	}
	return data
}

// processorTime returns the time that processors have worked for this process.
func processorTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// keep copies a damaged file to where it outlives the test.
func keep(t *testing.T, path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.CreateTemp("", "*-"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := kept.Write(data); err != nil {
		t.Fatal(err)
	}
	return kept.Name()
}

// slowest is more processor time than reading or refusing a damaged file of this test may take.
const slowest = 2 * time.Second

// A damaged table of another program is an error, or is read with other values: without a panic,
// with every row accounted for, and soon. $GQLSTREAM_FILES_FOR is the processor time of a campaign.
func TestDamagedFilesOfOtherPrograms(t *testing.T) {
	const seed = 11
	seeds, last := uint64(1), time.Duration(0)
	if text := os.Getenv("GQLSTREAM_FILES_FOR"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		seeds, _ = strconv.ParseUint(os.Getenv("GQLSTREAM_FILES_SEED"), 10, 64)
	}
	began, tries, refused := processorTime(t), 0, 0
	dir := t.TempDir()
	for round := uint64(0); round == 0 || processorTime(t)-began < last; round++ {
		r := rand.New(rand.NewPCG(seed+seeds, round))
		for _, folder := range programFolders() {
			for _, f := range programFiles(t, folder) {
				whole, err := os.ReadFile(filepath.Join(folder, f.File))
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, "x"+filepath.Ext(f.File))
				if err := os.WriteFile(path, damage(r, whole), 0o600); err != nil {
					t.Fatal(err)
				}
				kind := []event.Kind{event.KindEdge, event.KindEdge, event.KindVertex}[r.IntN(3)]
				config := Config{
					Inputs: []Input{{Path: path, Kind: kind}}, Zone: time.UTC,
					Columns: map[string]string{},
				}
				if kind == event.KindVertex {
					config.Columns = map[string]string{"src": "vertex"}
				}
				before := processorTime(t)
				rows, _, _, err := account(t, path, config)
				tries++
				if err != nil {
					refused++
				} else if rows != f.Rows {
					t.Errorf("seed %d round %d %s: %d rows are read of %d; see %s",
						seeds, round, f.File, rows, f.Rows, keep(t, path, f.File))
				}
				if took := processorTime(t) - before; took > slowest {
					t.Errorf("seed %d round %d %s: %v of processor time, %v; see %s",
						seeds, round, f.File, took, err, keep(t, path, f.File))
				}
			}
		}
	}
	t.Logf("%d tries in %v of processor time, %d refused", tries,
		(processorTime(t) - began).Round(time.Second), refused)
	if refused*5 < tries {
		t.Errorf(
			"seed %d: %d of %d damaged files are errors, want more than a fifth",
			seeds,
			refused,
			tries,
		)
	}
}
