package sinks

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gqlstream/quant"
)

// badDisk is a disk that is full for a while now and then, in the middle of a write
// as well, and fails now and then. Queue and test use it.
type badDisk struct {
	mu   sync.Mutex
	rand *rand.Rand
	room int  // bytes that it takes before it is full
	good bool // from now on
	full int  // how often it was
}

func (d *badDisk) flush(*os.File) error { return d.take(0) }

func (d *badDisk) fault(string) error { return d.take(0) }

// take uses up some of the room; without any it is full for some attempts.
func (d *badDisk) take(bytes int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room -= bytes
	switch {
	case d.good:
		return nil
	case d.room < 0 && d.rand.IntN(4) > 0:
		d.full++
		return syscall.ENOSPC
	case d.room < 0:
		d.room = d.rand.IntN(8000)
	}
	if d.rand.IntN(30) == 0 {
		return syscall.EIO
	}
	return nil
}

func (d *badDisk) set(good bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.good = good
}

// writer takes a part of a write that it fails.
func (d *badDisk) writer(w io.Writer) io.Writer { return badWriter{d, w} }

type badWriter struct {
	disk *badDisk
	file io.Writer
}

func (w badWriter) Write(p []byte) (int, error) {
	if err := w.disk.take(len(p)); err != nil {
		w.disk.mu.Lock()
		part := w.disk.rand.IntN(len(p) + 1)
		w.disk.mu.Unlock()
		n, _ := w.file.Write(p[:part])
		return n, err
	}
	return w.file.Write(p)
}

// steps returns what the steps of a world have for a queue, and what they would have
// done with parts without one. Some checkpoints are asked for where nothing is
// published: between two emissions, or at the position of the next.
func (w partsWorld) steps(seed uint64) (steps []Emission) {
	random := rand.New(rand.NewPCG(seed, 43))
	last := uint64(0)
	for _, list := range w.emissions {
		p := list[0].Position
		if random.IntN(4) == 0 {
			at := p
			if random.IntN(2) == 0 {
				at = last + 1 + random.Uint64N(p-last)
			}
			steps = append(steps, Emission{Position: at, Cut: true})
		}
		steps = append(steps, Emission{Position: p, Estimates: list, Cut: w.cuts[p]})
		last = p
	}
	return append(steps, Emission{Position: last + 1, Cut: true})
}

// through is up to where nothing is missing after a step.
func (e Emission) through() uint64 {
	if len(e.Estimates) == 0 {
		return e.Position - 1
	}
	return e.Position
}

// writeParts writes the steps without a queue and on a disk that works.
func writeParts(t *testing.T, c PartsConfig, steps []Emission) {
	t.Helper()
	s, err := OpenParts(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range steps {
		if err := s.Write(t.Context(), e.Estimates); err != nil {
			t.Fatal(err)
		}
		if e.Cut {
			if err := s.Cut(e.through()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// However often the disk of parts is full or fails, and wherever runs end meanwhile,
// the loop must go on, and in the end the files must be, byte by byte, those of a run
// that nothing disturbed.
func TestPartsBehindAQueueOutliveTheirDisk(t *testing.T) {
	full, kills := 0, 0
	for _, c := range []struct {
		format    string
		seeds     uint64
		emissions int
	}{{"arrow", 8, 60}, {"parquet", 1, 12}} {
		for seed := range c.seeds {
			w := newPartsWorld(seed, c.emissions)
			undisturbed := t.TempDir()
			writeParts(t, partsConfig(undisturbed, c.format), w.steps(seed))
			want := withoutMarks(contents(t, undisturbed))
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				disk := &badDisk{rand: rand.New(rand.NewPCG(seed, 44))}
				kills += disturbParts(t, seed, w, partsConfig(dir, c.format), disk)
				got := withoutMarks(contents(t, dir))
				if !maps.Equal(got, want) || len(want) < 3 {
					t.Fatalf("seed %d: files %v, want %v\n%s\nwant\n%s", seed, slices.Sorted(maps.Keys(got)),
						slices.Sorted(maps.Keys(want)), got[tailName], want[tailName])
				}
				full += disk.full
			})
		}
	}
	t.Logf("%d attempts on a full disk, %d kills", full, kills)
}

// disturbParts runs over the steps with a disk that fails, again and again from a
// checkpoint, until all is delivered; it returns how many runs ended before.
func disturbParts(t *testing.T, seed uint64, w partsWorld, c PartsConfig, disk *badDisk) (kills int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 45))
	spool := t.TempDir()
	c.fault, c.flush, c.disk = disk.fault, disk.flush, disk.writer
	open := func(from uint64) (Sink, error) {
		c.From = from
		return OpenParts(c)
	}
	steps := w.steps(seed)
	reached, through := 0, uint64(0) // by the newest checkpoint: how many steps, and to where
	for ; ; kills++ {
		disk.set(true) // TestPartsBeginOnAFullDisk
		q := startedQueue(t, QueueConfig{Dir: spool, Open: open}, through)
		disk.set(false)
		if q.Last() < through {
			t.Fatalf("seed %d: the spool ends at %d, a checkpoint is at %d", seed, q.Last(), through)
		}
		end := min(len(steps), reached+random.IntN(25))
		for i := reached; i < end; i++ {
			e := steps[i]
			if err := q.Put(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if random.IntN(4) == 0 {
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			}
			if w.saves[e.Position] || e.Cut {
				if err := q.Sync(e.through()); err != nil {
					t.Fatal(err)
				}
				reached, through = i+1, e.through()
			}
		}
		if end == len(steps) {
			disk.set(true)
			if err := errors.Join(q.Flush(t.Context()), q.Close()); err != nil {
				t.Fatal(err)
			}
			return kills
		}
		_ = q.Close()
		if reached > 0 {
			tear(t, random, spool, steps[reached-1].Position)
		}
		tearDelivered(t, spool, c.Dir, random)
	}
}

// startedQueue is a queue of a run that goes on from a checkpoint.
func startedQueue(t *testing.T, c QueueConfig, through uint64) *Queue {
	t.Helper()
	c.Name, c.Log, c.BytesMax = "test", "log", QueueBytesMin
	q, err := OpenQueue(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(through); err != nil {
		t.Fatal(err)
	}
	return q
}

// tearDelivered loses some of a tail that the queue has not settled.
func tearDelivered(t *testing.T, spool, dir string, random *rand.Rand) {
	t.Helper()
	s, err := openSpool(spool, "log", QueueBytesMin)
	if err != nil {
		t.Fatal(err)
	}
	done := s.done.through()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if random.IntN(2) == 0 {
		tearTail(t, dir, done, random)
	}
}

// Parts on a disk that is full when the run begins must not keep it from beginning:
// their queue takes what comes, and they have it when there is room. A directory that
// is wrong must.
func TestPartsBeginOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPartsWorld(3, 10)
		c, full := partsConfig(t.TempDir(), "arrow"), true
		var mu sync.Mutex
		c.fault = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if full {
				return syscall.ENOSPC
			}
			return nil
		}
		q := startedQueue(t, QueueConfig{Dir: t.TempDir(), Open: func(from uint64) (Sink, error) {
			c.From = from
			return OpenParts(c)
		}}, 0)
		for _, e := range w.steps(3) {
			if err := q.Put(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := q.State(); s.Condition != Retrying || !strings.Contains(s.Reason, "no space left") || s.Emissions == 0 {
			t.Errorf("on a full disk the state is %+v", s)
		}
		mu.Lock()
		full = false
		mu.Unlock()
		if err := errors.Join(q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
		undisturbed := partsConfig(t.TempDir(), "arrow")
		writeParts(t, undisturbed, w.steps(3))
		if got, want := withoutMarks(contents(t, c.Dir)), withoutMarks(contents(t, undisturbed.Dir)); !maps.Equal(got, want) {
			t.Errorf("files %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		q, err := OpenQueue(QueueConfig{Name: "test", Log: "log", Dir: t.TempDir(), Open: func(uint64) (Sink, error) {
			return OpenParts(PartsConfig{Dir: c.Dir, Format: "arrow", Log: "other"})
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Start(0); err == nil || !strings.Contains(err.Error(), "another log") {
			t.Errorf("parts of another log: %v", err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What went past while a run had no parts must show as a gap between their names,
// also when some was left in their queue before; a pause without estimates must not.
func TestPartsBehindAQueueShowWhatTheyMissed(t *testing.T) {
	c := partsConfig(t.TempDir(), "arrow")
	queue := QueueConfig{Dir: t.TempDir(), Open: func(from uint64) (Sink, error) {
		c.From = from
		return OpenParts(c)
	}}
	run := func(from uint64, saved uint64, steps ...Emission) {
		t.Helper()
		q := startedQueue(t, queue, from)
		for _, e := range steps {
			if err := q.Put(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(q.Sync(saved), q.Flush(t.Context()), q.Close()); err != nil {
			t.Fatal(err)
		}
	}
	at := func(p uint64) Emission {
		return Emission{Position: p, Estimates: []quant.Estimate{estimate("a", "auto", p)}}
	}
	run(0, 12, at(5), at(10))
	run(12, 22, at(20)) // a checkpoint at 12, after which nothing was published
	run(40, 52, at(50)) // the run up to 40 had no parts
	run(52, 60, Emission{Position: 61, Cut: true})
	want := []string{tailName, partName(1, 20, "arrow"), partName(41, 50, "arrow")}
	if names := slices.Sorted(maps.Keys(contents(t, c.Dir))); !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		t.Errorf("files %v, want %v", names, want)
	}
}
