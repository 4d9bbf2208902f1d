package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
)

// runWriter returns a writer of the quarantine that runs until the test ends.
func runWriter(t *testing.T, nc *nats.Conn) *QuarantineWriter {
	t.Helper()
	w, err := NewQuarantineWriter(testContext(t), nc, broker.DefaultStreamNames())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// refuse writes the refusals of a step and waits until they are stored.
func refuse(t *testing.T, w *QuarantineWriter, refusals []event.Refusal) {
	t.Helper()
	if err := cmp.Or(w.Write(testContext(t), refusals), w.Settle(testContext(t))); err != nil {
		t.Fatal(err)
	}
}

// follow runs a pipeline without a core over the log: it quarantines refused events, and
// returns the number of applied edges.
func (b *testBroker) follow(from Resume) (edges int, at Resume) {
	b.t.Helper()
	w := runWriter(b.t, b.nc)
	s := b.open(
		JetStreamConfig{UntilLast: true, Step: StepConfig{EventsMax: 3, Every: -1}, From: from},
	)
	defer s.Close()
	var batch event.Batch
	for at = from; ; at = resumeAfter(&batch) {
		err := s.Next(testContext(b.t), &batch)
		if errors.Is(err, io.EOF) {
			return edges, at
		}
		if err != nil {
			b.t.Fatal(err)
		}
		refuse(b.t, w, batch.Refused)
		edges += len(batch.Edges)
	}
}

func (b *testBroker) quarantined(f QuarantineFilter) []QuarantineEntry {
	b.t.Helper()
	q, err := OpenQuarantine(testContext(b.t), b.js, broker.DefaultStreamNames())
	if err != nil {
		b.t.Fatal(err)
	}
	var all []QuarantineEntry
	if err := q.List(testContext(b.t), f, func(e QuarantineEntry) error {
		all = append(all, e)
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return all
}

func brief(entries []QuarantineEntry) []string {
	var all []string
	for _, e := range entries {
		all = append(
			all,
			fmt.Sprintf("%d/%d %s %s %s", e.Position, e.Index, e.Kind, e.Reason, e.Original),
		)
	}
	return all
}

// Poison must go to the quarantine once, with reason, position and original bytes,
// while everything else is applied; also when the same log is followed again.
func TestPoisonIsQuarantinedOnceAndTheRestApplied(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 2)
	b.publish(event.KindEdge, "\x00\xff", `[{"src":1,"dst":2,"weight":-1},{"src":4,"dst":5}]`)
	b.publish(event.KindLabel, `{"vertex":1,"label":9}`)
	if _, err := b.js.Publish(testContext(t), "gql.what", []byte("?")); err != nil {
		t.Fatal(err)
	}
	b.edges(10, 2)
	want := []string{
		"3/-1 edge malformed \x00\xff", `4/0 edge bad-weight {"src":1,"dst":2,"weight":-1}`,
		`5/0 label unknown-class {"vertex":1,"label":9}`, "6/-1 unknown unknown-kind ?",
	}
	for run := range 3 {
		if edges, _ := b.follow(Resume{}); edges != 5 {
			t.Errorf("run %d: %d edges, want 5", run, edges)
		}
		if got := brief(b.quarantined(QuarantineFilter{})); !slices.Equal(got, want) {
			t.Fatalf("run %d: quarantine has\n%q, want\n%q", run, got, want)
		}
		if run == 1 { // outside the broker's window, only the writer's own memory helps
			b.forgetIDs()
		}
	}
	if got := brief(b.quarantined(QuarantineFilter{Reason: event.BadWeight})); !slices.Equal(
		got,
		want[1:2],
	) {
		t.Errorf("by reason: %q", got)
	}
	if got := brief(b.quarantined(QuarantineFilter{Kind: "label"})); !slices.Equal(got, want[2:3]) {
		t.Errorf("by kind: %q", got)
	}
}

// forgetIDs makes the broker forget the ids of the quarantine's messages, as it
// does after its window, by making the window short.
func (b *testBroker) forgetIDs() {
	b.t.Helper()
	config := broker.QuarantineConfig(broker.DefaultStreamNames().Quarantine)
	config.Duplicates = 100 * 1e6
	if _, err := b.js.UpdateStream(testContext(b.t), config); err != nil {
		b.t.Fatal(err)
	}
	dir := b.dir
	b.stop()
	*b = *startBroker(b.t, dir)
}

// A crash between two entries of a step must neither lose nor double one.
func TestQuarantineOfAnInterruptedStepIsCompleted(t *testing.T) {
	b := startBroker(t, "")
	w := runWriter(t, b.nc)
	refusals := []event.Refusal{
		{
			Position: 7,
			Index:    2,
			Kind:     event.KindEdge,
			Reason:   event.SelfLoop,
			Original: []byte("b"),
		},
		{
			Position: 7,
			Index:    -1,
			Kind:     event.KindLabel,
			Reason:   event.Malformed,
			Original: []byte("c"),
		},
		{
			Position: 7,
			Index:    1,
			Kind:     event.KindEdge,
			Reason:   event.SelfLoop,
			Original: []byte("a"),
		},
		{
			Position: 8,
			Index:    0,
			Kind:     event.KindEdge,
			Reason:   event.SelfLoop,
			Detail:   "two\r\nlines\x00!",
			Original: []byte("d"),
		},
	}
	refuse(t, w, refusals[2:3])
	b.forgetIDs()
	refuse(t, runWriter(t, b.nc), refusals)
	var got []string
	for _, e := range b.quarantined(QuarantineFilter{}) {
		got = append(got, string(e.Original)+e.Detail)
	}
	if want := []string{"a", "c", "b", "dtwo  lines !"}; !slices.Equal(got, want) {
		t.Errorf("quarantine %q, want %q", got, want)
	}
}

// A worker of a group that comes to a step when the broker has forgotten the entries of the one
// ahead must not store them again.
func TestAWorkerThatLagsRepeatsNoEntry(t *testing.T) {
	b := startBroker(t, "")
	config := broker.QuarantineConfig(broker.DefaultStreamNames().Quarantine)
	config.Duplicates = 100 * time.Millisecond
	if _, err := b.js.UpdateStream(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	ahead, behind := runWriter(t, b.nc), runWriter(t, b.nc)
	step := func(position event.Position) []event.Refusal {
		return []event.Refusal{
			{
				Position: position,
				Kind:     event.KindEdge,
				Reason:   event.SelfLoop,
				Original: []byte("a"),
			},
			{
				Position: position,
				Index:    1,
				Kind:     event.KindLabel,
				Reason:   event.BadValue,
				Original: []byte("b"),
			},
		}
	}
	refuse(t, behind, step(1))
	refuse(t, ahead, step(2))
	mark := nats.NewMsg("gqlq.retried")
	mark.Header.Set(headerEntry, "99")
	// a message of later is not known any more, so neither are the entries
	for forgotten := false; !forgotten; {
		ack, err := b.js.PublishMsg(testContext(t), mark, jetstream.WithMsgID("later"))
		if err != nil {
			t.Fatal(err)
		}
		forgotten = !ack.Duplicate && ack.Sequence > 5
	}
	refuse(t, behind, step(2))
	refuse(t, behind, step(3))
	want := []string{
		"1/0 edge self-loop a", "1/1 label bad-value b", "2/0 edge self-loop a",
		"2/1 label bad-value b",
		"3/0 edge self-loop a", "3/1 label bad-value b",
	}
	if got := brief(b.quarantined(QuarantineFilter{})); !slices.Equal(got, want) {
		t.Errorf("quarantine %q, want %q", got, want)
	}
}

// Refusals of a new log must be stored although their positions are smaller than those of
// the old log.
// If a step is ended while the refusals of the step before still wait, these must not be lost: the
// fold that takes over does not write them again.
func TestAnEndedStepLosesNoEarlierRefusal(t *testing.T) {
	b := startBroker(t, t.TempDir())
	w, err := NewQuarantineWriter(testContext(t), b.nc, broker.DefaultStreamNames())
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for position := range event.Position(20) {
		steps := []context.Context{t.Context(), ended}
		for step, ctx := range steps {
			refusal := event.Refusal{Position: 2*position + event.Position(step), Index: -1}
			if err := w.Write(ctx, []event.Refusal{refusal}); err != nil {
				t.Fatal(err)
			}
		}
		if waiting := <-w.waiting; len(waiting) != len(steps) {
			t.Fatalf("%d refusals wait after %d steps", len(waiting), len(steps))
		}
	}
}

func TestQuarantineOfANewLogIsNotTakenForRepeats(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	b.publish(event.KindEdge, "bad")
	b.follow(Resume{})
	if err := b.js.DeleteStream(testContext(t), "GQL"); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.EnsureLog(testContext(t), b.js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	b.publish(event.KindEdge, "bad again")
	b.follow(Resume{})
	want := []string{"4/-1 edge malformed bad", "1/-1 edge malformed bad again"}
	if got := brief(b.quarantined(QuarantineFilter{})); !slices.Equal(got, want) {
		t.Errorf("quarantine %q, want %q", got, want)
	}
}

// An entry that is retried must be in the log again, as it was or corrected, and
// be marked; one that is refused again becomes a new entry.
func TestRetriedEntriesComeBackIntoTheLog(t *testing.T) {
	b := startBroker(t, "")
	b.publish(event.KindEdge, `{"src":1,"dst":1}`)
	if _, err := b.js.Publish(testContext(t), "gql.edges",
		[]byte(`{"src":4,"dst":5}`)); err != nil {
		t.Fatal(err)
	}
	edges, at := b.follow(Resume{})
	entries := b.quarantined(QuarantineFilter{})
	if edges != 0 || len(entries) != 2 {
		t.Fatalf("%d edges, %d entries", edges, len(entries))
	}
	q, err := OpenQuarantine(testContext(t), b.js, broker.DefaultStreamNames())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Retry(testContext(t), entries[1], Correction{}); err == nil {
		t.Error("an entry without a kind was retried")
	}
	for _, c := range []struct {
		entry      QuarantineEntry
		correction Correction
	}{
		{entries[0], Correction{}},
		{entries[0], Correction{Payload: []byte(`{"src":1,"dst":2}`)}},
		{entries[1], Correction{Kind: "edge"}},
	} {
		if _, err := q.Retry(testContext(t), c.entry, c.correction); err != nil {
			t.Fatal(err)
		}
	}
	if edges, _ = b.follow(at); edges != 2 {
		t.Errorf("%d edges after the retries, want 2", edges)
	}
	left := b.quarantined(QuarantineFilter{})
	if len(left) != 1 || left[0].Position != 3 || left[0].Reason != event.SelfLoop {
		t.Errorf("left: %+v", left)
	}
	if all := b.quarantined(QuarantineFilter{Retried: true}); len(all) != 3 || !all[0].Retried ||
		!all[1].Retried {
		t.Errorf("all: %+v", all)
	}
	e, err := q.Entry(testContext(t), entries[0].Sequence)
	if err != nil || !e.Retried || string(e.Original) != `{"src":1,"dst":1}` {
		t.Errorf("entry: %+v, %v", e, err)
	}
	if _, err := q.Entry(testContext(t), 999); err == nil {
		t.Errorf("entry 999: %v", err)
	}
	m, err := b.lastOfLog("gql.edge")
	if err != nil || m.Header.Get(headerRetry) != "2/-1" {
		t.Errorf("retried message: %v, %v", m, err)
	}
}

func (b *testBroker) lastOfLog(subject string) (*jetstream.RawStreamMsg, error) {
	s, err := b.js.Stream(testContext(b.t), "GQL")
	if err != nil {
		return nil, err
	}
	return s.GetLastMsgForSubject(testContext(b.t), subject)
}
