package graphstore

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"

	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// unshift inverts x ^= x >> by.
func unshift(x uint64, by uint) uint64 {
	y := x
	for done := by; done < 64; done += by {
		y = x ^ y>>by
	}
	return y
}

// inverse returns the number whose product with an odd factor is 1.
func inverse(factor uint64) uint64 {
	x := factor
	for range 6 {
		x *= 2 - factor*x
	}
	return x
}

// colliding returns numbers that have one hash all together in a store without a seed:
// the finaliser of SplitMix64 computed backwards.
func colliding(n int) []event.ID {
	ids := make([]event.ID, n)
	for i := range ids {
		x := unshift(0x12345678<<32|uint64(i), 31) * inverse(0x94d049bb133111eb)
		x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9)
		ids[i] = event.NumberID(unshift(x, 30) - 0x9e3779b97f4a7c15)
	}
	return ids
}

// probes returns how many slots the look-ups of all identities read.
func probes(t *ids) (n int) {
	mask := uint64(len(t.slots.data) - 1)
	for v := range t.entries.data {
		slot := t.home(t.entries.data[v].hash)
		for n++; uint32(t.slots.data[slot])-1 != uint32(v); n++ {
			slot = (slot + 1) & mask
		}
	}
	return n
}

// Identities chosen to have one hash must cost a seeded store no more than twice what
// others cost. Without a seed they do collide, or the attack proves nothing.
func TestSeedDefeatsCollidingIdentities(t *testing.T) {
	intern := func(seed uint64, ids []event.ID) int {
		table := newIDs(mixSeed(seed))
		for _, id := range ids {
			table.intern(id, table.hash(id))
		}
		return probes(&table)
	}
	const n = 100_000
	ordinary := make([]event.ID, n)
	for i := range ordinary {
		ordinary[i] = event.NumberID(uint64(i))
	}
	if got := intern(0, colliding(2000)); got < 2000*1999/2 {
		t.Fatalf("2,000 colliding identities take %d probes without a seed: the attack is not one", got)
	}
	for _, seed := range []uint64{1, 0xdeadbeef, 1 << 63, rand.New(rand.NewPCG(1, 2)).Uint64()} {
		if attack, fair := intern(seed, colliding(n)), intern(seed, ordinary); attack > 2*fair {
			t.Errorf("seed %#x: %d probes for colliding identities, %d for others", seed, attack, fair)
		}
	}
}

// The hash of a name must depend on every half of the seed.
func TestSeedChangesHashesOfNames(t *testing.T) {
	seen := map[uint32]uint64{}
	for bit := range 64 {
		table := ids{seed: mixSeed(1 << bit)}
		hash := table.hash(event.ID{Name: "ada"})
		if other, known := seen[hash]; known {
			t.Errorf("seeds %#x and %#x give a name one hash", table.seed, other)
		}
		seen[hash] = table.seed
	}
}

// Stores that differ in nothing but the seed must report the same changes and save the
// same bytes, and one may load what the other saved.
func TestSeedShowsInNothing(t *testing.T) {
	config := Config{Classes: 3, HubDegree: 4}
	seeded := config
	seeded.HashSeed = bits.Reverse64(12345)
	a, b := newTestStore(t, config), newTestStore(t, seeded)
	stream := eventtest.New(5, eventtest.Config{Classes: 3, Vertices: 60, Weighted: true})
	for i := range 80 {
		batch := stream.Next()
		da, ra := a.Apply(batch)
		db, rb := b.Apply(batch)
		if !reflect.DeepEqual(da, db) || !reflect.DeepEqual(ra, rb) {
			t.Fatalf("batch %d: stores with other seeds answer otherwise", i)
		}
		if i == 40 {
			files := save(t, a)
			b.Compact()
			loaded, err := Load(seeded, func(t Table) ([]byte, error) { return files[t], nil })
			if err != nil {
				t.Fatal(err)
			}
			defer loaded.Release()
			if part := differ(loaded, b); part != "" {
				t.Fatalf("a store loaded with another seed differs in %s", part)
			}
		}
	}
	files, others := save(t, a), save(t, b)
	for table, data := range files {
		if !bytes.Equal(data, others[table]) {
			t.Errorf("table %s depends on the seed", table)
		}
	}
	for _, s := range []*Store{a, b} {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}
