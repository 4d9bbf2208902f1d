package sinks

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
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

func (k *keeper) Sync(uint64) error {
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
			faults := rand.New(rand.NewPCG(seed, 4)) // of the queue's goroutine
			const n = 200
			for position, run := uint64(0), 0; position < n; run++ {
				k.set(nil)
				q := openQueue(t, QueueConfig{Dir: dir, BytesMax: QueueBytesMin, Open: k.open})
				if position > q.Last() {
					t.Fatalf("seed %d: the spool ends at %d, a checkpoint is at %d", seed, q.Last(), position)
				}
				k.set(func() error {
					if faults.IntN(6) == 0 {
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
						if err := q.Sync(p); err != nil {
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
		if offset += r.bytes; r.position <= max(checkpoint, s.done.through()) {
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
