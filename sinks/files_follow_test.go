package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gqlstream/internal/filelock"
	"gqlstream/internal/testfile"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

var errCrash = errors.New("crash")

// contents returns the files of a directory with their bytes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

// recordedLog is an output log with emissions at uneven times, some of them far apart,
// some without records, one with a community that is suppressed.
func recordedLog(t *testing.T, seed uint64, emissions int) (log []*Stored) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 41))
	at := time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC)
	var position, sequence uint64
	for range emissions {
		position += 1 + random.Uint64N(9)
		at = at.Add(time.Duration(random.Int64N(int64(4 * time.Minute))))
		e := &Stored{Position: position, Time: at.UnixNano(), Cut: random.IntN(6) == 0}
		for i := range random.IntN(5) {
			r := estimate(fmt.Sprint("c", i), "auto", position)
			r.Time, r.Lambda, r.Prevalence[0] = at.Format(
				time.RFC3339Nano,
			), random.Float64(), random.Float64()
			r.SE = r.Prevalence
			if i == 2 {
				r = quant.Estimate{
					Community:  "<small>",
					Position:   position,
					Suppressed: true,
					Flags:      []string{quant.FlagBelowFloor},
				}
				r.Time = at.Format(time.RFC3339Nano)
			}
			data, err := alerts.PlainJSON(&r)
			if err != nil {
				t.Fatal(err)
			}
			e.Records = append(e.Records, data)
		}
		sequence += uint64(len(e.Records)) + 1
		e.Cursor = Cursor{Place: Place{Position: position}, Sequence: sequence}
		log = append(log, e)
	}
	return log
}

// openFollower is a FollowConfig.Open with the disk of a test.
type openFollower func(d disk) (Follower, Cursor, error)

// fold feeds a follower the records that it has not taken, as a Runner does.
func fold(log []*Stored, open openFollower, d disk) error {
	f, after, err := open(d)
	if err != nil {
		return err
	}
	for i, e := range log {
		if e.Cursor.Sequence <= after.Sequence {
			continue
		}
		one := *e // a follower owns the emissions that it takes
		if err := f.Take(context.Background(), &one); err != nil {
			return errors.Join(err, f.Close())
		}
		if i%3 == 2 || i == len(log)-1 {
			if _, err := f.Sync(context.Background(), e.Cursor); err != nil {
				return errors.Join(err, f.Close())
			}
		}
	}
	return f.Close()
}

// outputs are the followers that write files, each in a directory.
func outputs(rowsMax int) map[string]func(dir string) openFollower {
	parts := func(dir string) openFollower {
		return func(d disk) (Follower, Cursor, error) {
			return OpenPartsDir(PartsDirConfig{Dir: dir, Log: "log", rowsMax: rowsMax, disk: d})
		}
	}
	return map[string]func(string) openFollower{
		"lines": func(dir string) openFollower {
			return func(d disk) (Follower, Cursor, error) {
				return openLinesFile(filepath.Join(dir, "lines"), "log", d)
			}
		},
		"parquet": parts,
	}
}

// The first part of a directory must end within ten seconds of log time, and each later one
// at the next multiple of Every, also when the follower is opened again after every few
// emissions.
func TestTheFirstPartIsEarly(t *testing.T) {
	begin := time.Date(2026, 3, 1, 11, 41, 53, 0, time.UTC)
	var log []*Stored
	for i := range uint64(1500) { // a second each
		r := estimate("c", "auto", i+1)
		data, err := alerts.PlainJSON(&r)
		if err != nil {
			t.Fatal(err)
		}
		at := begin.Add(time.Duration(i) * time.Second).UnixNano()
		log = append(
			log,
			&Stored{
				Position: i + 1,
				Time:     at,
				Records:  [][]byte{data},
				Cursor:   Cursor{Place: Place{Position: i + 1}, Sequence: i + 1},
			},
		)
	}
	for _, each := range []int{len(log), 100} {
		dir := t.TempDir()
		for n := each; n <= len(log); n += each {
			open := func(d disk) (Follower, Cursor, error) {
				return OpenPartsDir(PartsDirConfig{Dir: dir, Log: "log", disk: d})
			}
			if err := fold(log[:n], open, disk{}); err != nil {
				t.Fatal(err)
			}
		}
		got := slices.Sorted(maps.Keys(contents(t, dir)))
		want := []string{partsPositionName, partName(1, 7), partName(8, 487), partName(488, 1087)}
		if !slices.Equal(got, want) {
			t.Errorf("opened after every %d: %v, want %v", each, got, want)
		}
	}
}

// Whatever the step at which a process dies, and with a torn end of unsynced data, the next
// run must leave the files of an undisturbed run, byte for byte.
func TestFilesAreTheSameAfterACrashAnywhere(t *testing.T) {
	for name, output := range outputs(9) {
		emissions := map[string]int{"lines": 14, "parquet": 10}[name]
		log := recordedLog(t, 4, emissions)
		undisturbed := t.TempDir()
		if err := fold(log, output(undisturbed), disk{}); err != nil {
			t.Fatal(err)
		}
		want := outputOf(t, undisturbed)
		if name != "lines" && len(want) < 2 {
			t.Fatalf("%s: only %d files", name, len(want))
		}
		for failAt := 1; ; failAt++ {
			dir, steps, died := t.TempDir(), 0, ""
			err := fold(log, output(dir), disk{fault: func(step string) error {
				if steps++; steps == failAt {
					died = step
					return errCrash
				}
				return nil
			}})
			if err == nil {
				t.Logf("%s: %d places to die at", name, failAt-1)
				break
			}
			if name == "lines" {
				tearEnd(t, filepath.Join(dir, "lines"))
			}
			if err := fold(log, output(dir), disk{}); err != nil {
				t.Fatalf("%s died before %s: %v", name, died, err)
			}
			if got := outputOf(t, dir); !maps.Equal(got, want) {
				t.Fatalf(
					"%s died before %s (step %d): files differ: %d and %d", name, died, failAt,
					len(got), len(want),
				)
			}
		}
	}
}

// outputOf returns the files of a directory without the positions, which may be behind the
// files.
func outputOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := contents(t, dir)
	maps.DeleteFunc(
		files,
		func(name, _ string) bool {
			return name == partsPositionName ||
				strings.HasSuffix(name, positionSuffix)
		},
	)
	return files
}

// tearEnd damages the bytes after the durable end of a file.
func tearEnd(t *testing.T, path string) {
	t.Helper()
	p, err := readState(t.Context(), FileStore(path+positionSuffix), "log")
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	data, err2 := os.ReadFile(path)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if int64(len(data)) > p.Bytes {
		data = append(data[:p.Bytes:p.Bytes], "\x00\x00{torn"...)
	}
	testfile.Write(t, path, data)
}

// smallDisk takes so many bytes and is full then.
type smallDisk struct {
	w    io.Writer
	room *int
}

func (s smallDisk) Write(b []byte) (int, error) {
	if len(b) > *s.room {
		n, _ := s.w.Write(b[:*s.room])
		*s.room = 0
		return n, syscall.ENOSPC
	}
	*s.room -= len(b)
	return s.w.Write(b)
}

// A disk that is full again and again leaves the files that an empty one has.
func TestFullDiskUnderFilesLosesNothing(t *testing.T) {
	for name, output := range outputs(9) {
		log := recordedLog(t, 7, 9)
		undisturbed, dir := t.TempDir(), t.TempDir()
		if err := fold(log, output(undisturbed), disk{}); err != nil {
			t.Fatal(err)
		}
		full := 0
		for room := 100; ; room += 211 {
			left := room
			err := fold(
				log,
				output(dir),
				disk{write: func(w io.Writer) io.Writer { return smallDisk{w, &left} }},
			)
			if err == nil {
				break
			}
			if full++; !errors.Is(err, syscall.ENOSPC) || full > 1000 {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got, want := outputOf(t, dir), outputOf(t, undisturbed); !maps.Equal(got, want) ||
			full < 2 {
			t.Errorf("%s: files differ after the disk was full %d times", name, full)
		}
	}
}

// The lines of a file are the records as the encoder of one-shot commands writes them.
func TestLinesFileHasTheLinesOfOtherCommands(t *testing.T) {
	log := recordedLog(t, 5, 9)
	dir := t.TempDir()
	if err := fold(log, outputs(9)["lines"](dir), disk{}); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	lines := json.NewEncoder(&want)
	lines.SetEscapeHTML(false)
	for _, e := range log {
		estimates, err := e.Estimates()
		if err != nil {
			t.Fatal(err)
		}
		for i := range estimates {
			if err := lines.Encode(&estimates[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := contents(t, dir)["lines"]; got != want.String() || !strings.Contains(got, "<small>") {
		t.Errorf("got\n%s\nwant\n%s", got, want.String())
	}
}

// A file that log rotation has moved away or emptied must begin again. A file that has
// become shorter must be refused.
func TestRotatedLinesFileGoesOn(t *testing.T) {
	log, dir := recordedLog(t, 6, 12), t.TempDir()
	path := filepath.Join(dir, "lines")
	open := outputs(9)["lines"](dir)
	if err := fold(log[:6], open, disk{}); err != nil {
		t.Fatal(err)
	}
	first := contents(t, dir)["lines"]
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := fold(log, open, disk{}); err != nil {
		t.Fatal(err)
	}
	whole := t.TempDir()
	if err := fold(log, outputs(9)["lines"](whole), disk{}); err != nil {
		t.Fatal(err)
	}
	if got, want := first+contents(t, dir)["lines"], contents(t, whole)["lines"]; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := os.Truncate(path, 5); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(disk{}); !errors.Is(err, ErrNotOurs) {
		t.Errorf("a file that was cut: %v", err)
	}
}

// A file that is moved away, emptied or removed during a run must begin again at the next
// Sync. No record is in two files, and later records are in the file of that name.
func TestLinesFileIsRotatedWhileItIsWritten(t *testing.T) {
	log := recordedLog(t, 8, 30)
	whole := t.TempDir()
	lines := func(part []*Stored) string {
		dir := filepath.Join(whole, fmt.Sprint(len(part)))
		if err := errors.Join(os.Mkdir(dir, 0o755), fold(part, outputs(9)["lines"](dir),
			disk{})); err != nil {
			t.Fatal(err)
		}
		return contents(t, dir)["lines"]
	}
	all := lines(log)
	for name, test := range map[string]struct {
		rotate func(path string) error
		lost   int // emissions that are in no file that is left
	}{
		"moved":   {func(path string) error { return os.Rename(path, path+".1") }, 0},
		"emptied": {func(path string) error { return os.Truncate(path, 0) }, 10},
		"removed": {os.Remove, 20},
	} {
		dir := t.TempDir()
		path, open := filepath.Join(dir, "lines"), outputs(9)["lines"](dir)
		follow := func(f Follower, part []*Stored) error {
			for _, e := range part {
				one := *e
				if err := f.Take(t.Context(), &one); err != nil {
					return err
				}
			}
			_, err := f.Sync(t.Context(), part[len(part)-1].Cursor)
			return err
		}
		f, _, err := open(disk{})
		if err = errors.Join(err, follow(f, log[:10]), test.rotate(path)); err != nil {
			t.Fatal(name, err)
		}
		if err := follow(f, log[10:20]); err == nil != (name == "emptied") {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(f.Close(), fold(log, open, disk{})); err != nil {
			t.Fatal(name, err)
		}
		got, want := contents(t, dir)["lines.1"]+contents(t, dir)["lines"], all
		if test.lost > 0 {
			want = strings.TrimPrefix(all, lines(log[:test.lost]))
		}
		if got != want {
			t.Errorf("%s: got\n%.900s\nwant\n%.900s", name, got, want)
		}
	}
}

// A file that was moved away holds each record after that once, although the process dies before
// it has made any of them durable: the file may then be shorter or longer than the old one was.
func TestRotatedLinesFileGoesOnAfterACrash(t *testing.T) {
	log := recordedLog(t, 6, 24)
	whole := t.TempDir()
	if err := fold(log, outputs(9)["lines"](whole), disk{}); err != nil {
		t.Fatal(err)
	}
	for _, rotated := range []int{3, 21} {
		dir := t.TempDir()
		path, open := filepath.Join(dir, "lines"), outputs(9)["lines"](dir)
		if err := fold(log[:rotated], open, disk{}); err != nil {
			t.Fatal(err)
		}
		first := contents(t, dir)["lines"]
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		f, after, err := open(disk{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range log[:23] {
			if one := *e; e.Cursor.Sequence > after.Sequence && err == nil {
				err = f.Take(t.Context(), &one)
			}
		}
		if err := errors.Join(err, f.Close()); err != nil { // and no Sync
			t.Fatal(err)
		}
		if err := fold(log, open, disk{}); err != nil {
			t.Fatalf("moved away after %d emissions: %v", rotated, err)
		}
		if got, want := first+contents(t, dir)["lines"], contents(t, whole)["lines"]; got != want {
			t.Errorf("moved away after %d emissions: got\n%s\nwant\n%s", rotated, got, want)
		}
	}
}

// Files of another log, and files of nobody knows which, are left alone.
func TestFilesOfAnotherLogAreRefused(t *testing.T) {
	log := recordedLog(t, 6, 12)
	for name, output := range outputs(2) {
		dir := t.TempDir()
		if err := fold(log, output(dir), disk{}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "lines"+positionSuffix)
		if name != "lines" {
			path = filepath.Join(dir, partsPositionName)
		}
		before := contents(t, dir)
		for _, change := range []func() error{
			func() error {
				return writeState(t.Context(), FileStore(path),
					progress{Log: "another"})
			},
			func() error { return os.WriteFile(path, []byte("rubbish"), 0o600) },
			func() error { return os.Remove(path) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := output(dir)(disk{}); !errors.Is(err, ErrNotOurs) {
				t.Errorf("%s: %v", name, err)
			}
		}
		after := contents(t, dir)
		delete(before, filepath.Base(path))
		delete(after, filepath.Base(path))
		if !maps.Equal(before, after) {
			t.Errorf("%s: files were changed", name)
		}
	}
	if _, _, err := OpenLinesFile(t.TempDir(), "log"); err == nil {
		t.Error("a folder was opened as a file")
	}
}

// An emptied file with an unreadable position must be refused. The records in the file that was
// moved away would otherwise be written again. A file that belongs to another log may start again.
func TestAnEmptyFileWithADamagedPositionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	for position, ours := range map[string]bool{
		"rubbish":                            false,
		`{"log": "log", "bytes": "rubbish"}`: false, `{}`: false, `{"log": "another"}`: true,
		`{"log": "log", "bytes": 5}`: true,
	} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600),
			os.WriteFile(path+positionSuffix, []byte(position), 0o600)); err != nil {
			t.Fatal(err)
		}
		f, _, err := OpenLinesFile(path, "log")
		if errors.Is(err, ErrNotOurs) == ours || ours != (err == nil) {
			t.Errorf("%s: %v", position, err)
		}
		if err == nil {
			_ = f.Close()
		}
	}
}

// Parts abut where nothing was missed, and where the stream had discarded emissions
// before they were read, no part claims to hold them, after a restart neither.
func TestPartsShowDiscardedRecords(t *testing.T) {
	log, dir := recordedLog(t, 8, 40), t.TempDir()
	log[20].Missed = true
	open := outputs(5)["parquet"](dir)
	for _, end := range []int{10, 21, 30, 40} {
		if err := fold(log[:end], open, disk{}); err != nil {
			t.Fatal(err)
		}
	}
	var until uint64
	gaps := 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		first, last, ok := parsePart(entry.Name())
		if !ok {
			continue
		}
		if first != until+1 {
			if gaps++; first != log[20].Position {
				t.Errorf("%s follows %d", entry.Name(), until)
			}
		}
		until = last
	}
	if gaps != 1 {
		t.Errorf("%d gaps", gaps)
	}
}

// A run that passes a file on may write until it has closed it; no other run opens it
// before.
func TestLinesHaveOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	first, _, err := OpenLinesFile(path, "log")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenLinesFile(path, "log"); !errors.Is(err, filelock.ErrHeld) ||
		errors.Is(err, ErrNotOurs) {
		t.Errorf("a second writer: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, _, err := OpenLinesFile(path, "log")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}
