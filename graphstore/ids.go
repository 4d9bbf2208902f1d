package graphstore

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"gqlstream/ingest/event"
)

// idEntry is the identity of one vertex: a number, or where its name stands in
// the arena of names. 16 bytes, so that a comparison costs one cache line.
type idEntry struct {
	word uint64 // the number, or the offset of the name
	size uint32 // 0 for a number, the name's length, or erasedID
	hash uint32 // upper half of the hash
}

// slotsMin is the size of the smallest table.
const slotsMin = 1 << 8

const erasedID = ^uint32(0)

// noVertex is no vertex: there are fewer.
const noVertex = ^uint32(0)

// ids maps identities to dense indices, both ways, through one
// open-addressing table with linear probing. A slot holds the upper half of the
// hash and the index plus one; zero is empty. The upper half's leading bits are
// the home slot and the others tell most strangers apart without a look at their
// identity, and let the table grow without hashing anything again.
//
// Invariant: every entry that is not erased is found by its identity, free holds
// exactly the erased ones, the smallest last, and the bytes of an erased name are
// zero.
type ids struct {
	entries column[idEntry]
	slots   column[uint64]
	bytes   column[uint8] // the names
	free    []uint32      // descending
	dead    int           // bytes of erased names
	seed    uint64
}

// newIDs returns a table of no identities.
func newIDs(seed uint64) ids {
	t := ids{seed: seed}
	t.slots.resize(slotsMin)
	return t
}

// hash returns the upper half of the hash of id, which depends on the seed so that
// nobody who does not know it can choose identities whose hashes are alike. Numbers go
// through the finaliser of SplitMix64, names through xxhash.
func (t *ids) hash(id event.ID) uint32 {
	if id.Name != "" {
		var d xxhash.Digest
		d.ResetWithSeed(t.seed)
		_, _ = d.WriteString(id.Name) // cannot fail
		return uint32(d.Sum64() >> 32)
	}
	x := id.Number ^ t.seed + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * (0xbf58476d1ce4e5b9 + t.seed<<1) // odd, so nothing is lost
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32((x ^ x>>31) >> 32)
}

// mixSeed spreads a seed over all bits, and leaves 0 as it is.
func mixSeed(seed uint64) uint64 {
	seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	seed = (seed ^ seed>>27) * 0x94d049bb133111eb
	return seed ^ seed>>31
}

// Lookup returns the vertex that id names. It does not allocate.
func (t *ids) Lookup(id event.ID) (Vertex, bool) {
	_, v, found := t.find(id, t.hash(id))
	return v, found
}

// glance looks many identities up at once by their hashes alone and writes to guesses
// which vertex each probably is, noVertex for none. It returns a number that means
// nothing, but whose computation reads the entries that same will compare.
//
// A look-up waits twice for memory, first for its slot and then for the entry that the
// slot names, and the processor cannot begin the next look-up meanwhile. It can begin
// the next turn of a loop that does little but read, so here the waits overlap.
func (t *ids) glance(hashes, guesses []uint32) (sum uint64) {
	for _, hash := range hashes {
		sum += t.slots.data[t.home(hash)]
	}
	mask := uint64(len(t.slots.data) - 1)
	for i, hash := range hashes {
		slot := t.home(hash)
		for t.slots.data[slot] != 0 && uint32(t.slots.data[slot]>>32) != hash {
			slot = (slot + 1) & mask
		}
		guesses[i] = uint32(t.slots.data[slot]) - 1 // an empty slot gives noVertex
	}
	for _, v := range guesses[:len(hashes)] {
		if v == noVertex {
			continue
		}
		e := &t.entries.data[v]
		sum += e.word
		if e.size > 0 && e.size != erasedID {
			sum += uint64(t.bytes.data[e.word])
		}
	}
	return sum
}

// find returns the slot that holds id, or the empty one where it would go.
func (t *ids) find(id event.ID, hash uint32) (slot uint64, v Vertex, found bool) {
	mask := uint64(len(t.slots.data) - 1)
	for slot = t.home(hash); ; slot = (slot + 1) & mask {
		x := t.slots.data[slot]
		if x == 0 {
			return slot, 0, false
		}
		if uint32(x>>32) == hash && t.same(uint32(x)-1, id) {
			return slot, Vertex(uint32(x) - 1), true
		}
	}
}

// home returns the slot in which a hash is looked for first.
func (t *ids) home(hash uint32) uint64 {
	return uint64(hash) >> (32 - bits.Len32(uint32(len(t.slots.data)-1)))
}

// same reports whether v has the identity, and is false for an erased vertex.
func (t *ids) same(v uint32, id event.ID) bool {
	e := &t.entries.data[v]
	if id.Name == "" {
		return e.size == 0 && e.word == id.Number
	}
	return int(e.size) == len(id.Name) && t.name(e) == id.Name
}

// name returns the name of an entry that has one, aliasing the arena.
func (t *ids) name(e *idEntry) string {
	return unsafe.String(&t.bytes.data[e.word], int(e.size))
}

// intern returns the vertex of id, given an index now if it had none: the lowest
// erased one, else the next.
func (t *ids) intern(id event.ID, hash uint32) Vertex {
	slot, v, found := t.find(id, hash)
	if found {
		return v
	}
	if last := len(t.free) - 1; last >= 0 {
		v, t.free = Vertex(t.free[last]), t.free[:last]
	} else {
		v = Vertex(len(t.entries.data))
		if 4*len(t.entries.data) >= 3*len(t.slots.data) {
			t.rehash(2 * len(t.slots.data))
			slot, _, _ = t.find(id, hash)
		}
		t.entries.append(idEntry{})
	}
	t.entries.data[v] = t.newEntry(id, hash)
	t.slots.data[slot] = uint64(hash)<<32 | uint64(v+1)
	return v
}

// newEntry returns the entry of a new identity. Bytes of a name are copied, because those of
// an event belong to its batch.
func (t *ids) newEntry(id event.ID, hash uint32) idEntry {
	if id.Name == "" {
		return idEntry{word: id.Number, hash: hash}
	}
	at := len(t.bytes.data)
	t.bytes.resize(at + len(id.Name))
	copy(t.bytes.data[at:], id.Name)
	return idEntry{word: uint64(at), size: uint32(len(id.Name)), hash: hash}
}

// rehash moves to a table of n slots, a power of two. Entries go in by index.
func (t *ids) rehash(n int) {
	t.slots.resize(0)
	t.slots.resize(n)
	mask := uint64(n - 1)
	for v := range t.entries.data {
		e := &t.entries.data[v]
		if e.size == erasedID {
			continue
		}
		slot := t.home(e.hash)
		for t.slots.data[slot] != 0 {
			slot = (slot + 1) & mask
		}
		t.slots.data[slot] = uint64(e.hash)<<32 | uint64(v+1)
	}
}

// erase forgets the identity of v. Its index is not given away before release.
func (t *ids) erase(v Vertex) {
	e := &t.entries.data[v]
	if e.size > 0 {
		clear(t.bytes.data[e.word : e.word+uint64(e.size)])
		t.dead += int(e.size)
	}
	t.removeSlot(v, e.hash)
	*e = idEntry{size: erasedID}
}

// release lets the indices of vertices that were erased, in ascending order, be given away.
func (t *ids) release(erased []Vertex) {
	before := len(t.free)
	t.free = append(t.free, make([]uint32, len(erased))...)
	for end := len(t.free) - 1; len(erased) > 0; end-- { // the smallest of both lists comes last
		if before > 0 && t.free[before-1] < uint32(erased[0]) {
			before--
			t.free[end] = t.free[before]
		} else {
			t.free[end], erased = uint32(erased[0]), erased[1:]
		}
	}
}

// removeSlot empties the slot of v and closes the gap.
func (t *ids) removeSlot(v Vertex, hash uint32) {
	mask := uint64(len(t.slots.data) - 1)
	gap := t.home(hash)
	for uint32(t.slots.data[gap]) != uint32(v+1) {
		gap = (gap + 1) & mask
	}
	closeGap(t.slots.data, gap, func(slot uint64) uint64 { return t.home(uint32(slot >> 32)) })
}

// closeGap empties a slot of a table with linear probing; entries further on move back
// unless that would put them before their home (Knuth, 6.4, algorithm R).
func closeGap[T uint32 | uint64](slots []T, gap T, home func(T) T) {
	mask := T(len(slots) - 1)
	for next := (gap + 1) & mask; slots[next] != 0; next = (next + 1) & mask {
		if (next-home(slots[next]))&mask >= (next-gap)&mask {
			slots[gap] = slots[next]
			gap = next
		}
	}
	slots[gap] = 0
}

// Erased reports whether v was erased and its index not yet given to another.
func (t *ids) Erased(v Vertex) bool { return t.entries.data[v].size == erasedID }

// ID returns the name of v: a copy, and the zero ID when v is erased, see Erased.
func (t *ids) ID(v Vertex) event.ID {
	e := &t.entries.data[v]
	switch e.size {
	case erasedID:
		return event.ID{}
	case 0:
		return event.NumberID(e.word)
	}
	return event.ID{Name: string(t.bytes.data[e.word : e.word+uint64(e.size)])}
}

// restore appends an identity as String writes it, or an erased one. It returns an
// index that stands already if the identity does.
func (t *ids) restore(text string, live bool) Vertex {
	v := Vertex(len(t.entries.data))
	if !live {
		t.entries.append(idEntry{size: erasedID})
		t.free = append(t.free, uint32(v)) // compact sorts them
		return v
	}
	id, free := event.ParseID(text), t.free
	t.free = nil
	v = t.intern(id, t.hash(id))
	t.free = free
	return v
}

// compact writes the names in order of vertices and makes the table as small as
// its load allows.
func (t *ids) compact() {
	var bytes column[uint8]
	bytes.reserve(len(t.bytes.data) - t.dead)
	for v := range t.entries.data {
		if e := &t.entries.data[v]; e.size != 0 && e.size != erasedID {
			at := len(bytes.data)
			bytes.resize(at + int(e.size))
			copy(bytes.data[at:], t.name(e))
			e.word = uint64(at)
		}
	}
	t.bytes, t.dead = bytes, 0
	slices.SortFunc(t.free, func(a, b uint32) int { return cmp.Compare(b, a) })
	n := slotsMin
	for 4*len(t.entries.data) >= 3*n {
		n *= 2
	}
	t.rehash(n)
}

// len returns the number of vertices, those erased included.
func (t *ids) len() int { return len(t.entries.data) }

// names are strings by index in order of first mention.
type names struct {
	names []string
	index map[string]uint32
}

// add gives a name the next index. It keeps a copy.
func (n *names) add(name string) {
	name = strings.Clone(name)
	n.index[name] = uint32(len(n.names))
	n.names = append(n.names, name)
}
