package auto

import (
	"math"
	"testing"

	"gqlstream/quant/stats"
)

// Evidence that swings from one record to the next must not let gamma flip between two values, and
// one that stays must be followed.
func TestEvidenceForASelectionIsAveraged(t *testing.T) {
	last, flips := (*stats.Memory)(nil), 0
	gamma := func(evidence float64) (raw, averaged float64) {
		average, seen := settled(evidence, last)
		last = &stats.Memory{Evidence: average, Seen: seen}
		return byClassOf(evidence), byClassOf(average)
	}
	before, now := 0.0, 0.0
	for i := range 200 {
		raw, settled := gamma([]float64{-7, 7, -60, 1}[i%4])
		if raw > 0.6 != (i%2 == 1) {
			t.Fatalf("record %d: gamma is %v by itself", i, raw)
		}
		if before, now = now, settled; i > 5 && math.Abs(now-before) > 0.3 {
			flips++
		}
	}
	if flips > 0 {
		t.Errorf("gamma flipped %d times", flips)
	}
	for range 3 * settledRecords {
		_, now = gamma(-60)
	}
	if now > 0.05 {
		t.Errorf("gamma is %v after evidence against a selection by class in %d records",
			now, 3*settledRecords)
	}
	if average, _ := settled(math.Inf(1), last); !math.IsInf(average, 1) {
		t.Errorf("a declared selection has the evidence %v", average)
	}
}
