package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

func (b *testBroker) publisher(c PublisherConfig) *Publisher {
	b.t.Helper()
	p, err := NewPublisher(b.nc, c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(p.Close)
	return p
}

func edgeMessage(i int) Outgoing {
	return Outgoing{
		Kind: event.KindEdge, ContentType: wire.JSON,
		Payload: fmt.Appendf(nil, `{"src":%d,"dst":%d}`, i, i+1),
	}
}

// Messages must be stored in the order of the calls, with id, checksum and content
// type.
func TestPublisherKeepsOrderAndStampsMessages(t *testing.T) {
	b := startBroker(t, "")
	p := b.publisher(PublisherConfig{Producer: "me", Pending: 7})
	const n = 100
	for i := range n {
		if err := p.Publish(testContext(t), edgeMessage(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if stored, last := p.Stored(); stored != n || last != n {
		t.Errorf("stored %d up to %d, want %d", stored, last, n)
	}
	log, err := b.js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m, err := log.GetMsg(testContext(t), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		want := edgeMessage(i)
		if string(m.Data) != string(want.Payload) ||
			m.Header.Get(wire.HeaderContentType) != wire.JSON ||
			m.Header.Get(wire.HeaderChecksum) != wire.Checksum(want.Payload) ||
			m.Header.Get(jetstream.MsgIDHeader) != fmt.Sprintf("me/%d", i+1) {
			t.Fatalf("message %d: %q %v", i+1, m.Data, m.Header)
		}
	}
}

// A full stream must refuse new messages with an error that gives advice, and take them
// once there is room; no stored message is lost.
func TestPublisherWaitsForRoom(t *testing.T) {
	b := bareBroker(t, broker.EmbeddedConfig{})
	config := broker.LogConfig("GQL")
	config.MaxBytes = 4096
	if _, err := b.js.CreateStream(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	publish := func(p *Publisher, n int) error {
		for i := range n {
			if err := p.Publish(testContext(t), edgeMessage(i)); err != nil {
				return err
			}
		}
		return p.Flush(testContext(t))
	}
	p := b.publisher(PublisherConfig{RetryFor: -1})
	err := publish(p, 200)
	stored, _ := p.Stored()
	if !errors.Is(err, broker.ErrNoSpace) ||
		!strings.Contains(err.Error(), "raise its max_bytes") ||
		!strings.Contains(
			err.Error(),
			fmt.Sprintf("message %d (%d are stored)", stored+1, stored),
		) {
		t.Fatalf("%d stored, error %v", stored, err)
	}
	if again := p.Publish(testContext(t), edgeMessage(1)); !errors.Is(again, broker.ErrNoSpace) {
		t.Errorf("the error is not final: %v", again)
	}
	log, err := b.js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	if got := log.CachedInfo().State.LastSeq; got < stored || got == 0 {
		t.Errorf("log ends at %d, %d were confirmed", got, stored)
	}
	var waits atomic.Int32
	p = b.publisher(PublisherConfig{Producer: "patient", Report: func(err error) {
		if !errors.Is(err, broker.ErrNoSpace) {
			t.Errorf("waits because of %v", err)
		}
		if waits.Add(1) == 1 {
			config.MaxBytes = 1 << 20
			if _, err := b.js.UpdateStream(testContext(t), config); err != nil {
				t.Error(err)
			}
		}
	}})
	if err := publish(p, 200); err != nil {
		t.Fatal(err)
	}
	if stored, _ := p.Stored(); stored != 200 || waits.Load() == 0 {
		t.Errorf("%d stored after %d waits", stored, waits.Load())
	}
}

// Errors that do not pass must come at once: a message that is too large, and a
// caller that gives up.
func TestPublisherErrorsAreFinal(t *testing.T) {
	b := startBroker(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	large := b.publisher(PublisherConfig{})
	canceled := b.publisher(PublisherConfig{Pending: 1})
	for _, p := range []*Publisher{large, canceled} {
		if err := errors.Join(p.Publish(ctx, edgeMessage(1)), p.Flush(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	err := large.Publish(ctx, Outgoing{Kind: event.KindEdge, Payload: make([]byte, 2<<20)})
	if err == nil || !strings.Contains(err.Error(), "message 2 (1 are stored)") {
		t.Errorf("message of 2 MiB: %v", err)
	}
	p := canceled
	if err := p.Publish(ctx, edgeMessage(1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := p.Flush(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := p.Publish(ctx, Outgoing{Kind: 99}); err == nil {
		t.Error("an unknown kind was published")
	}
	if _, err := NewPublisher(b.nc, PublisherConfig{Pending: -1}); err == nil {
		t.Error("negative window accepted")
	}
}

// A broker that restarts while messages are under way must end up with each of
// them once.
func TestPublisherSurvivesRestart(t *testing.T) {
	b := bareBroker(t, broker.EmbeddedConfig{Listen: "127.0.0.1:0"})
	if err := broker.EnsureStreams(testContext(t), b.js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(b.URL(), "nats://")
	nc, err := broker.Connect(broker.ConnectConfig{URL: b.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p, err := NewPublisher(nc, PublisherConfig{Pending: 50})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const n = 2000
	for i := range n {
		if i == n/2 {
			b.stop()
			b = bareBroker(t, broker.EmbeddedConfig{Dir: b.dir, Listen: address})
		}
		if err := p.Publish(testContext(t), edgeMessage(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(testContext(t)); err != nil {
		t.Fatal(err)
	}
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Every: -1, EventsMax: 2 * n}})
	var batch event.Batch
	if err := s.Next(testContext(t), &batch); err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for _, e := range batch.Edges {
		if seen[e.Src.Number] {
			t.Fatalf("edge %d is there twice", e.Src.Number)
		}
		seen[e.Src.Number] = true
	}
	if len(seen) != n {
		t.Errorf("%d edges, want %d", len(seen), n)
	}
}

// Ticks must come at every boundary while events are pending, once a second
// otherwise, not at all after Stop; State says since when they fail.
func TestTickerFollowsPendingEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending atomic.Bool
		var ticks atomic.Int32
		var broken atomic.Bool
		ticker := startTicker(t.Context(), TickerConfig{
			Every: 100 * time.Millisecond, Pending: pending.Load,
		}, func(context.Context) error {
			ticks.Add(1)
			if broken.Load() {
				return errors.New("no broker")
			}
			return nil
		})
		expect := func(what string, want int32) {
			t.Helper()
			time.Sleep(5050 * time.Millisecond) // of the bubble's clock
			if got := ticks.Swap(0); got < want-1 || got > want+1 {
				t.Errorf("%s: %d ticks in 5 s, want about %d", what, got, want)
			}
		}
		expect("idle", 5)
		pending.Store(true)
		expect("pending", 50)
		pending.Store(false)
		broken.Store(true)
		expect("broken", 5)
		w := ticker.State()
		if w.Retries < 4 || !strings.Contains(w.Reason, "no broker") ||
			time.Since(w.Since) < 4*time.Second {
			t.Errorf("while ticks fail: %+v", w)
		}
		broken.Store(false)
		expect("mended", 5)
		if w := ticker.State(); w.Reason != "" {
			t.Errorf("when they do not fail any more: %+v", w)
		}
		ticker.Stop()
		expect("stopped", 0)
	})
}
