package group

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Rank returns the place of this worker among those that live in the order for something, 0
// for the first, and -1 where it hands its work over.
func (m *Member) Rank(of string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Index(order(m.live(), of), m.self.Worker)
}

// Places returns the place of this worker among those that estimate each of so many shards, of which
// there are to be so many copies: 0 for the first, and -1 where it does not estimate the shard. Without
// the doubted it is what they will be when those are dead who were not heard of for half the time.
func (m *Member) Places(shards, copies int, doubted bool) (places []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	among := m.live()
	if !doubted {
		among = m.undoubted()
	}
	for _, workers := range assign(among, shards, copies) {
		places = append(places, slices.Index(workers, m.self.Worker))
	}
	return places
}

// assign returns the workers that estimate each shard, in their order. Shard after shard takes the
// first of its order that has room: no worker is the first, or the second, of more than its part of
// the shards. Of a worker that goes, what it had moves, and little else.
func assign(workers []string, shards, copies int) [][]string {
	all := make([][]string, shards)
	for range min(copies, len(workers)) {
		has := map[string]int{}
		for shard := range all {
			free := slices.DeleteFunc(order(workers, "shard "+Part(shard)), func(w string) bool { return slices.Contains(all[shard], w) })
			room := slices.IndexFunc(free, func(w string) bool { return has[w]*len(workers) < shards })
			next := free[max(room, 0)] // -1: those that have room estimate this shard already
			has[next]++
			all[shard] = append(all[shard], next)
		}
	}
	return all
}

// order returns workers in the order in which they are to do something, highest random weight
// first. Of a worker that goes, only what it was first for has another first.
func order(workers []string, of string) []string {
	weight := func(worker string) uint64 { return xxhash.Sum64String(worker + "\x00" + of) }
	ordered := slices.Clone(workers)
	slices.SortFunc(ordered, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
	return ordered
}
