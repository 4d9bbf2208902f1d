package graphstore

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// Entries must come out by key, and entries of one key in their original order, whichever
// bits of the keys vary.
func TestSortEntriesIsStable(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mask := rng.Uint64() & rng.Uint64()
		entries := make([]entry, rng.IntN(3*radixMin))
		for i := range entries {
			entries[i] = entry{key: rng.Uint64() & mask, at: uint32(i)}
			if i > 0 && rng.IntN(4) == 0 {
				entries[i].key = entries[rng.IntN(i)].key
			}
		}
		want := slices.Clone(entries)
		slices.SortStableFunc(want, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
		if got, _ := sortEntries(entries, nil); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d entries with mask %x are out of order", seed, len(want), mask)
		}
	}
}
