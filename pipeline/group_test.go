package pipeline

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/group"
	"gqlstream/ingest/broker"
)

// A worker that is to estimate shards that nobody else estimates must start again at once. One that
// only stands in waits for its turn, and until others can publish its shards, but not for ever: two
// that start again together would leave a gap.
func TestWorkersStartAgainOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		what        string
		urgent      bool
		turn        int
		replaceable bool
		waited      time.Duration
		want        bool
	}{
		{"nobody else estimates it", true, 3, false, 0, true},
		{"stands in, first turn", false, 0, false, 0, true},
		{"stands in, second turn, at once", false, 1, true, 0, false},
		{"stands in, second turn, after the first one's", false, 1, true, standInTurn, true},
		{"stands in, third turn, too early", false, 2, true, standInTurn, false},
		{"alone has some shards", false, 1, false, standInTurn, false},
		{"alone has some shards for long", false, 1, false, standInMax, true},
		{"alone has some shards, later turn", false, 2, false, standInMax, false},
	} {
		if got := mayStartAgain(c.urgent, c.turn, c.replaceable, c.waited); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// A worker that is drained must end although the one that estimates its shards now is always later than
// it, and never publishes first. It must not end for one that is drained itself.
func TestADrainDoesNotWaitForASlowerWorkerForEver(t *testing.T) {
	js := startServer(t)
	join := func(name string) *group.Member {
		m, err := group.Join(t.Context(), group.Config{JS: js, Bucket: group.Bucket("", "test"), Alive: "test.alive", Log: slog.New(slog.DiscardHandler), Self: group.Presence{Worker: name, Since: time.Now()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Leave() })
		return m
	}
	drained, other := join("drained"), join("other")
	p := &Pipeline{group: &membership{member: drained, copies: 1}, outlets: outlets{shards: 2, each: []*outlet{{shard: 0}, {shard: 1}}}}
	drained.Say(func(own *group.Presence) { own.Drains = true })
	estimates := func(drains bool) { // and waits until the drained one has heard of it
		t.Helper()
		other.Say(func(own *group.Presence) { own.Shards, own.Drains = []int{0, 1}, drains })
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			shards, staying, _ := drained.Estimated()
			if shards[0] && shards[1] && staying[0] != drains && staying[1] != drains {
				return
			}
			if time.Since(begun) > time.Minute {
				t.Fatal("waited a minute for the drained worker to hear of the other one")
			}
		}
	}
	for _, step := range []struct {
		what   string
		drains bool // the other one, too
		since  time.Duration
		want   error
	}{
		{"the other worker is drained too", true, 2 * handOverMax, nil},
		{"the other worker has just begun to estimate the shards", false, 0, nil},
		{"it has estimated them for half of the time", false, handOverMax / 2, nil},
		{"it has estimated them for long, and never was the first", false, 2 * handOverMax, errDrained},
	} {
		estimates(step.drains)
		p.group.handing = time.Now().Add(-step.since)
		_ = p.regroup(t.Context()) // gives up
		if err := p.regroup(t.Context()); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.what, err, step.want)
		}
	}
}

// A worker that is not heard of must be prepared for before it is dead; when it is heard of again, what was
// prepared is given up, and the next doubt waits, but not its death.
func TestADoubtIsPreparedForAndGivenUp(t *testing.T) {
	js := startServer(t)
	bucket := group.Bucket("", "test")
	join := func(name string) *group.Member {
		m, err := group.Join(t.Context(), group.Config{JS: js, Bucket: bucket, Alive: "test.alive", Log: slog.New(slog.DiscardHandler), Self: group.Presence{Worker: name, Since: time.Now()}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := &membership{member: join("one"), copies: 1, woken: make(chan struct{}, 1)}
	defer func() { _ = m.member.Leave() }()
	saves, err := openCheckpoints(t.TempDir(), slog.New(slog.DiscardHandler))
	if err == nil {
		m.store, err = m.member.OpenStore(t.Context(), 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := join("other")
	mine := -1
	wait := func(what string, is func() bool) {
		t.Helper()
		for begun := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatal("waited a minute for ", what)
			}
		}
	}
	wait("one to hear of other", func() bool {
		mine = slices.Index(m.member.Places(2, 1, true), 0)
		return mine >= 0 && m.member.Places(2, 1, true)[1-mine] < 0
	})
	p := &Pipeline{group: m, Checkpoints: saves, log: slog.New(slog.DiscardHandler), outlets: outlets{shards: 2, marked: make([]atomic.Uint64, 2), each: []*outlet{{shard: mine}}}}
	renew := entryOf(t, js, bucket, "other")
	if err := other.Leave(); err != nil {
		t.Fatal(err)
	}
	renew()
	wait("other to be there again", func() bool { return m.member.Places(2, 1, false)[1-mine] < 0 })
	if !m.prepare(t.Context(), p) || m.next != nil {
		t.Fatal("something is prepared, although nobody is doubted")
	}
	wait("a doubt", func() bool { return m.member.Places(2, 1, false)[1-mine] == 0 })
	if m.prepare(t.Context(), p); m.next == nil || len(m.next.owned) != 2 {
		t.Fatalf("%+v is prepared", m.next)
	}
	<-m.next.done
	renew()
	wait("other to be there again", func() bool { return m.member.Places(2, 1, false)[1-mine] < 0 })
	if !m.prepare(t.Context(), p) || m.next != nil {
		t.Error("what is prepared is not given up")
	}
	wait("another doubt", func() bool { return m.member.Places(2, 1, false)[1-mine] == 0 })
	if sure := m.member.Places(2, 1, true)[1-mine] == 0; (!m.prepare(t.Context(), p) || m.next != nil) && !sure {
		t.Error("a second doubt is prepared for")
	}
	wait("its death", func() bool { return m.member.Places(2, 1, true)[1-mine] == 0 })
	if m.prepare(t.Context(), p); m.next == nil {
		t.Error("its death is not prepared for")
	}
	m.drop()
}

// entryOf returns what renews the entry of a worker once, whether or not it lives.
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
	b, err := broker.Open(broker.Config{Dir: t.TempDir(), ConnectConfig: broker.ConnectConfig{Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b.JS
}
