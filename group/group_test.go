package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close(); s.Shutdown(); s.WaitForShutdown() })
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func worker(js jetstream.JetStream, name string) Config {
	return Config{
		JS: js, Bucket: Bucket("", "test"), Log: slog.New(slog.DiscardHandler),
		Self: Presence{Worker: name, Since: time.Now().UTC(), Config: "digest", Build: "v1", Arch: "amd64 v1"},
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

// When a worker goes, only what it was first for may have another first, and all workers
// must have about as much.
func TestOrderMovesOnlyWhatIsLost(t *testing.T) {
	workers := []string{"a", "b", "c", "d"}
	first := map[string]int{}
	for i := range 4000 {
		of := fmt.Sprint("shard ", i)
		all := order(workers, of)
		first[all[0]]++
		without := order([]string{"a", "b", "d"}, of)
		if want := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return w == "c" }); !slices.Equal(without, want) {
			t.Fatalf("%s: %v without c, was %v", of, without, all)
		}
	}
	for _, w := range workers {
		if first[w] < 850 || first[w] > 1150 {
			t.Errorf("worker %s is first for %d of 4000", w, first[w])
		}
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
	wait(t, "both to know each other", func() bool {
		return first(a)+first(b) == 32 && first(a) > 0 && first(b) > 0
	})
	if err := Drain(t.Context(), js, Bucket("", "test"), "nobody"); err == nil {
		t.Error("a worker that does not live is drained")
	}
	if err := Drain(t.Context(), js, Bucket("", "test"), "a"); err != nil {
		t.Fatal(err)
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

// A worker that is started again where it was drained must not hear the old request, which
// the bucket may still hold.
func TestAWorkerThatBeginsAgainIsNotDrained(t *testing.T) {
	js := startServer(t)
	a := join(t, worker(js, "a"))
	wait(t, "a to be seen", func() bool {
		live, err := List(t.Context(), js, Bucket("", "test"))
		return err == nil && len(live) == 1
	})
	if err := Drain(t.Context(), js, Bucket("", "test"), "a"); err != nil {
		t.Fatal(err)
	}
	if err := a.Leave(); err != nil {
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

// A worker with another configuration, architecture or a name that is taken must be refused
// with what differs, and one of another build wait until the others have ended.
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
		"choose another name":                           func(p *Presence) { p.Worker, p.Since = "a", time.Unix(1, 0) },
	} {
		c := worker(js, "b")
		change(&c.Self)
		if _, err := Join(t.Context(), c); !errors.Is(err, errOtherGroup) || !strings.Contains(err.Error(), "worker a") || !strings.Contains(err.Error(), want) {
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

// Two workers with different states at a position must both come to know, with their names.
func TestDisagreementIsToldToBoth(t *testing.T) {
	js := startServer(t)
	var stores [2]*Store
	for i, name := range []string{"a", "b"} {
		m := join(t, worker(js, name))
		defer m.Leave()
		var err error
		if stores[i], err = m.OpenStore(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	told := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	defer cancel()
	go func() { told <- stores[0].WatchDisagreements(ctx) }()
	good := Bundle{Sections: []BundleSection{{Name: "vertices", Data: []byte{1, 2, 3}}}}
	bad := Bundle{Sections: []BundleSection{{Name: "vertices", Data: []byte{1, 2 ^ 16, 3}}}} // one bit
	for _, s := range stores {
		if err := s.Compare(ctx, "digest", 7, GraphPart, good.Digest()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stores[0].Compare(ctx, "digest", 8, GraphPart, good.Digest()); err != nil {
		t.Fatal(err)
	}
	var err error
	for said := error(nil); said == nil; { // again, in case that the watch has only begun now
		err = stores[1].Compare(ctx, "digest", 8, GraphPart, bad.Digest())
		select {
		case said = <-told:
			if !errors.Is(said, ErrDisagree) || said.Error() != err.Error() {
				t.Fatalf("a is told %v, b %v", said, err)
			}
		case <-time.After(50 * time.Millisecond):
		}
	}
	if !errors.Is(err, ErrDisagree) || !strings.Contains(err.Error(), "at position 8 the workers a and b") {
		t.Errorf("error %v", err)
	}
}

// What is stored of a part must come back, once, and the oldest go.
func TestStoreKeepsTheNewest(t *testing.T) {
	js := startServer(t)
	m := join(t, worker(js, "a"))
	defer m.Leave()
	s, err := m.OpenStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for position := range uint64(positionsKept + 3) {
		b := Bundle{Header: []byte(`{"at":1}`), Sections: []BundleSection{{Name: "a", Data: []byte(fmt.Sprint(position))}, {Name: "b"}}}
		data, err := b.Encode()
		if err == nil {
			err = s.Put(t.Context(), "digest", position, Part(3), data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	positions, err := s.Positions(t.Context(), "digest", Part(3))
	if err != nil || len(positions) != positionsKept || positions[0] != positionsKept+2 {
		t.Fatalf("positions %v: %v", positions, err)
	}
	data, err := s.Get(t.Context(), "digest", positions[0], Part(3))
	if err != nil {
		t.Fatal(err)
	}
	b, err := DecodeBundle(data)
	if err != nil || string(b.Header) != `{"at":1}` || len(b.Sections) != 2 || string(b.Sections[0].Data) != fmt.Sprint(positions[0]) {
		t.Errorf("%+v: %v", b, err)
	}
	if _, err := DecodeBundle(data[:len(data)-1]); err == nil {
		t.Error("a bundle that is cut is read")
	}
	if _, err := s.Get(t.Context(), "digest", 0, Part(3)); err == nil {
		t.Error("the oldest is still there")
	}
}
