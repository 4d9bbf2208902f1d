package sinks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// CatchUp waits until the follower has taken the message with a sequence, and those before it.
func (r *Runner) CatchUp(ctx context.Context, sequence uint64) error {
	for r.Taken().Sequence < sequence {
		if err := request.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// shaky is a follower in memory that fails at random, and then forgets everything that it
// had not made durable.
type shaky struct {
	mu      sync.Mutex
	random  *rand.Rand
	durable []uint64
	cursor  Cursor
	taken   []uint64
	opens   int
	foreign bool
}

func (s *shaky) open(context.Context) (Follower, Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.foreign {
		return nil, Cursor{}, ErrNotOurs
	}
	s.opens++
	s.taken = nil
	return s, s.cursor, nil
}

func (s *shaky) Take(_ context.Context, e *Stored) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random.IntN(8) == 0 {
		return errors.New("disk full")
	}
	s.taken = append(s.taken, e.Position)
	return nil
}

func (s *shaky) Sync(_ context.Context, c Cursor) (Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random.IntN(3) == 0 {
		return s.cursor, errors.New("disk full")
	}
	if s.random.IntN(3) > 0 {
		s.durable, s.taken, s.cursor = append(s.durable, s.taken...), nil, c
	}
	return s.cursor, nil
}

func (s *shaky) Close() error { return nil }

// A follower that fails again and again has everything once when it catches up, and
// says meanwhile why it does not.
func TestFollowerThatFailsCatchesUp(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	var want []uint64
	s := &shaky{random: rand.New(rand.NewPCG(3, 4))}
	r := NewRunner(FollowConfig{
		Name: "shaky", JS: l.js, Reader: ReaderConfig{Names: DefaultNames(), Log: "log"},
		Open: s.open,
	})
	for p := range uint64(30) {
		l.publish(w, emissionAt(p+1, 2))
		want = append(want, p+1)
	}
	complained := false
	for done := false; !done; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		_ = r.CatchUp(ctx, w.Sequence())
		if state := r.State(); state.Condition == request.Retrying &&
			strings.Contains(state.Reason, "disk full") {
			complained = true
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		done = r.After().Position == 30
	}
	if diff := cmp.Diff(want, s.durable); diff != "" || s.opens < 3 || !complained {
		t.Errorf("opened %d times, complained %v; -want +got:\n%s", s.opens, complained, diff)
	}
	if name, taken := Slowest([]*Runner{r, NewRunner(FollowConfig{Name: "new"})}); name != "new" ||
		taken != 0 {
		t.Errorf("the slowest is %s at %d", name, taken)
	}
	s.foreign = true
	if err := r.Run(t.Context()); !errors.Is(err, ErrNotOurs) ||
		!strings.Contains(err.Error(), "shaky") {
		t.Errorf("an output that is not ours: %v", err)
	}
}

// half is a follower that counts an emission and is then ended before it has stored it.
type half struct {
	end           context.CancelFunc
	counted       int
	saved, stored int
}

func (h *half) Take(ctx context.Context, _ *Stored) error {
	if h.counted++; h.counted == 3 {
		h.end()
		<-ctx.Done() // as an append to a broker that is away
		return ctx.Err()
	}
	h.stored++
	return nil
}

func (h *half) Sync(_ context.Context, c Cursor) (Cursor, error) {
	h.saved = h.counted
	return c, nil
}

func (h *half) Close() error { return nil }

// A follower that is ended in the middle of an emission must not save its state: after a
// restart it would take the emission for a stored one.
func TestHalfAnEmissionIsNotSaved(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	for p := range uint64(5) {
		l.publish(w, emissionAt(p+1, 2))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := &half{end: cancel}
	r := NewRunner(FollowConfig{
		Name: "half", JS: l.js, Reader: ReaderConfig{Names: DefaultNames(), Log: "log"},
		Open: func(context.Context) (Follower, Cursor, error) { return h, Cursor{}, nil },
	})
	if err := r.Run(ctx); err != nil || h.counted != 3 || h.saved > h.stored {
		t.Errorf(
			"%v; counted %d, stored %d, saved as if %d were", err, h.counted, h.stored, h.saved,
		)
	}
}

// The parts of shards at a position must become one emission, in the order of communities
// and whatever the order in which they were published. From every cursor the rest must
// follow, once.
func TestShardsAreMergedByTheLeastWatermark(t *testing.T) {
	const shards = 3
	var want []string
	for seed := range uint64(4) {
		l := startLogOut(t)
		random := rand.New(rand.NewPCG(seed, 9))
		var writers [shards]*Writer
		var at [shards]uint64
		for k := range writers {
			c := run("w")
			c.Shard = k
			writers[k] = l.writer(c)
		}
		for at[0]+at[1]+at[2] < 30 {
			k := random.IntN(shards)
			if at[k] < 10 {
				at[k]++
				e := emissionAt(at[k], 2)
				for i := range e.Estimates {
					e.Estimates[i].Community = fmt.Sprintf("c%d%d", i, k)
				}
				l.publish(writers[k], e)
			}
		}
		config := ReaderConfig{Names: DefaultNames(), Shards: shards, Log: "log"}
		all := l.stored(config, 10)
		var got []string
		for _, e := range all {
			estimates, err := e.Estimates()
			if err != nil {
				t.Fatal(err)
			}
			for i, one := range estimates {
				got = append(got, fmt.Sprintf("%d%s", e.Position, one.Community))
				if !strings.Contains(string(e.Records[i]), one.Community) {
					t.Errorf("record %d is not that of %s", i, one.Community)
				}
			}
		}
		if len(got) != 2*30 ||
			!slices.Equal(got[:6], []string{"1c00", "1c01", "1c02", "1c10", "1c11", "1c12"}) {
			t.Fatalf("%d records, the first are %v", len(got), got[:6])
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: -want +got:\n%s", seed, diff)
		}
		for i, e := range all {
			config.After = e.Cursor
			for j, rest := range l.stored(config, 9-i) {
				if again := all[i+1+j]; rest.Position != again.Position ||
					len(rest.Records) != len(again.Records) ||
					rest.Missed {
					t.Fatalf(
						"seed %d: from %d: emission %d is %d with %d records", seed, i, j,
						rest.Position, len(rest.Records),
					)
				}
			}
		}
		l.stop()
	}
}

// While one shard is silent, a reader must hold only a few records of the other shards. No record
// may be lost: the reader reads the others again later. Records that were discarded meanwhile must
// be reported as missed.
func TestFewRecordsAreKeptWhileAShardIsSilent(t *testing.T) {
	l := startLogOut(t)
	defer l.stop()
	var writers [2]*Writer
	for k := range writers {
		c := run("w")
		c.Shard, c.Shards = k, 2
		writers[k] = l.writer(c)
	}
	r := newLogReader(l.js, ReaderConfig{Names: DefaultNames(), Shards: 2, Log: "log"})
	defer r.Close()
	r.most = 20
	const positions = 30
	for at := range uint64(positions) {
		l.publish(writers[1], emissionAt(at+1, 7))
	}
	silent, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := r.Next(silent); err == nil {
		t.Fatal("an emission is returned before shard 0 is complete")
	}
	kept := 0
	for _, p := range r.shards[1].parts {
		kept += len(p.records)
	}
	if len(r.shards[1].parts) != positions || kept > 20 || kept == 0 {
		t.Errorf("%d records of %d parts are kept", kept, len(r.shards[1].parts))
	}
	for at := range uint64(positions) {
		l.publish(writers[0], emissionAt(at+1, 1))
	}
	stream, err := l.js.Stream(t.Context(), DefaultNames().Estimates)
	if err != nil {
		t.Fatal(err)
	}
	for at := uint64(0); at < positions; at++ {
		discarded := at == positions-2
		// two records of shard 1 are discarded, so the emission is missed; an emission that the
		// client has not received yet would be missed too
		if discarded {
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSequence(8*at+4)); err != nil {
				t.Fatal(err)
			}
			r.reload.Stop() // the client has received them already
			at++
		}
		e, err := r.Next(t.Context())
		if err != nil || e.Position != at+1 || len(e.Records) != 8 || e.Missed != discarded {
			t.Fatalf("position %d: %d records, %v", at+1, len(e.Records), err)
		}
		if _, err := e.Estimates(); err != nil {
			t.Fatal(err)
		}
		if info, err := stream.Info(t.Context()); err != nil || info.State.Consumers > 3 {
			t.Fatalf(
				"%d consumers, %v",
				info.State.Consumers,
				err,
			) // one reads records again, and the former main one may be there
		}
	}
}

// If the stream was deleted and created again, records that must be read again are missed. The
// reader must not wait for them.
func TestRecordsOfAStreamThatIsGoneAreMissed(t *testing.T) {
	l := startLogOut(t)
	c := run("w")
	c.Shard, c.Shards = 1, 2
	r := newLogReader(l.js, ReaderConfig{Names: DefaultNames(), Shards: 2, Log: "log"})
	defer r.Close()
	r.most = 1
	l.publish(l.writer(c), emissionAt(1, 7), emissionAt(2, 7))
	silent, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := r.Next(silent); err == nil || len(r.shards[1].parts) != 2 {
		t.Fatalf("%d parts, %v", len(r.shards[1].parts), err)
	}
	if err := l.js.DeleteStream(t.Context(), DefaultNames().Estimates); err != nil {
		t.Fatal(err)
	}
	l.publish(l.writer(c), emissionAt(1, 1))
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, p := range r.shards[1].parts {
		if err := r.load(soon, p); err != nil || len(p.records) > 0 {
			t.Errorf("position %d: %d records, %v", p.Position, len(p.records), err)
		}
	}
}

// stored reads so many emissions.
func (l *logOut) stored(c ReaderConfig, n int) (all []*Stored) {
	l.t.Helper()
	r := newLogReader(l.js, c)
	defer r.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	for range n {
		e, err := r.Next(ctx)
		if err != nil {
			l.t.Fatalf("after %d emissions: %v", len(all), err)
		}
		all = append(all, e)
	}
	return all
}

// Syncs must take a small part of the time. But after one slow sync, a worker with a full
// output log must not wait many times as long for the next sync.
func TestAStallIsNotWaitedForManyTimes(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Second, 100 * time.Millisecond: 5 * time.Second,
		10 * time.Second: time.Minute,
	} {
		if got := syncPause(took); got != want {
			t.Errorf("after %v the pause is %v, want %v", took, got, want)
		}
	}
}
