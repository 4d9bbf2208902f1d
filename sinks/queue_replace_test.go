package sinks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gqlstream/alerts"
)

// Another sink must get what the one before it has not taken, and no more; one that
// cannot be opened must leave everything as it was, whatever the sink does meanwhile.
func TestReplacedSinkGetsTheRest(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			first, second := &keeper{}, &keeper{}
			q := openQueue(t, QueueConfig{Dir: t.TempDir(), Open: first.open})
			put := func(from, to uint64) {
				for p := from; p <= to; p++ {
					if err := q.Write(t.Context(), emission(p)); err != nil {
						t.Fatal(err)
					}
				}
			}
			put(1, 10)
			if err := q.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if away {
				first.set(func() error { return errAway })
			}
			put(11, 20)
			time.Sleep(time.Minute)
			err := q.Replace(t.Context(), func(uint64) (Sink, error) { return OpenLines(LinesConfig{Path: "/nowhere/at/all"}) })
			if !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("a file that cannot be: %v", err)
			}
			time.Sleep(time.Minute)
			want := Delivering
			if away {
				want = Retrying
			}
			if s := q.State(); s.Condition != want {
				t.Errorf("after a sink that cannot be opened the state is %+v", s)
			}
			if err := q.Replace(t.Context(), second.open); err != nil {
				t.Fatal(err)
			}
			put(21, 30)
			if err := errors.Join(q.Flush(t.Context()), q.Close()); err != nil {
				t.Fatal(err)
			}
			if got := slices.Concat(first.kept, second.kept); !slices.Equal(got, upTo(30)) || len(first.kept) != 20 == !away {
				t.Errorf("away %t: the first has %v, the second %v", away, first.kept, second.kept)
			}
		})
	}
}

// A sink that hangs must not hold up the one who wants to replace it.
func TestSinkThatHangsIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &keeper{writing: time.Hour}, &keeper{}
		q := openQueue(t, QueueConfig{Dir: t.TempDir(), Open: first.open})
		if err := q.Write(t.Context(), emission(1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := q.Replace(t.Context(), second.open); err == nil || !strings.Contains(err.Error(), "stays") {
			t.Errorf("a sink that hangs: %v", err)
		}
		if err := errors.Join(q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
		if len(first.kept) != 1 || len(second.kept) != 0 {
			t.Errorf("the first has %v, the second %v", first.kept, second.kept)
		}
	})
}

// A sink that cannot be opened again for a while must be tried until it can.
func TestSinkThatCannotBeOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "there")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		room := int64(0)
		q := openQueue(t, QueueConfig{Dir: t.TempDir(), Open: func(from uint64) (Sink, error) {
			s, err := OpenLines(LinesConfig{Path: filepath.Join(dir, "a"), Log: "log", From: from})
			if err == nil && room == 0 {
				s.buffer.Reset(&fullWriter{s.file, &room})
			}
			return s, err // a nil of a type, with an error
		}})
		if err := os.Rename(dir, dir+"-moved"); err != nil {
			t.Fatal(err)
		}
		if err := q.Write(t.Context(), emission(1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := q.State(); s.Condition != Retrying || !strings.Contains(s.Reason, "no such file") {
			t.Errorf("the state is %+v", s)
		}
		room = 1
		if err := os.Rename(dir+"-moved", dir); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || strings.Count(string(data), "\n") != 2 {
			t.Errorf("the file has %q, %v", data, err)
		}
	})
}

// A file of alerts on a disk that is full for a while must hold each once.
func TestFullDiskUnderTheAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, room := filepath.Join(t.TempDir(), "alerts.ndjson"), int64(1000)
		q := openQueue(t, QueueConfig{Dir: t.TempDir(), Open: func(from uint64) (Sink, error) {
			s, err := OpenLines(LinesConfig{Path: path, Log: "log", From: from})
			if err == nil {
				s.buffer.Reset(&fullWriter{s.file, &room})
			}
			return s, err
		}})
		var want strings.Builder
		for p := range uint64(60) {
			var list []alerts.Transition
			for i := range p % 3 {
				x := alerts.Transition{ID: fmt.Sprint(p, "-", i), Position: p + 1, State: alerts.Firing, Reason: "a < b"}
				list = append(list, x)
				fmt.Fprintf(&want, "%s\n", x.JSON())
			}
			if err := q.Put(t.Context(), Emission{Position: p + 1, Transitions: list, Cut: p%7 == 0}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := q.State(); s.Condition != Retrying || !strings.Contains(s.Reason, syscall.ENOSPC.Error()) {
			t.Errorf("on a full disk the state is %+v", s)
		}
		q.mu.Lock()
		room = 1 << 20
		q.mu.Unlock()
		if err := errors.Join(q.Flush(context.Background()), q.Close()); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != want.String() {
			t.Errorf("the file has\n%s, want\n%s%v", data, want.String(), err)
		}
	})
}

// Files of a spool that are damaged must be named, and only a few of them kept.
func TestFewDamagedSegmentsAreKept(t *testing.T) {
	dir := t.TempDir()
	const missing = 10
	for i := range uint64(missing) {
		q, err := OpenQueue(QueueConfig{Name: "test", Log: "log", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(q.SetAside()); got != int(min(i, 1)) {
			t.Errorf("start %d: %d files are said to be set aside", i, got)
		}
		if err := errors.Join(q.spool.begin(0), q.Close()); err != nil {
			t.Fatal(err)
		}
		beyond := placeAt(100 * (i + 1)).String() // what is before it is gone
		if err := os.WriteFile(filepath.Join(dir, beyond+spoolSuffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+spoolDamagedSuffix))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != spoolDamagedMax || !strings.Contains(left[len(left)-1], placeAt(100*(missing-1)).String()) {
		t.Errorf("%d are kept: %v", len(left), left)
	}
}
