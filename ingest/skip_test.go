package ingest

import (
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// A message that is recorded as skipped must be refused by every source that is opened
// afterwards, wherever that begins, and everything else be as before.
func TestASkippedMessageIsPassedOver(t *testing.T) {
	b := startBroker(t, "")
	b.edges(1, 3)
	before := drain(t, b.open(JetStreamConfig{UntilLast: true, Step: singles}))
	if err := Skip(testContext(t), b.js, "GQL", 4); err == nil ||
		!strings.Contains(err.Error(), "1 to 3") {
		t.Errorf("a message that is not there: %v", err)
	}
	if err := Skip(testContext(t), b.js, "GQL", 2); err != nil {
		t.Fatal(err)
	}
	b.edges(4, 1)
	for _, from := range []event.Position{0, 1} {
		got := drain(
			t,
			b.open(JetStreamConfig{UntilLast: true, Step: singles, From: Resume{Position: from}}),
		)
		if len(got) != 6-int(from) {
			t.Fatalf("from %d: %d steps: %q", from, len(got), got)
		}
		got = got[1-from:]
		if got[1] != before[2] || strings.Contains(got[0], "{1 2}") ||
			!strings.Contains(got[0], "refused 2/-1 edge skipped") {
			t.Errorf("from %d: steps %q, were %q", from, got, before)
		}
		if strings.Contains(got[2], "refused") {
			t.Errorf("from %d: the record of the skip: %s", from, got[2])
		}
	}
}
