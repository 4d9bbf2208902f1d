package ingest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/lab/campaign"
)

// A hole anywhere in the log must stop the source before it, wherever reading
// begins. A log of ours cannot get one, since it denies deletion; these come from a
// stream that does not. GQLSTREAM_HISTORIES sets how many (make faults: 100).
func TestMissingMiddleStopsTheSource(t *testing.T) {
	count := campaign.Size(t, "GQLSTREAM_HISTORIES", 20)
	b := bareBroker(t, broker.EmbeddedConfig{})
	const length = 12
	log := b.unsafeLog()
	for seed := range uint64(count) {
		rng := rand.New(rand.NewPCG(seed, 6))
		before := seed * length // with holes of their own
		b.edges(int(before)+1, length)
		first := before + uint64(2+rng.IntN(length-3))
		gap := uint64(1 + rng.IntN(int(before+length-first)))
		for p := first; p < first+gap; p++ {
			if err := log.DeleteMsg(testContext(t), p); err != nil {
				t.Fatal(err)
			}
		}
		from := event.Position(before + 1 + rng.Uint64N(first-before-1))
		s := b.open(JetStreamConfig{Step: singles, From: Resume{Position: from}})
		t.Logf("seed %d: %d to %d are missing, read after %d", seed, first, first+gap-1, from)
		wantWrongHistory(
			t, s, event.Position(first-1),
			fmt.Sprintf("messages %d to %d are gone", first, first+gap-1),
		)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
