package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
)

// every step is one message.
var singles = StepConfig{EventsMax: 1, Every: -1}

// positions reads n steps of one message each and returns where it got to.
func positions(t *testing.T, s *JetStreamSource, n int) event.Position {
	t.Helper()
	var b event.Batch
	for range n {
		if err := s.Next(testContext(t), &b); err != nil {
			t.Fatal(err)
		}
	}
	return b.Last
}

// wantWrongHistory reads until an error, which must be one of another history and
// contain text; no event after last may be delivered.
func wantWrongHistory(t *testing.T, s *JetStreamSource, last event.Position, text string) {
	t.Helper()
	var b event.Batch
	for {
		err := s.Next(testContext(t), &b)
		if err == nil {
			if b.Last > last {
				t.Fatalf("position %d was delivered, %d was the last good one", b.Last, last)
			}
			continue
		}
		if !errors.Is(err, ErrWrongHistory) || !strings.Contains(err.Error(), text) {
			t.Fatalf("error %v, want one of a wrong history with %q", err, text)
		}
		if b.Events() > 0 {
			t.Errorf("the batch of the error holds events")
		}
		return
	}
}

// unsafeLog makes a log that allows the deletion of single messages.
func (b *testBroker) unsafeLog() jetstream.Stream {
	b.t.Helper()
	config := broker.LogConfig("GQL")
	config.DenyDelete = false
	s, err := b.js.CreateStream(testContext(b.t), config)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// A deleted message must stop the source at the first missing position, wherever
// it is, and never be jumped over.
func TestDeletedMessageStopsTheSource(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 5))
		b := bareBroker(t, broker.EmbeddedConfig{})
		log := b.unsafeLog()
		b.edges(1, 30)
		first := uint64(2 + rng.IntN(20))
		gap := uint64(1 + rng.IntN(5))
		for p := first; p < first+gap; p++ {
			if err := log.DeleteMsg(testContext(t), p); err != nil {
				t.Fatal(err)
			}
		}
		s := b.open(JetStreamConfig{Step: singles})
		wantWrongHistory(
			t, s, event.Position(first-1),
			fmt.Sprintf("messages %d to %d are gone", first, first+gap-1),
		)
		b.stop()
	}
}

// A log without its beginning must not be read from the beginning, nor from a position that
// is gone.
func TestTrimmedHistoryIsRefused(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 20)
	s := b.open(JetStreamConfig{Step: singles})
	if p := positions(t, s, 5); p != 5 {
		t.Fatalf("at %d, want 5", p)
	}
	id := s.Identity()
	log, err := b.js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	purge := func(sequence uint64) {
		t.Helper()
		if err := log.Purge(testContext(t), jetstream.WithPurgeSequence(sequence)); err != nil {
			t.Fatal(err)
		}
	}
	purge(5) // the message of the checkpoint stays
	if err := id.Check(testContext(t), b.js); err != nil {
		t.Errorf("after a purge up to the checkpoint: %v", err)
	}
	purge(10)
	if err := id.Check(testContext(t), b.js); !errors.Is(err, ErrWrongHistory) ||
		!strings.Contains(err.Error(), "messages 5 to 9 are gone") {
		t.Errorf("after a purge beyond it: %v", err)
	}
	for _, from := range []event.Position{0, 5} {
		_, err := OpenJetStream(
			testContext(t), b.js, testDecoder(t), JetStreamConfig{From: Resume{Position: from}},
		)
		if err == nil {
			t.Errorf("opened after position %d of a log that begins at 10", from)
		}
	}
	if p := positions(t, b.open(JetStreamConfig{Step: singles, From: Resume{Position: 10}}),
		1); p != 11 {
		t.Errorf("after 10 comes %d", p)
	}
	s.feed.Stop()
	if _, err := s.next(testContext(t)); !errors.Is(err, ErrWrongHistory) {
		t.Errorf("the live source opens again: %v", err)
	}
}

// A stream that is deleted, or deleted and made again, while it is read must stop
// the source, although sequences may fit.
func TestRecreatedStreamStopsTheSource(t *testing.T) {
	for name, again := range map[string]int{"deleted": 0, "shorter": 3, "longer": 30} {
		b := startBroker(t, "")
		b.edges(1, 10)
		s := b.open(JetStreamConfig{Step: singles})
		positions(t, s, 10)
		id := s.Identity()
		if err := b.js.DeleteStream(testContext(t), "GQL"); err != nil {
			t.Fatal(err)
		}
		want := "does not exist any more"
		if again > 0 {
			if _, err := broker.EnsureLog(testContext(t), b.js,
				broker.DefaultStreamNames()); err != nil {
				t.Fatal(err)
			}
			b.edges(1, again)
			want = map[int]string{3: "it ends at 3", 30: "is another one now"}[again]
		}
		t.Log(name)
		wantWrongHistory(t, s, 10, want)
		if err := id.Check(testContext(t), b.js); !errors.Is(err, ErrWrongHistory) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: identity: %v", name, err)
		}
		b.stop()
	}
}

// A source must notice at its start, or when the broker comes back, that a store was set
// back to an older copy: if the log is too short, and if other messages have replaced those
// that it read.
func TestRestoredOldStoreIsNoticed(t *testing.T) {
	for _, more := range []int{0, 10} {
		b := bareBroker(t, broker.EmbeddedConfig{Listen: "127.0.0.1:0"})
		if err := broker.EnsureStreams(testContext(t), b.js,
			broker.DefaultStreamNames()); err != nil {
			t.Fatal(err)
		}
		address := strings.TrimPrefix(b.URL(), "nats://")
		b.edges(1, 10)
		b.stop()
		old := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(old, os.DirFS(filepath.Join(b.dir, "nats"))); err != nil {
			t.Fatal(err)
		}
		b = bareBroker(t, broker.EmbeddedConfig{Dir: b.dir, Listen: address})
		b.edges(11, 5)
		s := outside(t, b.URL(), singles)
		positions(t, s, 15)
		id := s.Identity()
		b.stop()
		if err := os.RemoveAll(filepath.Join(b.dir, "nats")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(old, filepath.Join(b.dir, "nats")); err != nil {
			t.Fatal(err)
		}
		b = bareBroker(t, broker.EmbeddedConfig{Dir: b.dir})
		b.edges(100, more)
		want := "ends at 10"
		if more > 5 {
			want = "is another one now"
		}
		if err := id.Check(testContext(t), b.js); !errors.Is(err, ErrWrongHistory) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d more: identity: %v", more, err)
		}
		b.stop()
		b = bareBroker(t, broker.EmbeddedConfig{Dir: b.dir, Listen: address})
		wantWrongHistory(t, s, 15, want)
		b.stop()
	}
}

// outside opens a source on a connection through the network.
func outside(t *testing.T, url string, steps StepConfig) *JetStreamSource {
	t.Helper()
	nc, err := broker.Connect(broker.ConnectConfig{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenJetStream(testContext(t), js, testDecoder(t), JetStreamConfig{Step: steps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A broker that restarts again and again while it is read must cost neither an
// event nor a second delivery.
func TestBrokerRestartsLoseNothing(t *testing.T) {
	const restarts, each = 4, 40
	b := bareBroker(t, broker.EmbeddedConfig{Listen: "127.0.0.1:0"})
	if err := broker.EnsureStreams(testContext(t), b.js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(b.URL(), "nats://")
	s, begun := outside(t, b.URL(), singles), 0
	s.feed.Trouble = func(err error) error {
		begun++
		return s.finalError(err)
	}
	for i := range restarts {
		b.edges(1+i*each, each)
		positions(t, s, each/2) // the rest is in buffers, or not yet sent
		b.stop()
		b = bareBroker(t, broker.EmbeddedConfig{Dir: b.dir, Listen: address})
		if p := positions(t, s, each/2); int(p) != (i+1)*each {
			t.Fatalf("restart %d: at %d, want %d", i, p, (i+1)*each)
		}
	}
	if begun < restarts-1 { // the messages after the last one may all have been in buffers
		t.Errorf("begun anew %d times in %d restarts", begun, restarts)
	}
}

// A consumer that vanishes on the broker must be set up again where it was.
func TestLostConsumerIsReplaced(t *testing.T) {
	b := startBroker(t, "")
	s := b.open(JetStreamConfig{Step: singles})
	for i := range 3 {
		b.edges(i*10, 10)
		if p := positions(t, s, 10); int(p) != (i+1)*10 {
			t.Fatalf("at %d, want %d", p, (i+1)*10)
		}
		stream, err := b.js.Stream(testContext(t), "GQL")
		if err != nil {
			t.Fatal(err)
		}
		names := stream.ConsumerNames(testContext(t))
		for name := range names.Name() {
			err = errors.Join(err, stream.DeleteConsumer(testContext(t), name))
		}
		if err = errors.Join(err, names.Err()); err != nil {
			t.Fatal(err)
		}
	}
	b.edges(30, 5)
	if p := positions(t, s, 5); p != 35 {
		t.Errorf("at %d, want 35", p)
	}
}

// A repeat within the broker's window must not be stored again, and one beyond it
// comes as a message of its own.
func TestRepeatsWithinTheWindowAreDropped(t *testing.T) {
	b := startBroker(t, "")
	for range 2 {
		p, err := NewPublisher(b.nc, PublisherConfig{Producer: "same"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			payload := fmt.Appendf(nil, `{"src":%d,"dst":%d}`, i, i+1)
			if err := p.Publish(testContext(t), Outgoing{
				Kind:    event.KindEdge,
				Payload: payload,
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Flush(testContext(t)); err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	var b2 event.Batch
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Every: -1}})
	if err := s.Next(testContext(t), &b2); err != nil || len(b2.Edges) != 10 {
		t.Errorf("%d edges, %v", len(b2.Edges), err)
	}
}

// An identity must survive storage as JSON and tell streams apart that differ in
// the last message only.
func TestIdentityTellsStreamsApart(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	id, err := identityOf(t, b.js, 3)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	var other Identity
	if err := json.Unmarshal(text, &other); err != nil {
		t.Fatal(err)
	}
	if err := other.Check(testContext(t), b.js); err != nil {
		t.Errorf("read back from %s: %v", text, err)
	}
	other.Digest.Message++
	if err := other.Check(testContext(t), b.js); !errors.Is(err, ErrWrongHistory) {
		t.Errorf("another digest: %v", err)
	}
	_, err = OpenJetStream(testContext(t), b.js, testDecoder(t), JetStreamConfig{
		From: Resume{Position: 3}, Identity: &other,
	})
	if !errors.Is(err, ErrWrongHistory) {
		t.Errorf("source with another digest: %v", err)
	}
	if _, err := identityOf(t, b.js, 4); err == nil {
		t.Error("identity beyond the end")
	}
}

// Questions about the history of a log must go to the leader of its stream: a copy that
// lags answers a direct get with "message not found", which would look like a loss.
func TestHistoryIsAskedOfTheLeader(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	direct, err := b.nc.SubscribeSync("$JS.API.DIRECT.GET.>")
	if err != nil {
		t.Fatal(err)
	}
	id, err := identityOf(t, b.js, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Check(testContext(t), b.js); err != nil {
		t.Fatal(err)
	}
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := direct.Pending(); n > 0 || err != nil {
		t.Errorf("%d questions could be answered by any copy: %v", n, err)
	}
}

// An identity taken between steps must be that of the last position delivered,
// even when the source has already read beyond it.
func TestIdentityIsThatOfTheLastStep(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 1)
	b.publish(event.KindVertex, `{"vertex":1,"erase":true}`)
	b.edges(5, 1)
	s := b.open(JetStreamConfig{UntilLast: true, Step: StepConfig{Every: -1}})
	var batch event.Batch
	var lasts []event.Position
	for {
		err := s.Next(testContext(t), &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got := s.Identity()
		want, err := identityOf(t, b.js, batch.Last)
		if err != nil || got.Digest.Prefix == 0 || !got.Digest.Agrees(want.Digest) ||
			got.Position != want.Position {
			t.Errorf("after %d: identity %+v, want %+v, %v", batch.Last, got, want, err)
		}
		lasts = append(lasts, batch.Last)
	}
	if !slices.Equal(lasts, []event.Position{1, 2, 3}) {
		t.Errorf("steps end at %v", lasts)
	}
}
