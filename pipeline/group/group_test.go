package group

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const waitMax = time.Minute

// startServer starts a server of its own for a test.
func startServer(t *testing.T) jetstream.JetStream {
	t.Helper()
	return connect(t, newServer(t))
}

func newServer(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.NewServer(
		&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func connect(t *testing.T, s nats.InProcessConnProvider) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func worker(js jetstream.JetStream, name string) Config {
	return Config{
		JS: js, Bucket: Bucket("", "test"), Log: slog.New(slog.DiscardHandler),
		Self: Presence{
			Worker: name,
			Since:  time.Now().UTC(),
			Config: "digest",
			Build:  "v1",
			Arch:   "amd64 v1",
		},
	}
}

func join(t *testing.T, c Config) *Member {
	t.Helper()
	m, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > waitMax {
			t.Fatalf("waited %v for %s", waitMax, what)
		}
	}
}

// When a worker goes, only the shards for which it was first may get another first worker,
// and the workers must have about equally many.
func TestOrderMovesOnlyLostShards(t *testing.T) {
	workers := []string{"a", "b", "c", "d"}
	first := map[string]int{}
	for i := range 4000 {
		of := fmt.Sprint("shard ", i)
		all := order(workers, of)
		first[all[0]]++
		without := order([]string{"a", "b", "d"}, of)
		if want := slices.DeleteFunc(slices.Clone(all),
			func(w string) bool { return w == "c" }); !slices.Equal(without, want) {
			t.Fatalf("%s: %v without c, was %v", of, without, all)
		}
	}
	for _, w := range workers {
		if first[w] < 850 || first[w] > 1150 {
			t.Errorf("worker %s is first for %d of 4000", w, first[w])
		}
	}
}

// For any set of live workers, each shard must have the configured number of workers, or all live
// workers if there are fewer. No worker may be the first for more shards than its part. If a worker
// goes, few of the shards that it was not first for may move.
func TestShardsAreDividedEvenly(t *testing.T) {
	further, sets := 0, 200
	for set := range sets {
		shards, copies := 1<<(set%7), 1+set%3
		var workers []string
		for i := range 2 + set%8 {
			workers = append(workers, fmt.Sprint("set ", set, " worker ", i))
		}
		all, without := assign(workers, shards, copies), assign(workers[1:], shards, copies)
		first := map[string]int{}
		for shard, list := range all {
			if want := min(copies, len(workers)); len(list) != want ||
				len(slices.Compact(slices.Sorted(slices.Values(list)))) != want {
				t.Fatalf("set %d, shard %d: workers %v, want %d", set, shard, list, want)
			}
			first[list[0]]++
			if list[0] != workers[0] && list[0] != without[shard][0] {
				further++
			}
		}
		for worker, n := range first {
			if most := (shards + len(workers) - 1) / len(workers); n > most {
				t.Errorf(
					"set %d: %s is the first of %d of %d shards, at most %d", set, worker, n,
					shards, most,
				)
			}
		}
	}
	if further > 3*sets {
		t.Errorf("%d shards moved in %d sets although their first was still there", further, sets)
	}
	if all := assign(nil, 3, 1); len(all) != 3 || all[0] != nil {
		t.Errorf("%v without workers", all)
	}
}

// Two members must divide the work, and one take it all when the other leaves, or drains, or
// is not heard of any more.
func TestMembersComeToOneAnswer(t *testing.T) {
	js := startServer(t)
	a, b := join(t, worker(js, "a")), join(t, worker(js, "b"))
	first := func(m *Member) (n int) {
		for i := range 32 {
			if m.Rank(fmt.Sprint(i)) == 0 {
				n++
			}
		}
		return n
	}
	a.Say(func(p *Presence) { p.Shards, p.Position = []int{3}, 7 })
	b.Say(func(p *Presence) { p.Shards, p.Position = []int{0, 1, 2, 3}, 5 })
	wait(t, "both to know each other", func() bool {
		return first(a)+first(b) == 32 && first(a) > 0 && first(b) > 0 &&
			slices.Contains(a.Places(4, 1), Duty{Order: -1, Served: true}) &&
			slices.Contains(
				a.Places(4, 1),
				Duty{Order: 0},
			) // b is to estimate it, and says that it does; a's own are not served by another
	})
	if err := Drain(t.Context(), js, Bucket("", "test"), "nobody"); err == nil {
		t.Error("a worker that does not live is drained")
	}
	drain(t, js, "a")()
	if err := Drain(t.Context(), js, Bucket("", "test"), "b"); err == nil ||
		!strings.Contains(err.Error(), "no other worker can take") {
		t.Errorf("the last worker is drained: %v", err)
	}
	wait(t, "b to have what a hands over", func() bool { return first(a) == 0 && first(b) == 32 })
	if a.Rank("0") != -1 {
		t.Errorf("rank %d of a worker that drains", a.Rank("0"))
	}
	a.Say(func(p *Presence) { p.Drains = false })
	wait(t, "a to be back", func() bool { return first(a) > 0 && first(a)+first(b) == 32 })
	if err := b.Leave(); err != nil {
		t.Fatal(err)
	}
	wait(t, "a to have what b leaves", func() bool { return first(a) == 32 })
	c := join(t, worker(js, "c"))
	wait(t, "c to take part", func() bool { return first(a)+first(c) == 32 && first(c) > 0 })
	c.cancel() // as if it had been killed
	c.running.Wait()
	wait(t, "c to be forgotten", func() bool { return first(a) == 32 })
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
}

// drain drains a worker, until stop is called or it has ended, and returns when the worker has
// heard of it.
func drain(t *testing.T, js jetstream.JetStream, worker string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Drain(ctx, js, Bucket("", "test"), worker) }()
	wait(t, "the worker to hear of it", func() bool {
		live, err := List(t.Context(), js, Bucket("", "test"))
		return err == nil &&
			slices.ContainsFunc(
				live,
				func(p Presence) bool { return p.Worker == worker && p.Drains },
			)
	})
	return func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// A worker that is started again where it was drained must not hear the old request, which
// the bucket may still hold.
func TestAWorkerThatBeginsAgainIsNotDrained(t *testing.T) {
	js := startServer(t)
	a, b := join(t, worker(js, "a")), join(t, worker(js, "b"))
	wait(t, "both to be seen", func() bool {
		live, err := List(t.Context(), js, Bucket("", "test"))
		return err == nil && len(live) == 2
	})
	stop := drain(t, js, "a")
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := b.Leave(); err != nil {
		t.Fatal(err)
	}
	again := join(t, worker(js, "a"))
	wait(t, "the new one to hear of itself", func() bool {
		again.mu.Lock()
		defer again.mu.Unlock()
		return again.renewals > 0
	})
	if again.Rank("0") != 0 {
		t.Errorf("rank %d of a worker that was started again", again.Rank("0"))
	}
	if err := again.Leave(); err != nil {
		t.Fatal(err)
	}
}

// A worker with another configuration, another architecture or a name in use must be
// refused with the difference. A worker of another build must wait until the others have
// ended.
func TestOthersAreRefusedByName(t *testing.T) {
	js := startServer(t)
	a := join(t, worker(js, "a"))
	wait(t, "a to be seen", func() bool {
		live, err := List(t.Context(), js, Bucket("", "test"))
		return err == nil && len(live) == 1
	})
	for want, change := range map[string]func(*Presence){
		"configuration digest, and this one has other":  func(p *Presence) { p.Config = "other" },
		"architecture amd64 v1, and this one has arm64": func(p *Presence) { p.Arch = "arm64" },
		"choose another name": func(p *Presence) {
			p.Worker,
				p.Since = "a", time.Unix(1, 0)
		},
	} {
		c := worker(js, "b")
		change(&c.Self)
		if _, err := Join(t.Context(), c); err == nil ||
			!strings.Contains(err.Error(), "worker a") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	c := worker(js, "b")
	c.Self.Build = "v2"
	joined := make(chan *Member, 1)
	go func() {
		m, err := Join(t.Context(), c)
		if err != nil {
			t.Error(err)
		}
		joined <- m
	}()
	select {
	case <-joined:
		t.Fatal("two builds work side by side")
	case <-time.After(2 * renewEvery):
	}
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := (<-joined).Leave(); err != nil {
		t.Fatal(err)
	}
}

// A silent worker must count as dead, even if its entry is still there. It must count as live again
// once it renews its entry.
func TestSilentWorkersAreDeadUntilTheyAnswer(t *testing.T) {
	const shards = 8
	js := startServer(t)
	a, b := join(t, worker(js, "a")), join(t, worker(js, "b"))
	defer func() { _ = a.Leave() }()
	has := func() int {
		return len(
			slices.DeleteFunc(
				a.Places(shards, 1),
				func(place Duty) bool { return place.Order >= 0 },
			),
		)
	}
	for range 2 {
		wait(t, "a to hear of b", func() bool { return has() == shards/2 })
		b.cancel()
		b.running.Wait() // it is silent, and does not leave
		wait(t, "b to be dead", func() bool { return has() == 0 })
		if err := b.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Of workers that must stand still to take shards over one must do so at a time, and the next one
// when it has them.
func TestOneWorkerAtATimeIsAwaited(t *testing.T) {
	js := startServer(t)
	a, b := join(t, worker(js, "a")), join(t, worker(js, "b"))
	defer func() { _ = a.Leave() }()
	defer func() { _ = b.Leave() }()
	for _, shards := range [][]int{{0}, {}, {0, 1}} { // that a estimates, of two
		a.Say(func(p *Presence) { p.Shards = shards })
		wait(t, "b to hear what a estimates", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.workers["a"] != nil && slices.Equal(b.workers["a"].Shards, shards)
		})
		awaits := func(m *Member) bool {
			return slices.ContainsFunc(
				m.Places(2, 2),
				func(place Duty) bool { return place.Awaited },
			)
		}
		if awaits(a) || awaits(b) != (len(shards) < 2) {
			t.Errorf(
				"while a estimates %v, a awaits another one: %t, and b: %t", shards, awaits(a),
				awaits(b),
			)
		}
	}
}

// The entry of a worker that was killed must not keep it from beginning again, even where a server
// that elects does not remove it in time.
func TestAWorkerStartsAgainDespiteItsOldEntry(t *testing.T) {
	js := startServer(t)
	kv, err := js.CreateKeyValue(
		t.Context(),
		jetstream.KeyValueConfig{Bucket: Bucket("", "test"), TTL: waitMax},
	)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := json.Marshal(worker(js, "a").Self)
	if err == nil {
		_, err = kv.Put(t.Context(), key("a"), killed)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := join(t, worker(js, "a")).Leave(); err != nil {
		t.Fatal(err)
	}
}

// Two workers with different states at a position must both come to know, with their names.
func TestDisagreementEndsBothWorkers(t *testing.T) {
	js := startServer(t)
	var members [3]*Member
	var stores [3]*Store
	for i, name := range []string{"a", "b", "c"} {
		members[i] = join(t, worker(js, name))
		defer members[i].Leave()
		stores[i] = openStore(t, members[i])
	}
	same := map[string]string{GraphPart: "a", "0": "b"}
	if err := stores[0].Put(t.Context(), "digest", 8, "0", "state", same); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * presenceTTL) // however long after one another the workers save
	others := []map[string]string{
		same,
		{GraphPart: "a"},
		{GraphPart: "a", "1": "c"},
	} // a worker without the shard compares the graph
	for i, s := range stores {
		if err := errors.Join(s.Compare(t.Context(), "digest", 8, "0", others[i]),
			s.Compare(t.Context(), "digest", 9, "0", others[i])); err != nil {
			t.Fatal(err)
		}
	}
	err := stores[1].Compare(
		t.Context(), "digest", 8, "0", map[string]string{GraphPart: "a", "0": "c"},
	)
	if err == nil ||
		!strings.Contains(
			err.Error(),
			"at position 8 the workers a and b have different states of part 0",
		) {
		t.Fatalf("error %v", err)
	}
	for _, m := range members[:2] {
		wait(
			t,
			"worker "+m.self.Worker+" to hear that it must end",
			func() bool { return len(m.Disagreed) > 0 },
		)
		if said := <-m.Disagreed; said.Error() != err.Error() {
			t.Errorf("%s is told %v, want %v", m.self.Worker, said, err)
		}
	}
	if len(members[2].Disagreed) > 0 {
		t.Error("a worker ends whose state is that of the first")
	}
}

func openStore(t *testing.T, m *Member) *Store {
	t.Helper()
	s, err := m.OpenStore(t.Context(), testShards)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const testShards = 4

// put stores parts at a position as a worker does after a checkpoint.
func put(t *testing.T, s *Store, position uint64, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err := s.Put(t.Context(), "digest", position, part, fmt.Sprint(part, " at ", position),
			nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Drop(t.Context(), "digest"); err != nil {
		t.Fatal(err)
	}
}

// However many checkpoints the others make after a worker has died, the store must have a
// position with the graph and all shards, from which another worker can continue. The store
// must not grow meanwhile.
func TestStoreKeepsAPositionWithAllParts(t *testing.T) {
	js := startServer(t)
	m := join(t, worker(js, "a"))
	defer m.Leave()
	s := openStore(t, m)
	position := uint64(0)
	for range 20 {
		position++
		put(t, s, position, "0", "1", "2", "3")
		if position%8 == 1 {
			put(t, s, position, GraphPart)
		}
	}
	for range 3 * positionsKept {
		position++
		put(t, s, position, GraphPart, "0", "1") // shards 2 and 3 are nobody's
	}
	graphs, err := s.Positions(t.Context(), "digest", nil, []int{99})
	if want := []uint64{68, 67, 17, 9}; err != nil || !slices.Equal(graphs, want) {
		t.Fatalf("the graph is kept at %v, want %v: %v", graphs, want, err)
	}
	whole, err := s.Positions(t.Context(), "digest", []uint64{60, 15}, []int{2, 3})
	if want := []uint64{17, 15, 9, 68, 67, 60, 17, 15, 9}; err != nil ||
		!slices.Equal(whole, want) {
		t.Errorf("shards 2 and 3 are looked for at %v, want %v: %v", whole, want, err)
	}
	for shard := range testShards {
		var state string
		if err := s.Get(t.Context(), "digest", 17, Part(shard), &state); err != nil ||
			state != Part(shard)+" at 17" {
			t.Errorf("shard %d: %q: %v", shard, state, err)
		}
	}
	if err := s.Get(t.Context(), "digest", 1, GraphPart, new(string)); err == nil {
		t.Error("the oldest is still there")
	}
	// a worker takes them over, far behind the others
	for next := uint64(18); next <= position; next++ {
		put(t, s, next, "2", "3")
	}
	if graphs, err = s.Positions(t.Context(), "digest", nil, []int{99}); err != nil ||
		!slices.Equal(graphs, []uint64{68, 67}) {
		t.Errorf("the graph is kept at %v, of which there are all shards now: %v", graphs, err)
	}
	stream, err := js.Stream(t.Context(), "OBJ_gql_group_test_state")
	if err != nil {
		t.Fatal(err)
	}
	if messages, most := stream.CachedInfo().State.Msgs,
		2*uint64(testShards*(positionsKept+completeKept)+graphsKept+completeKept); messages > most {
		t.Errorf("%d messages, at most %d of what is kept", messages, most)
	}
	// of another configuration, and of another format
	for _, name := range []string{"other", "digest.2"} {
		if err := s.Put(t.Context(), name, 81, GraphPart, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Drop(t.Context(), "digest.2"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]uint64{"other": {81}, "digest.2": {81}, "digest": nil} {
		if graphs, err := s.Positions(t.Context(), name, nil, []int{99}); err != nil ||
			!slices.Equal(graphs, want) {
			t.Errorf("the graph of %s is kept at %v, want %v: %v", name, graphs, want, err)
		}
	}
}

// Chunks that a worker left when it was killed while storing a part must be removed. Chunks that
// another worker is storing must stay.
func TestChunksOfNobodyGo(t *testing.T) {
	js := startServer(t)
	m := join(t, worker(js, "a"))
	defer m.Leave()
	s := openStore(t, m)
	put(t, s, 1, GraphPart, "0")
	subject := "$O.gql_group_test_state.C.killed"
	if _, err := js.Publish(t.Context(), subject, []byte("the beginning")); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []bool{false, true} {
		if err := s.Drop(t.Context(), "digest"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.stream.GetLastMsgForSubject(t.Context(), subject); (err != nil) != gone {
			t.Errorf("chunks of nobody are gone: %v, want %t", err, gone)
		}
		s.stray = 0
	}
	if err := s.Get(t.Context(), "digest", 1, GraphPart, new(string)); err != nil {
		t.Error(err)
	}
}

// A part must arrive whole although its connection stands still in the middle for longer
// than an attempt may take, or no worker answers for a while: otherwise a worker with an
// empty disk would read the whole log.
func TestAPartIsAskedForAgain(t *testing.T) {
	s := newServer(t)
	there := join(t, worker(connect(t, s), "a"))
	defer there.Leave()
	part := make([]byte, 4<<20)
	for i := range part {
		part[i] = byte(i * i >> 8)
	}
	if err := openStore(t, there).Put(t.Context(), "digest", 7, GraphPart, part, nil); err != nil {
		t.Fatal(err)
	}
	slow := &standstill{server: s}
	here := join(t, worker(connect(t, slow), "b"))
	defer here.Leave()
	store := openStore(t, here)
	direct := func(is bool) error { // during an election nobody answers either
		stream, err := here.config.JS.Stream(t.Context(), "OBJ_"+store.bucket)
		if err != nil {
			return err
		}
		config := stream.CachedInfo().Config
		config.AllowDirect = is
		_, err = here.config.JS.UpdateStream(t.Context(), config)
		return err
	}
	for _, c := range []struct {
		name       string
		begin, end func() error
	}{
		{
			"stands still after 1 MiB", func() error { slow.stop(1 << 20); return nil },
			func() error { close(slow.goOn); return nil },
		},
		{
			"comes from a stream without a leader", func() error { return direct(false) },
			func() error { return direct(true) },
		},
	} {
		before := slow.asked.Load()
		if err := c.begin(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), waitMax)
			defer cancel()
			var got []byte
			err := store.Get(ctx, "digest", 7, GraphPart, &got)
			if err == nil && !bytes.Equal(got, part) {
				err = errors.New("it is another one")
			}
			ended <- err
		}()
		wait(t, "the part to be asked for again, which "+c.name, func() bool {
			return len(ended) > 0 || slow.asked.Load() > before+1
		})
		if err := errors.Join(c.end(), <-ended); err != nil {
			t.Errorf("a part of 4 MiB %s: %v", c.name, err)
		}
	}
}

// standstill is a connection to a server that can stop to carry the server's data.
type standstill struct {
	server nats.InProcessConnProvider
	asked  atomic.Int32 // times that something was read from the bucket of objects
	mu     sync.Mutex
	left   int // bytes until nothing comes any more
	goOn   chan struct{}
	net.Conn
}

func (s *standstill) InProcessConn() (c net.Conn, err error) {
	s.Conn, err = s.server.InProcessConn()
	return s, err
}

func (s *standstill) stop(after int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.goOn = after, make(chan struct{})
}

func (s *standstill) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	s.left -= n
	goOn := s.goOn
	still := goOn != nil && s.left < 0
	s.mu.Unlock()
	if still {
		select {
		case <-goOn:
		case <-time.After(waitMax):
		}
	}
	return n, err
}

func (s *standstill) Write(p []byte) (int, error) {
	s.asked.Add(int32(bytes.Count(p, []byte("DIRECT.GET.OBJ_"))))
	return s.Conn.Write(p)
}
