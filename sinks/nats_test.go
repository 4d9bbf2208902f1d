package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

type broker struct {
	t  *testing.T
	nc *nats.Conn
	js jetstream.JetStream
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "test", DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t, nc, js}
	b.makeStream("")
	if _, err := js.CreateKeyValue(b.ctx(), jetstream.KeyValueConfig{Bucket: "gql_estimates", History: 1}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *broker) makeStream(discard string) {
	config := jetstream.StreamConfig{
		Name: "GQL_ESTIMATES", Subjects: []string{"gqlest.>"}, Duplicates: 100 * time.Millisecond,
	}
	if discard == "old" {
		config.MaxMsgs, config.Discard = 3, jetstream.DiscardOld
	}
	if _, err := b.js.CreateOrUpdateStream(b.ctx(), config); err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) ctx() context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *broker) nats(log string) *NATS {
	b.t.Helper()
	s, err := NewNATS(b.nc, NATSConfig{Log: log})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	return s
}

func (b *broker) latest(log string) *Latest {
	b.t.Helper()
	s, err := NewLatest(b.nc, NATSConfig{Log: log})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	return s
}

func brief(e quant.Estimate) string {
	return fmt.Sprintf("%s %s %d %s", e.Community, e.Method, e.Position, e.Preset)
}

// stored returns what the stream holds, in its order, and checks the subjects.
func (b *broker) stored() []string {
	b.t.Helper()
	s, err := b.js.Stream(b.ctx(), "GQL_ESTIMATES")
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	state := s.CachedInfo().State
	for i := max(state.FirstSeq, 1); i <= state.LastSeq; i++ {
		m, err := s.GetMsg(b.ctx(), i)
		if err != nil {
			b.t.Fatal(err)
		}
		var e quant.Estimate
		if err := json.Unmarshal(m.Data, &e); err != nil {
			b.t.Fatal(err)
		}
		if m.Subject != EstimateSubject(e.Community) {
			b.t.Errorf("%s is on %s", brief(e), m.Subject)
		}
		all = append(all, brief(e))
	}
	return all
}

// emissions is what a pipeline emits: sorted by community and method, with one
// method configured twice.
func emissions(seed uint64, n int) [][]quant.Estimate {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all [][]quant.Estimate
	position := uint64(0)
	for range n {
		position += 1 + rng.Uint64N(5)
		var emission []quant.Estimate
		for _, community := range []string{"", "a.b", "c d", "*"} {
			if rng.IntN(3) == 0 {
				continue
			}
			one, two := estimate(community, "auto", position), estimate(community, "auto", position)
			one.Preset, two.Preset = "density", "paper"
			emission = append(emission, one, two, estimate(community, "ml", position))
		}
		all = append(all, emission)
	}
	return all
}

func inOrder(emissions [][]quant.Estimate, community string) []string {
	var all []string
	for _, emission := range emissions {
		for _, e := range emission {
			if e.Community == community {
				all = append(all, brief(e))
			}
		}
	}
	return all
}

func ofCommunity(stored []string, community string) []string {
	return slices.DeleteFunc(slices.Clone(stored), func(s string) bool {
		return !strings.HasPrefix(s, community+" auto") && !strings.HasPrefix(s, community+" ml")
	})
}

// Whatever the crashes, between or amid emissions, and however often a restart goes
// over old ground, the stream must hold each record once, in order.
func TestEstimatesAreStoredExactlyOnce(t *testing.T) {
	for seed := range uint64(5) {
		b := startBroker(t)
		rng := rand.New(rand.NewPCG(seed, 2))
		all := emissions(seed, 30)
		sink := b.nats("log")
		for i := 0; i < len(all); i++ {
			emission := all[i]
			crash := rng.IntN(4) == 0
			if crash { // amid the emission: of each community only some records are stored
				emission = slices.Clone(emission[:rng.IntN(len(emission)+1)])
			}
			if err := sink.Write(b.ctx(), emission); err != nil {
				t.Fatalf("seed %d emission %d: %v", seed, i, err)
			}
			if crash {
				sink.Close()
				sink = b.nats("log")
				i = max(-1, i-1-rng.IntN(5))
			}
		}
		stored := b.stored()
		for _, community := range []string{"", "a.b", "c d", "*"} {
			got, want := ofCommunity(stored, community), inOrder(all, community)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, community %q:\n got %q\nwant %q", seed, community, got, want)
			}
		}
	}
}

// A second instance on the same estimates must be stopped, not mixed in; the other
// one goes on.
func TestSecondInstanceIsFenced(t *testing.T) {
	b := startBroker(t)
	first, second := b.nats("log"), b.nats("log")
	write := func(s *NATS, position uint64) error {
		return s.Write(b.ctx(), []quant.Estimate{estimate("a", "auto", position)})
	}
	if err := errors.Join(write(first, 1), write(second, 2)); err != nil {
		t.Fatal(err)
	}
	if err := write(first, 3); !errors.Is(err, ErrOtherWriter) {
		t.Errorf("first instance goes on: %v", err)
	}
	if err := write(second, 3); err != nil {
		t.Error(err)
	}
	if got := b.stored(); len(got) != 3 {
		t.Errorf("stored %q", got)
	}
}

// The same record, sent by two instances that replay the same log, must be stored
// once and be no error.
func TestEqualRecordsOfTwoInstancesAreOne(t *testing.T) {
	b := startBroker(t)
	first, second := b.nats("log"), b.nats("log")
	for position := range uint64(5) {
		for _, s := range []*NATS{first, second} {
			if err := s.Write(b.ctx(), []quant.Estimate{estimate("a", "auto", position+1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := b.stored(); len(got) != 5 {
		t.Errorf("stored %q", got)
	}
}

// Estimates of a new log must be stored although their positions are small.
func TestEstimatesOfANewLogAreStored(t *testing.T) {
	b := startBroker(t)
	for i, log := range []string{"old", "new"} {
		position := uint64(1000 - 999*i)
		emission := []quant.Estimate{estimate("a", "auto", position)}
		if err := errors.Join(b.nats(log).Write(b.ctx(), emission), b.latest(log).Write(b.ctx(), emission)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.stored(), []string{"a auto 1000 ", "a auto 1 "}; !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
	if got := b.value("a", "auto", 0); got.Position != 1 {
		t.Errorf("latest is at %d", got.Position)
	}
}

// A stream that drops old estimates must still take new ones.
func TestDroppedEstimatesAreNoObstacle(t *testing.T) {
	b := startBroker(t)
	b.makeStream("old")
	sink := b.nats("log")
	for position := range uint64(10) {
		emission := []quant.Estimate{estimate(fmt.Sprint("c", position%5), "auto", position+1)}
		if err := sink.Write(b.ctx(), emission); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.stored(); len(got) != 3 {
		t.Errorf("stored %q", got)
	}
}

// value reads a key of the bucket as any client does.
func (b *broker) value(community, method string, n int) quant.Estimate {
	b.t.Helper()
	bucket, err := b.js.KeyValue(b.ctx(), "gql_estimates")
	if err != nil {
		b.t.Fatal(err)
	}
	entry, err := bucket.Get(b.ctx(), LatestKey(community, method, n))
	if err != nil {
		b.t.Fatal(err)
	}
	var e quant.Estimate
	if err := json.Unmarshal(entry.Value(), &e); err != nil {
		b.t.Fatal(err)
	}
	return e
}

// The bucket must hold the newest estimate of each community and method, and never
// go back, even when an instance that was paused comes to life again.
func TestLatestNeverGoesBack(t *testing.T) {
	b := startBroker(t)
	all := emissions(1, 20)
	zombie, sink := b.latest("log"), b.latest("log")
	if err := zombie.Write(b.ctx(), all[0]); err != nil {
		t.Fatal(err)
	}
	for _, emission := range all {
		if err := sink.Write(b.ctx(), emission); err != nil {
			t.Fatal(err)
		}
	}
	for _, emission := range all[1:10] {
		if err := zombie.Write(b.ctx(), emission); err != nil {
			t.Fatal(err)
		}
	}
	for _, community := range []string{"", "a.b", "c d", "*"} {
		want := inOrder(all, community)
		want = want[len(want)-3:]
		got := []string{
			brief(b.value(community, "auto", 0)), brief(b.value(community, "auto", 1)),
			brief(b.value(community, "ml", 0)),
		}
		if !slices.Equal(got, want) {
			t.Errorf("community %q: %q, want %q", community, got, want)
		}
	}
}

// An estimate that is not a number must not be published, and a caller that gives
// up gets its error.
func TestNATSErrors(t *testing.T) {
	b := startBroker(t)
	sink := b.nats("log")
	bad := estimate("a", "auto", 1)
	bad.SE = []float64{1, 0 / func() float64 { return 0 }()}
	if err := sink.Write(b.ctx(), []quant.Estimate{bad}); err == nil {
		t.Error("NaN was published")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sink.Write(ctx, []quant.Estimate{estimate("a", "auto", 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if got := b.stored(); len(got) != 0 {
		t.Errorf("stored %q", got)
	}
	none, err := NewNATS(b.nc, NATSConfig{Stream: "NONE", RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if err := none.Write(b.ctx(), []quant.Estimate{estimate("a", "auto", 1)}); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("no stream: %v", err)
	}
}
