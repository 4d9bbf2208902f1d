package pipeline

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/pipeline/group"
	"gqlstream/sinks/web"
)

// A worker that is drained must end when another one estimates its shards, although that one may
// always be later than it. It must not end for one that is drained itself.
func TestADrainDoesNotWaitForASlowerWorker(t *testing.T) {
	js := startServer(t)
	join := func(name string) *group.Member {
		m, err := group.Join(
			t.Context(),
			group.Config{
				JS:     js,
				Bucket: group.Bucket("", "test"),
				Log:    slog.New(slog.DiscardHandler),
				Self:   group.Presence{Worker: name, Since: time.Now()},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Leave() })
		return m
	}
	drained, other := join("drained"), join("other")
	p := foldOf(&membership{member: drained, copies: 1}, 0, 1)
	drained.Say(func(own *group.Presence) { own.Drains = true })
	for _, step := range []struct {
		shards []int // that the other one estimates
		drains bool  // the other one, too
		want   []int // that are kept
	}{
		{[]int{0, 1}, true, []int{0, 1}},
		{[]int{}, false, []int{0, 1}},
		{[]int{1}, false, []int{0}},
		{[]int{0, 1}, false, []int{}},
	} {
		other.Say(func(own *group.Presence) { own.Shards, own.Drains = step.shards, step.drains })
		// until the drained one has heard of it
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			served := []int{}
			for shard, place := range drained.Places(2, 1) {
				if place.Served {
					served = append(served, shard)
				}
			}
			if step.drains && len(served) == 0 ||
				!step.drains && slices.Equal(served, step.shards) {
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatal("waited a minute for the drained worker to hear of the other one")
			}
		}
		_ = p.regroup(nil) // gives up
		if done := p.regroup(nil); done != (len(step.want) == 0) ||
			!slices.Equal(p.folds.main.Load().outlets.shardsHere(), step.want) {
			t.Errorf(
				"while the other one estimates %v (drained %t), %v are kept, want %v; done %t",
				step.shards, step.drains, p.folds.main.Load().outlets.shardsHere(), step.want, done,
			)
		}
	}
}

// When a worker is dead, another worker must prepare a fold with its shards. If the dead worker
// returns, the prepared fold is given up. Once the prepared fold has caught up, it replaces the
// main fold.
func TestADeathIsPreparedForAndGivenUp(t *testing.T) {
	js := startServer(t)
	bucket := group.Bucket("", "test")
	join := func(name string) *group.Member {
		m, err := group.Join(
			t.Context(),
			group.Config{
				JS:     js,
				Bucket: bucket,
				Log:    slog.New(slog.DiscardHandler),
				Self:   group.Presence{Worker: name, Since: time.Now()},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := &membership{member: join("one"), copies: 1}
	defer func() { _ = m.member.Leave() }()
	other := join("other")
	shardsOf := -1
	wait := func(what string, is func() bool) {
		t.Helper()
		for begun := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatal("waited a minute for ", what)
			}
		}
	}
	wait("one to hear of other", func() bool {
		shardsOf = slices.IndexFunc(
			m.member.Places(2, 1),
			func(place group.Duty) bool { return place.Order == 0 },
		)
		return shardsOf >= 0 && m.member.Places(2, 1)[1-shardsOf].Order < 0
	})
	p := foldOf(m, shardsOf)
	dead := false
	prepare := func() {
		begin := func(f *fold) { f.stop = sync.OnceFunc(func() { close(f.done) }) }
		places := m.member.Places(2, 1)
		dead = places[1-shardsOf].Order == 0
		p.prepare(begin, places)
	}
	renew := entryOf(t, js, bucket, "other")
	if err := other.Leave(); err != nil {
		t.Fatal(err)
	}
	renew()
	wait(
		"other to be there again",
		func() bool { return m.member.Places(2, 1)[1-shardsOf].Order < 0 },
	)
	if prepare(); p.folds.next.Load() != nil && !dead {
		t.Fatal("something is prepared, although nobody is dead")
	}
	for _, what := range []string{"a death", "another death"} {
		wait(what, func() bool { prepare(); return dead })
		next := p.folds.next.Load()
		if next == nil || len(next.config.Owned) != 2 {
			t.Fatalf("%s: %+v is prepared", what, next)
		}
		if what == "another death" {
			next.opened.Store(true)
			if prepare(); p.folds.main.Load() != next || p.folds.next.Load() != nil {
				t.Error(
					"what is prepared, and has caught up, does not take the place of the main fold",
				)
			}
			return
		}
		renew()
		wait("other to be there again", func() bool { prepare(); return !dead })
		if p.folds.next.Load() != nil {
			t.Error("what is prepared is not given up")
		}
	}
}

// joinAlone returns the membership of a worker that is alone in its group.
func joinAlone(t *testing.T) *membership {
	t.Helper()
	member, err := group.Join(t.Context(), group.Config{
		JS: startServer(t), Bucket: group.Bucket("", "test"), Log: slog.New(slog.DiscardHandler),
		Self: group.Presence{Worker: "one", Since: time.Now()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Leave() })
	return &membership{member: member, copies: 1}
}

// A prepared fold must not be started again when this worker gets more shards than the fold has.
// Otherwise a worker that announces itself late would delay the shards of a dead worker again and
// again.
func TestPreparedShardsAreNotPreparedAgain(t *testing.T) {
	m := joinAlone(t)
	p := foldOf(m, 0)
	p.shards = 3
	next := newFold(p.Config, []int{0, 1})
	next.stop = func() { t.Error("what is prepared is given up") }
	p.folds.next.Store(next)
	if p.prepare(nil, make([]group.Duty, 3)); p.folds.next.Load() != next {
		t.Fatal("what is prepared is another fold")
	}
	next.opened.Store(true)
	if p.prepare(nil, make([]group.Duty, 3)); p.folds.main.Load() != next {
		t.Fatal("what brings one of two shards does not take the place of the main fold")
	}
	next.outlets = &outlets{each: []*outlet{{shard: 0}, {shard: 1}}}
	if p.prepare(func(*fold) {}, make([]group.Duty, 3)); p.folds.next.Load() == nil ||
		!slices.Equal(p.folds.next.Load().config.Owned, []int{0, 1, 2}) {
		t.Fatalf("the rest is not prepared: %+v", p.folds.next.Load())
	}
}

// The next fold must not take a step before the main fold has completed it. Only the main fold
// records the result of a step and saves it. This also holds for a step without messages, which
// ends at the same position as the step before it.
func TestTheNextFoldIsNeverTheFirstAtAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := foldOf(&membership{}, 0)
		main, next := p.folds.main.Load(), newFold(p.Config, []int{0, 1})
		main.applied.Store(10)
		for _, step := range []struct {
			batch event.Batch
			goOn  func()
		}{
			{event.Batch{First: 11, Last: 12}, func() { main.applied.Store(12) }},
			{event.Batch{First: 13, Last: 12}, func() { main.applied.Store(14) }},
			{event.Batch{First: 15, Last: 15}, func() { p.folds.main.Store(next) }},
		} {
			over := make(chan error, 1)
			go func() { over <- p.awaitMain(t.Context(), next, &step.batch) }()
			time.Sleep(time.Second)
			if len(over) > 0 || !next.mayReplace(main) {
				t.Errorf(
					"the step from %d to %d is taken before the main fold's is over",
					step.batch.First,
					step.batch.Last,
				)
			}
			step.goOn()
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
	})
}

// A worker without memory for two folds stands still until the next fold has caught up. It must
// announce that it estimates no shards. Otherwise a worker that holds one of these shards only
// until another worker publishes it would drop the shard.
func TestAWorkerWithoutMemoryReportsThatItEstimatesNothing(t *testing.T) {
	m := joinAlone(t)
	member := m.member
	p := foldOf(m, 0, 1)
	p.Page = new(web.Server)
	says := func() (shards []int) {
		p.sayPresence()
		member.Say(func(own *group.Presence) { shards = own.Shards })
		return shards
	}
	if got := says(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("with a fold that runs it says %v, want [0 1]", got)
	}
	p.folds.main.Load().end()
	if got := says(); len(got) > 0 {
		t.Errorf("with a fold that has ended it says %v, want nothing", got)
	}
}

// foldOf returns the pipeline of a worker that estimates some of two shards.
func foldOf(m *membership, shards ...int) *Pipeline {
	p := unopened(slog.DiscardHandler)
	p.group, p.shards, p.followers = m, 2, &followers{group: m}
	main := newFold(p.Config, shards)
	main.outlets = &outlets{shards: p.shards}
	for _, shard := range shards {
		main.outlets.each = append(main.outlets.each, &outlet{shard: shard})
	}
	main.source = new(ingest.JetStreamSource)
	main.stop = func() { close(main.done) }
	p.folds.main.Store(main)
	return p
}

// entryOf returns a function that renews the entry of a worker once, whether or not the
// worker lives.
func entryOf(t *testing.T, js jetstream.JetStream, bucket, worker string) (renew func()) {
	t.Helper()
	kv, err := js.KeyValue(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := kv.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		entry, err := kv.Get(t.Context(), key)
		if err != nil || !strings.Contains(string(entry.Value()), `"worker":"`+worker+`"`) {
			continue
		}
		return func() {
			if _, err := kv.Put(t.Context(), key, entry.Value()); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatalf("worker %s has no entry", worker)
	return nil
}

func startServer(t *testing.T) jetstream.JetStream {
	t.Helper()
	b, err := broker.Open(
		broker.Config{
			Dir:           t.TempDir(),
			ConnectConfig: broker.ConnectConfig{Log: slog.New(slog.DiscardHandler)},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b.JS
}
