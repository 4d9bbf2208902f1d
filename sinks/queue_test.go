package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gqlstream/quant"
)

// keeper is a sink that can be away, and that keeps for good only what it was
// asked to Sync, as a file does.
type keeper struct {
	mu      sync.Mutex
	fail    func() error // of Write, Sync and Open; nil: works
	kept    []uint64     // positions, for good
	loose   []uint64     // lost when it is opened anew
	closed  int
	writing time.Duration // a Write takes
}

func (k *keeper) open(from uint64) (Sink, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		if err := k.fail(); err != nil {
			return nil, err
		}
	}
	k.loose = nil
	for len(k.kept) > 0 && k.kept[len(k.kept)-1] > from { // they come again
		k.kept = k.kept[:len(k.kept)-1]
	}
	return k, nil
}

func (k *keeper) Write(ctx context.Context, estimates []quant.Estimate) error {
	if k.writing > 0 {
		if err := sleep(ctx, k.writing); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		if err := k.fail(); err != nil {
			return err
		}
	}
	k.loose = append(k.loose, estimates[0].Position)
	return nil
}

func (k *keeper) Sync() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		if err := k.fail(); err != nil {
			return err
		}
	}
	k.kept, k.loose = append(k.kept, k.loose...), nil
	return nil
}

func (k *keeper) Close() error { k.closed++; return nil }

func (k *keeper) set(fail func() error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = fail
}

func emission(position uint64) []quant.Estimate {
	return []quant.Estimate{estimate("a", "auto", position), estimate("b", "auto", position)}
}

func openQueue(t *testing.T, c QueueConfig) *Queue {
	t.Helper()
	c.Name, c.Log = "test", "log"
	q, err := OpenQueue(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(0); err != nil {
		t.Fatal(err)
	}
	return q
}

func upTo(n uint64) (all []uint64) {
	for p := range n {
		all = append(all, p+1)
	}
	return all
}

var errAway = errors.New("the sink is away")

// A sink that is away must not hold the loop up until its queue is full; then the
// loop waits, says so, and goes on when the sink is back. Nothing is lost, and what
// waits is on the disk and not in memory.
func TestQueueOutlivesASinkThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{}
		q := openQueue(t, QueueConfig{Dir: t.TempDir(), BytesMax: QueueBytesMin, Open: k.open})
		k.set(func() error { return errAway })
		before := heapNow()
		const n = 6000
		done := make(chan error)
		go func() {
			for p := range uint64(n) {
				if err := q.Write(t.Context(), emission(p+1)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		s := q.State()
		if s.Condition != Holding || !strings.Contains(s.Reason, "full") || !strings.Contains(s.Reason, "away") ||
			s.Emissions < 1000 || s.Emissions > n/2 || s.Bytes > s.BytesMax || s.Retries < 100 || time.Since(s.Oldest) < 23*time.Hour {
			t.Errorf("after a day the state is %+v", s)
		}
		if grown := heapNow() - before; grown > 1<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		k.set(nil)
		if err := errors.Join(<-done, q.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
		if s := q.State(); s.Condition != Delivering || s.Emissions != 0 || !s.Oldest.IsZero() {
			t.Errorf("in the end the state is %+v", s)
		}
		if !slices.Equal(k.kept, upTo(n)) {
			t.Errorf("the sink has %d emissions, want %d in order", len(k.kept), n)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A slow sink must not hold the loop up while there is room.
func TestSlowSinkDoesNotHoldTheLoopUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{writing: time.Second}
		q := openQueue(t, QueueConfig{Dir: t.TempDir(), Open: k.open})
		begun := time.Now()
		for p := range uint64(500) {
			if err := q.Write(t.Context(), emission(p+1)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("the loop waited %v", took)
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 500*time.Second || !slices.Equal(k.kept, upTo(500)) {
			t.Errorf("%d emissions after %v", len(k.kept), took)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Whatever fails and wherever a run ends, also in the middle of a record, the sink
// must have every emission once and in order.
func TestQueueIsExactAcrossRestarts(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			rng, k, dir := rand.New(rand.NewPCG(seed, 3)), &keeper{}, t.TempDir()
			const n = 200
			for position, run := uint64(0), 0; position < n; run++ {
				k.set(nil)
				q := openQueue(t, QueueConfig{Dir: dir, BytesMax: QueueBytesMin, Open: k.open})
				if position > q.Last() {
					t.Fatalf("seed %d: the spool ends at %d, a checkpoint is at %d", seed, q.Last(), position)
				}
				k.set(func() error {
					if rng.IntN(6) == 0 {
						return errAway
					}
					return nil
				})
				checkpoint, end := position, min(n, position+rng.Uint64N(60))
				for p := position + 1; p <= end; p++ {
					if err := q.Write(t.Context(), emission(p)); err != nil {
						t.Fatal(err)
					}
					if rng.IntN(8) == 0 {
						time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
					}
					if rng.IntN(20) == 0 {
						if err := q.Sync(); err != nil {
							t.Fatal(err)
						}
						checkpoint = p
					}
				}
				if checkpoint = max(checkpoint, position); end == n {
					k.set(nil)
					if err := q.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
					checkpoint = n
				}
				k.set(func() error { return errAway }) // nothing more becomes durable: a kill
				if err := q.Close(); err != nil {
					t.Fatal(err)
				}
				tear(t, rng, dir, checkpoint)
				position = checkpoint
			}
			k.set(nil)
			if !slices.Equal(k.kept, upTo(n)) {
				t.Fatalf("seed %d: the sink has %d emissions, want %d in order: %v", seed, len(k.kept), n, k.kept)
			}
		})
	}
}

// tear cuts a part off the newest segment that no checkpoint needs.
func tear(t *testing.T, rng *rand.Rand, dir string, checkpoint uint64) {
	t.Helper()
	s, err := openSpool(dir, "log", QueueBytesMin)
	if err != nil {
		t.Fatal(err)
	}
	g := s.segments[len(s.segments)-1]
	needed := int64(0)
	for offset := int64(0); offset < g.size; {
		r, err := g.read(offset)
		if err != nil {
			t.Fatal(err)
		}
		if offset += r.bytes; r.position <= max(checkpoint, s.done) {
			needed = offset
		}
	}
	if cut := g.size - needed; cut > 0 {
		if err := g.file.Truncate(g.size - rng.Int64N(cut+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

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
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := q.State(); s.Condition != Holding || !strings.Contains(s.Reason, "no space left") {
			t.Errorf("on a full disk the state is %+v", s)
		}
		q.mu.Lock()
		room = 1 << 30
		q.mu.Unlock()
		if err := errors.Join(<-done, q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(k.kept, upTo(200)) {
			t.Errorf("the sink has %v", k.kept)
		}
	})
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
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := q.State(); s.Condition != Retrying || !strings.Contains(s.Reason, "no space left") {
			t.Errorf("on a full disk the state is %+v", s)
		}
		q.mu.Lock()
		room = 1 << 30
		q.mu.Unlock()
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
		if err := s.append(p+1, time.Unix(int64(p), 0), []byte(strings.Repeat("x", 50+int(p)))); err != nil {
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
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		for name, g := range names {
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
		again, err := openSpool(copied, "log", 4096)
		if err != nil {
			t.Fatal(err)
		}
		var at cursor
		last := uint64(0)
		for {
			r, ok, err := again.next(&at)
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
		if last != again.last || again.rows != int(last) {
			t.Fatalf("%d records to %d, the spool says %d to %d", last, last, again.rows, again.last)
		}
		if err := again.append(last+1, time.Now(), []byte("more")); err != nil {
			t.Fatal(err)
		}
		if err := again.close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openSpool(dir, "other", 4096); err == nil || !strings.Contains(err.Error(), "another log") {
		t.Errorf("the spool of another log: %v", err)
	}
}
