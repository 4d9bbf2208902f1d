package sinks

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gqlstream/quant"
)

// fullDisk is a file on a disk that takes a part of a write and then no more.
type fullDisk struct {
	spoolFile
	room *int64
}

func (f *fullDisk) WriteAt(p []byte, offset int64) (int, error) {
	n := min(int64(len(p)), max(*f.room, 0))
	*f.room -= int64(len(p))
	if n == int64(len(p)) {
		return f.spoolFile.WriteAt(p, offset)
	}
	_, _ = f.spoolFile.WriteAt(p[:n], offset)
	return int(n), syscall.ENOSPC
}

// A full disk under the spool must hold the loop up, with the reason, and lose
// nothing when there is room again.
func TestFullDiskUnderTheSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, dir, room := &keeper{}, t.TempDir(), int64(5000)
		q, err := OpenQueue(QueueConfig{Name: "test", Log: "log", Dir: dir, Open: k.open})
		if err != nil {
			t.Fatal(err)
		}
		q.spool.open = func(name string) (spoolFile, error) {
			f, err := openSpoolFile(name)
			return &fullDisk{f, &room}, err
		}
		if err := q.Start(0); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			for p := range uint64(200) {
				if err := q.Write(t.Context(), emission(p+1)); err != nil {
					done <- err
				}
			}
			done <- nil
		}()
		outlast(t, q, &room, Holding)
		if err := errors.Join(<-done, q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(k.kept, upTo(200)) {
			t.Errorf("the sink has %v", k.kept)
		}
	})
}

// outlast sees what a queue says of a full disk after a minute, and makes room.
func outlast(t *testing.T, q *Queue, room *int64, want string) {
	t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	if s := q.State(); s.Condition != want || !strings.Contains(s.Reason, "no space left") {
		t.Errorf("on a full disk the state is %+v", s)
	}
	q.mu.Lock()
	*room = 1 << 30
	q.mu.Unlock()
}

// A file of estimates whose disk is full for a while must hold every record once,
// also the one of which a part was written.
func TestFullDiskUnderTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "estimates.ndjson")
		room := int64(3000)
		open := func(from uint64) (Sink, error) {
			s, err := OpenLines(LinesConfig{Path: path, Log: "log", From: from})
			if err == nil {
				s.buffer.Reset(&fullWriter{s.file, &room})
			}
			return s, err
		}
		q := openQueue(t, QueueConfig{Dir: filepath.Join(dir, "spool"), Open: open})
		for p := range uint64(100) {
			if err := q.Write(t.Context(), emission(p+1)); err != nil {
				t.Fatal(err)
			}
		}
		outlast(t, q, &room, Retrying)
		time.Sleep(time.Minute)
		if err := errors.Join(q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(data)) {
			var e quant.Estimate
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(e.Position, e.Community))
		}
		var want []string
		for p := range 100 {
			want = append(want, fmt.Sprint(p+1, "a"), fmt.Sprint(p+1, "b"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the file has %d records: %v", len(got), got)
		}
	})
}

type fullWriter struct {
	file *os.File
	room *int64
}

func (w *fullWriter) Write(p []byte) (int, error) {
	n := min(int64(len(p)), max(*w.room, 0))
	*w.room -= int64(len(p))
	if n == int64(len(p)) {
		return w.file.Write(p)
	}
	_, _ = w.file.Write(p[:n])
	return int(n), syscall.ENOSPC
}

// Damage anywhere in a spool must be found; what follows it is left out, so that
// the queue says that it ends before, and comes again from an older checkpoint.
func TestDamagedSpoolEndsBeforeTheDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := openSpool(dir, "log", 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.begin(0); err != nil {
		t.Fatal(err)
	}
	for p := range uint64(40) {
		if err := s.append(spoolRecord{position: p + 1, at: time.Unix(int64(p), 0), payload: []byte(strings.Repeat("x", 50+int(p)))}); err != nil {
			t.Fatal(err)
		}
	}
	names := make(map[string]*segment)
	for _, g := range s.segments {
		names[g.name] = g
	}
	if err := s.close(); err != nil || len(names) < 3 {
		t.Fatalf("%d segments, %v", len(names), err)
	}
	rng := rand.New(rand.NewPCG(1, 4))
	for range 50 {
		readDamaged(t, damaged(t, rng, dir, names))
	}
	if _, err := openSpool(dir, "other", 4096); err == nil || !strings.Contains(err.Error(), "another log") {
		t.Errorf("the spool of another log: %v", err)
	}
}

// damaged returns a copy of a spool in which a bit of half of the segments is wrong.
func damaged(t *testing.T, rng *rand.Rand, dir string, segments map[string]*segment) string {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for name, g := range segments {
		if rng.IntN(2) > 0 || g.size == 0 {
			continue
		}
		file := filepath.Join(copied, filepath.Base(name))
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// readDamaged reads a spool to where it ends, checks every record, and appends another.
func readDamaged(t *testing.T, dir string) {
	t.Helper()
	s, err := openSpool(dir, "log", 4096)
	if err != nil {
		t.Fatal(err)
	}
	var at cursor
	last := uint64(0)
	for {
		r, ok, err := s.next(&at)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if r.position != last+1 || string(r.payload) != strings.Repeat("x", 50+int(last)) {
			t.Fatalf("record %d follows %d, or has changed", r.position, last)
		}
		last = r.position
	}
	if last != s.last.through() || s.rows != int(last) {
		t.Fatalf("%d records to %d, the spool says %d to %d", last, last, s.rows, s.last)
	}
	if err := s.append(spoolRecord{position: last + 1, at: time.Now(), payload: []byte("more")}); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// Where no new segment can be made, as on a disk without inodes, the queue must go
// on to deliver, and count what waits as before when one can be made again.
func TestSegmentThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, broken := &keeper{}, false
		q := openQueue(t, QueueConfig{Dir: t.TempDir(), Open: k.open})
		q.mu.Lock()
		q.spool.open = func(name string) (spoolFile, error) {
			if broken {
				return nil, syscall.ENOSPC
			}
			return openSpoolFile(name)
		}
		broken = true
		q.mu.Unlock()
		for p := range uint64(10) {
			if err := q.Write(t.Context(), emission(p+1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		q.mu.Lock()
		broken = false
		q.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := q.State(); s.Emissions != 0 || s.Retries == 0 || s.Condition != Delivering {
			t.Errorf("when all is delivered the state is %+v", s)
		}
		if err := errors.Join(q.Write(t.Context(), emission(11)), q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(k.kept, upTo(11)) {
			t.Errorf("the sink has %v", k.kept)
		}
	})
}
