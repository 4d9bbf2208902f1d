package graphstore

import "math/bits"

// hubs holds an index from neighbour to position for every vertex with many
// neighbours: open addressing with linear probing, load at most three quarters.
//
// The hash of a neighbour has 32 bits and depends on the seed, because whoever sends
// vertices chooses their indices. In a table of 1<<b slots its leading b bits are the home slot; a slot holds the other bits
// above the position plus one, which fits in b bits because the table is larger
// than the run; zero is empty. The upper bits tell nearly all strangers apart
// without a look at the run, and 4 bytes a slot cost less than the run itself.
type hubs struct {
	list  []hubTable
	free  []uint32 // unused places in list
	arena arena    // of the tables
	seed  uint64
}

type hubTable struct {
	at   uint32
	bits uint8 // 0: unused
}

// hash mixes a neighbour with both halves of the seed; it is a bijection. The seed is a
// part of the second factor, because what is only added moves a cluster as a whole.
func (h *hubs) hash(u uint32) uint32 {
	u = (u ^ uint32(h.seed)) * 0x9e3779b1
	return (u ^ u>>15) * (0x85ebca6b + uint32(h.seed>>32)<<1)
}

// tableBits returns the size of the smallest table for n neighbours.
func tableBits(n int) uint8 { return uint8(bits.Len(uint(n + n/3))) }

// slots returns the table of a hub, given as index plus one.
func (h *hubs) slots(hub uint32) ([]uint32, uint8) {
	t := h.list[hub-1]
	return h.arena.from(t.at)[: 1<<t.bits : 1<<t.bits], t.bits
}

// add indexes a run and returns its index plus one.
func (h *hubs) add(run []uint32) (hub uint32) {
	if last := len(h.free) - 1; last >= 0 {
		hub, h.free = h.free[last]+1, h.free[:last]
	} else {
		h.list = append(h.list, hubTable{})
		hub = uint32(len(h.list))
	}
	h.build(hub, run, tableBits(len(run)))
	return hub
}

// build makes a table of 1<<b slots for the run.
func (h *hubs) build(hub uint32, run []uint32, b uint8) {
	at := h.arena.take(b)
	h.list[hub-1] = hubTable{at: at, bits: b}
	slots, _ := h.slots(hub)
	clear(slots)
	for i, u := range run {
		place(slots, b, h.hash(u), uint32(i))
	}
}

// place puts the neighbour of that hash at position i into a table with room.
func place(slots []uint32, b uint8, hash, i uint32) {
	mask := uint32(len(slots) - 1)
	slot := hash >> (32 - b)
	for slots[slot&mask] != 0 {
		slot++
	}
	slots[slot&mask] = hash<<b | (i + 1)
}

// find returns the position of u in the run.
func (h *hubs) find(hub uint32, run []uint32, u uint32) (uint32, bool) {
	slots, b := h.slots(hub)
	hash := h.hash(u)
	mask := uint32(len(slots) - 1)
	for slot := hash >> (32 - b); ; slot++ {
		x := slots[slot&mask]
		if x == 0 {
			return 0, false
		}
		if (x^hash<<b)&^mask == 0 {
			if i := x&mask - 1; run[i] == u {
				return i, true
			}
		}
	}
}

// insert indexes the entry at position i, the last of the run.
func (h *hubs) insert(hub uint32, run []uint32, i uint32) {
	slots, b := h.slots(hub)
	if 4*len(run) > 3*len(slots) {
		h.arena.give(h.list[hub-1].at, b)
		h.build(hub, run, b+1)
		return
	}
	place(slots, b, h.hash(run[i]), i)
}

// remove takes position i out of the index and gives it to the last entry of
// the run, which the caller is about to move there.
func (h *hubs) remove(hub uint32, run []uint32, i uint32) {
	slots, b := h.slots(hub)
	last := uint32(len(run) - 1)
	gap := h.slotOf(slots, b, run[i], i)
	if i != last {
		moved := h.slotOf(slots, b, run[last], last)
		slots[moved] = slots[moved]&^uint32(len(slots)-1) | (i + 1)
		run[i] = run[last]
	}
	closeGap(slots, gap, func(x uint32) uint32 { return h.hash(run[x&uint32(len(slots)-1)-1]) >> (32 - b) })
	if b > 2 && 8*len(run) < len(slots) {
		h.arena.give(h.list[hub-1].at, b)
		h.build(hub, run[:last], b-2)
	}
}

// slotOf returns the slot of u, which stands at position i.
func (h *hubs) slotOf(slots []uint32, b uint8, u, i uint32) uint32 {
	mask := uint32(len(slots) - 1)
	slot := h.hash(u) >> (32 - b)
	for slots[slot&mask]&mask != i+1 {
		slot++
	}
	return slot & mask
}

// drop forgets the index of a hub.
func (h *hubs) drop(hub uint32) {
	t := h.list[hub-1]
	h.arena.give(t.at, t.bits)
	h.list[hub-1] = hubTable{}
	h.free = append(h.free, hub-1)
}
