package ingest

import (
	"fmt"
	"strings"
	"testing"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/request"
)

// A message with only refused events must take no more of the quarantine than a bound, say
// how many events have no entry, and not stop later messages.
func TestManyRefusalsOfAMessageAreBounded(t *testing.T) {
	b := startBroker(t, "")
	const refused = 20_000
	b.publish(event.KindEdge, strings.Repeat("{}\n", refused))
	b.edges(1, 3)
	for range 2 { // a repeated refusal is not stored again
		if edges, _ := b.follow(Resume{}); edges != 3 {
			t.Fatalf("%d edges, want 3", edges)
		}
		entries := b.quarantined(QuarantineFilter{})
		if len(entries) != messageEntriesMax {
			t.Fatalf("%d entries, want %d", len(entries), messageEntriesMax)
		}
		if e := entries[len(entries)-1]; e.More != refused-messageEntriesMax ||
			e.Index != messageEntriesMax-1 {
			t.Errorf("the last entry is of event %d and speaks of %d more", e.Index, e.More)
		}
	}
}

// A step of many refused messages must take no more of the quarantine than a bound, and
// every refusal must be counted once.
func TestManyRefusalsOfAStepAreBounded(t *testing.T) {
	var refusals []event.Refusal
	for position := range event.Position(50) {
		for index := range 300 {
			refusals = append(refusals, event.Refusal{Position: position + 1, Index: index})
		}
	}
	kept := boundEntries(refusals)
	if n := event.CountRefused(kept); len(kept) != stepEntriesMax || n != len(refusals) {
		t.Errorf("%d entries for %d of %d refusals", len(kept), n, len(refusals))
	}
}

// A long message that is refused whole must take little of the quarantine, and be published
// again as it was.
func TestALongOriginalIsOnlyInTheLog(t *testing.T) {
	b := startBroker(t, "")
	original := strings.Repeat("no event ", 20_000)
	b.publish(event.KindEdge, original)
	b.follow(Resume{})
	entries := b.quarantined(QuarantineFilter{})
	if len(entries) != 1 || entries[0].Bytes != len(original) ||
		len(entries[0].Original) != originalBytesMax {
		t.Fatalf("%d entries: %v", len(entries), brief(entries))
	}
	q, err := OpenQuarantine(testContext(t), b.js, broker.DefaultStreamNames())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Retry(testContext(t), entries[0], Correction{}); err != nil {
		t.Fatal(err)
	}
	if m, err := b.lastOfLog("gql.edge"); err != nil || string(m.Data) != original {
		t.Errorf("retried as other bytes: %v", err)
	}
	log, err := b.js.Stream(testContext(t), "GQL")
	if err == nil {
		err = log.Purge(testContext(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Retry(testContext(t), entries[0], Correction{}); err == nil {
		t.Error("an original that is gone is retried")
	}
}

// The quarantine stores only the beginning of a long refused event. A retry must not publish this
// beginning, and must not publish the whole message: the other events of the message were applied
// and may have changed since. An operator must supply the whole event.
func TestALongEventIsNotRetriedWithItsMessage(t *testing.T) {
	b := startBroker(t, "")
	long := `{"vertex": 2, "attributes": {"wrong": []`
	for i := range 20 {
		long += fmt.Sprintf(`, "a%d": %q`, i, strings.Repeat("x", 4000))
	}
	long += `}}`
	for _, message := range []string{
		`[{"vertex": 1}, ` + long + `, {"vertex": 3}]`,
		"{\"vertex\": 1}\n" + long + "\n",
	} {
		b.publish(event.KindVertex, message)
	}
	b.follow(Resume{})
	q, err := OpenQuarantine(testContext(t), b.js, broker.DefaultStreamNames())
	if err != nil {
		t.Fatal(err)
	}
	entries := b.quarantined(QuarantineFilter{})
	if len(entries) != 2 || entries[0].Bytes != len(long) {
		t.Fatalf("%d entries: %v", len(entries), brief(entries))
	}
	for _, e := range entries {
		if at, err := q.Retry(testContext(t), e, Correction{}); err == nil {
			t.Errorf("retried at %d", at)
		}
		if _, err := q.Retry(testContext(t), e, Correction{Payload: []byte(long)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Where the quarantine is full, new entries must take the place of the oldest.
func TestAFullQuarantineDiscardsItsOldest(t *testing.T) {
	b := startBroker(t, "")
	names := broker.DefaultStreamNames()
	config := broker.QuarantineConfig(names.Quarantine)
	config.MaxBytes = 64 << 10
	if _, err := b.js.UpdateStream(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	const messages = 30
	for i := range messages {
		b.publish(event.KindEdge, fmt.Sprintf("bad %d %s", i, strings.Repeat("x", 8<<10)))
	}
	b.edges(1, 3)
	if edges, _ := b.follow(Resume{}); edges != 3 {
		t.Errorf("%d edges, want 3", edges)
	}
	entries := b.quarantined(QuarantineFilter{})
	if n := len(entries); n == 0 || n > 8 || entries[n-1].Position != messages {
		t.Errorf("%d entries: %v", n, brief(entries[:0]))
	}
	q, err := OpenQuarantine(testContext(t), b.js, names)
	if err != nil {
		t.Fatal(err)
	}
	if gone := q.Discarded(); gone != messages-uint64(len(entries)) {
		t.Errorf("%d entries are counted as gone, %d of %d are there", gone, len(entries), messages)
	}
}

// A quarantine that is deleted during a run must be made again, and hold later refusals.
func TestADeletedQuarantineIsMadeAgain(t *testing.T) {
	b := startBroker(t, "")
	names := broker.DefaultStreamNames()
	w := runWriter(t, b.nc)
	refuse(t, w, []event.Refusal{{Position: 1, Index: -1}})
	if err := b.js.DeleteStream(testContext(t), names.Quarantine); err != nil {
		t.Fatal(err)
	}
	refuse(t, w, []event.Refusal{{Position: 2, Index: -1}})
	refuse(t, w, []event.Refusal{{Position: 3, Index: -1}})
	if entries := b.quarantined(QuarantineFilter{}); len(entries) != 2 || entries[0].Position != 2 {
		t.Errorf("the quarantine holds %s, want the refusals of 2 and 3", brief(entries))
	}
}

// The refusals of a step must be stored as one batch, which the broker syncs once, and each once
// where an equal run has stored some of them already.
func TestRefusalsOfAStepAreOneBatch(t *testing.T) {
	b := startBroker(t, "")
	names := broker.DefaultStreamNames()
	writers := []*QuarantineWriter{runWriter(t, b.nc), runWriter(t, b.nc)}
	refusals := func(position event.Position) (all []event.Refusal) {
		for i := range messageEntriesMax {
			all = append(all, event.Refusal{Position: position, Index: i})
		}
		return all
	}
	refuse(t, writers[0], refusals(1))
	refuse(t, writers[0], refusals(2)[:10])
	refuse(t, writers[1], refusals(1))
	refuse(t, writers[1], refusals(2))
	if entries := b.quarantined(QuarantineFilter{}); len(entries) != 2*messageEntriesMax {
		t.Fatalf("%d entries, want %d", len(entries), 2*messageEntriesMax)
	}
	stream, err := b.js.Stream(testContext(t), names.Quarantine)
	if err != nil {
		t.Fatal(err)
	}
	batches := map[string]int{}
	for i := range uint64(messageEntriesMax) {
		m, err := stream.GetMsg(testContext(t), i+1)
		if err != nil {
			t.Fatal(err)
		}
		batches[m.Header.Get(request.HeaderBatchID)]++
	}
	if len(batches) != 1 || batches[""] > 0 {
		t.Errorf("the entries of a step are in %d batches: %v", len(batches), batches)
	}
}

// A quarantine that an earlier version made takes no batches, and must take them now.
func TestAQuarantineOfAnEarlierVersionTakesBatches(t *testing.T) {
	b := startBroker(t, "")
	config := broker.QuarantineConfig(broker.DefaultStreamNames().Quarantine)
	config.AllowAtomicPublish = false
	if _, err := b.js.UpdateStream(testContext(t), config); err != nil {
		t.Fatal(err)
	}
	b.publish(event.KindEdge, "{}\n{}\n")
	b.follow(Resume{})
	stream, err := b.js.Stream(testContext(t), config.Name)
	if err != nil {
		t.Fatal(err)
	}
	if !stream.CachedInfo().Config.AllowAtomicPublish || stream.CachedInfo().State.Msgs != 2 {
		t.Errorf("the quarantine is %+v", stream.CachedInfo())
	}
}
