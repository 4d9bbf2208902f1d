package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
)

// A message that is recorded as skipped must be refused by every source that is opened
// afterwards, wherever that begins, and everything else be as before.
func TestASkippedMessageIsRefused(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	before := drain(t, b.open(JetStreamConfig{UntilLast: true, Step: singles}))
	if err := Skip(testContext(t), b.js, "GQL", Range{4, 4}); err == nil ||
		!strings.Contains(err.Error(), "1 to 3") {
		t.Errorf("a message that is not there: %v", err)
	}
	if err := Skip(testContext(t), b.js, "GQL", Range{2, 2}); err != nil {
		t.Fatal(err)
	}
	b.edges(4, 1)
	for _, from := range []event.Position{0, 1} {
		got := drain(
			t,
			b.open(JetStreamConfig{UntilLast: true, Step: singles, From: Resume{Position: from}}),
		)
		if len(got) != 5-int(from) {
			t.Fatalf("from %d: %d steps: %q", from, len(got), got)
		}
		got = got[1-from:]
		if got[1] != before[2] || strings.Contains(got[0], "{1 2}") ||
			!strings.Contains(got[0], "refused 2/-1 edge skipped") {
			t.Errorf("from %d: steps %q, were %q", from, got, before)
		}
	}
}

// A hole that is recorded as skipped must be passed, also by a reader that begins at one of
// its messages. A position behind it must be compared by its message alone.
func TestASkippedHoleIsReadOver(t *testing.T) {
	b := bareBroker(t, broker.EmbeddedConfig{})
	log := b.unsafeLog()
	b.edges(1, 9)
	s := b.open(JetStreamConfig{Step: singles})
	positions(t, s, 8)
	kept := Place{Identity: s.Identity(), RecordedBy: "a mark"}
	at5 := Identity{Stream: "GQL", Position: 5, Digest: Digest{Message: 1}}
	for p := uint64(4); p <= 6; p++ {
		if err := log.DeleteMsg(testContext(t), p); err != nil {
			t.Fatal(err)
		}
	}
	wantWrongHistory(t, b.open(JetStreamConfig{Step: singles}), 3, "run --skip 4-6")
	if err := at5.Check(testContext(t), b.js); !errors.Is(err, ErrWrongHistory) {
		t.Errorf("a place in the hole: %v", err)
	}
	if err := Skip(testContext(t), b.js, "GQL", Range{4, 6}); err != nil {
		t.Fatal(err)
	}
	if err := at5.Check(testContext(t), b.js); err != nil {
		t.Errorf("a place in a hole that is passed: %v", err)
	}
	for from, id := range map[event.Position]*Identity{0: nil, 5: &at5} {
		want := map[event.Position]int{0: 7, 5: 4}[from]
		s := b.open(JetStreamConfig{
			Step: singles, From: Resume{Position: from}, Identity: id, Recorded: []Place{kept},
			UntilLast: true,
		})
		if steps := len(drain(t, s)); steps != want {
			t.Errorf("from %d: %d steps, want %d", from, steps, want)
		}
		if s.Identity().Digest.Prefix != 0 {
			t.Error("the prefix is known although messages are gone")
		}
	}
}

// Every kept place must be compared with the log when the log is opened. Its prefix digest must be
// compared when the reader arrives there. The error must name the holder of the place.
func TestKeptPlacesAreCompared(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 9)
	s := b.open(JetStreamConfig{Step: singles})
	positions(t, s, 4)
	at4 := s.Identity()
	positions(t, s, 3)
	at7 := s.Identity()
	other, beyond := at7, at7
	other.Digest.Prefix++
	beyond.Position = 10
	open := func(id Identity) (*JetStreamSource, error) {
		return OpenJetStream(testContext(t), b.js, testDecoder(t), JetStreamConfig{
			Step: singles, From: Resume{Position: 4}, Identity: &at4,
			Recorded: []Place{{id, "the newest mark"}},
		})
	}
	if s, err := open(at7); err != nil || positions(t, s, 5) != 9 {
		t.Errorf("the same log: %v", err)
	}
	if s, err := open(other); err != nil {
		t.Errorf("a prefix is not known when a log is opened: %v", err)
	} else {
		wantWrongHistory(t, s, 6, "the newest mark: ")
	}
	other.Digest.Message++
	for want, id := range map[string]Identity{
		"the newest mark: ": other, "it ends at 9, but was read to 10": beyond,
	} {
		if _, err := open(id); !errors.Is(err, ErrWrongHistory) ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--accept-log") {
			t.Errorf("error %v, want %q and the way on", err, want)
		}
	}
	positionOnly := Identity{Stream: "GQL", Position: 10}
	if _, err := open(positionOnly); !errors.Is(err, ErrWrongHistory) {
		t.Errorf("a position beyond the end: %v", err)
	}
}

// A digest must survive its text, and a range too.
func TestDigestsAndRangesSurviveTheirText(t *testing.T) {
	for _, d := range []Digest{{}, {Message: 7}, {Message: 7, Prefix: 1 << 63}} {
		if got := ParseDigest(d.String()); got != d {
			t.Errorf("%v became %v", d, got)
		}
	}
	for _, text := range []string{"", "x", "0123", "0123456789abcdef.", "0123456789abcdef.1"} {
		if got := ParseDigest(text); got != (Digest{}) {
			t.Errorf("%q became %v", text, got)
		}
	}
	for text, want := range map[string]Range{
		"7": {7, 7}, "7-9": {7, 9}, "9-7": {}, "0": {},
		"-": {},
	} {
		if r, ok := ParseRange(text); ok != (want != Range{}) ||
			ok && (r != want || r.String() != text) {
			t.Errorf("%q became %v, %v", text, r, ok)
		}
	}
}

// A message on a subject of the log must skip nothing, whoever can be made to write it: the
// broker writes its acknowledgement to the subject that a producer names for the reply.
func TestAMessageSkipsNothing(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	for _, payload := range []string{"", `{"stream":"GQL","seq":3}`} {
		if err := b.nc.Publish("gql.skip.2", []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	ask := nats.NewMsg("gql.edge")
	ask.Reply, ask.Data = "gql.skip.1", []byte(`{"src": 7, "dst": 8}`)
	if err := errors.Join(b.nc.PublishMsg(ask), b.nc.Flush()); err != nil {
		t.Fatal(err)
	}
	b.edges(4, 1)
	for _, step := range drain(t, b.open(JetStreamConfig{UntilLast: true, Step: singles})) {
		if strings.Contains(step, "skipped") {
			t.Errorf("passed over: %s", step)
		}
	}
}

// A producer must not be able to use up the message ids of a group's ticks. The broker would drop
// the ticks as duplicates, and log time would stand still.
func TestNobodyTakesTheIDsOfTicks(t *testing.T) {
	b := startBroker(t, "")
	const every = 100 * time.Millisecond
	secret, err := TickSecret(t.Context(), b.js, "GQL")
	if err != nil {
		t.Fatal(err)
	}
	again, err := TickSecret(t.Context(), b.js, "GQL")
	if err != nil || again != secret || len(secret) < 20 {
		t.Errorf(
			"the secrets %q and %q, %v: another worker must have the same one", secret, again, err,
		)
	}
	slot := time.Now().UnixNano() / int64(every)
	for i := range int64(900) { // guesses for a minute and a half
		for _, format := range []string{"tick/%d", "tick//%d"} {
			m := nats.NewMsg("gql.edge")
			m.Data = []byte(`{"src": 1, "dst": 2}`)
			m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf(format, slot+i))
			if err := b.nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ack, err := b.js.Publish(patient, "gql.edge", []byte(`{"src": 1, "dst": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	last := func() uint64 {
		stream, err := b.js.Stream(t.Context(), "GQL")
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.LastSeq
	}
	before := ack.Sequence // of all guesses
	for range 2 {          // both workers of a group have the same ticks
		ticker := StartTicker(testContext(t), b.js,
			TickerConfig{Every: every, Secret: secret, Pending: func() bool { return true }})
		defer ticker.Stop()
	}
	for begun := time.Now(); last() < before+3; time.Sleep(every) {
		if time.Since(begun) > 15*time.Second {
			t.Fatalf("%d ticks are in the log after %v", last()-before, time.Since(begun))
		}
	}
}
