package graphstore

import (
	"cmp"
	"slices"
)

// entry is one assertion of a batch: its key, packed so that keys sort like the Delta, and its
// index in the batch.
type entry struct {
	key uint64
	at  uint32
}

// pair packs two 32-bit numbers so that keys sort by (high, low).
func pair(high, low uint32) uint64 { return uint64(high)<<32 | uint64(low) }

// unpair undoes pair.
func unpair(key uint64) (high, low uint32) { return uint32(key >> 32), uint32(key) }

// radixShifts cut a key into digits of at most 11 bits that do not straddle its
// two halves: with fewer than 2^22 vertices only four of the six ever vary.
var radixShifts = [...]struct{ shift, bits uint }{
	{0, 11}, {11, 11}, {22, 10}, {32, 11}, {43, 11}, {54, 10},
}

// radixMin is the length below which a comparison sort is cheaper.
const radixMin = 128

// sortEntries sorts entries by key and leaves equal keys in their order, so that the last of a run
// of equal keys is the assertion that counts. It returns the sorted slice and the other one as
// scratch for the next call; either argument may hold the result. Cost: one pass for each digit
// that varies.
func sortEntries(entries, scratch []entry) (sorted, spare []entry) {
	if len(entries) < radixMin {
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
		return entries, scratch
	}
	scratch = slices.Grow(scratch[:0], len(entries))[:len(entries)]
	all, some := entries[0].key, entries[0].key
	for _, e := range entries {
		all &= e.key
		some |= e.key
	}
	varying := all ^ some
	for _, digit := range radixShifts {
		mask := uint64(1)<<digit.bits - 1
		if varying>>digit.shift&mask == 0 {
			continue
		}
		radixPass(entries, scratch, digit.shift, mask)
		entries, scratch = scratch, entries
	}
	return entries, scratch
}

// radixPass writes from to to, ordered by one digit and otherwise as it was.
func radixPass(from, to []entry, shift uint, mask uint64) {
	var start [1 << 11]uint32
	for i := range from {
		start[from[i].key>>shift&mask]++
	}
	sum := uint32(0)
	for d := range start[:mask+1] {
		start[d], sum = sum, sum+start[d]
	}
	for i := range from {
		d := from[i].key >> shift & mask
		to[start[d]] = from[i]
		start[d]++
	}
}
