package graphstore

import (
	"fmt"
	"slices"
)

// check finds every vertex by its identity, and counts slots and bytes.
func (t *ids) check() error {
	filled, live, nameBytes, zeros := 0, 0, 0, 0
	for _, x := range t.slots.data {
		if x != 0 {
			filled++
		}
	}
	for _, b := range t.bytes.data {
		if b == 0 {
			zeros++
		}
	}
	if zeros < t.dead {
		return fmt.Errorf("%d bytes of erased names, %d bytes cleared", t.dead, zeros)
	}
	var gone []uint32
	for v := range t.entries.data {
		e := &t.entries.data[v]
		if e.size == erasedID {
			gone = append(gone, uint32(v))
			continue
		}
		live++
		if e.size > 0 {
			nameBytes += int(e.size)
		}
		id := t.ID(Vertex(v))
		if found, ok := t.Lookup(id); !ok || found != Vertex(v) || t.hash(id) != e.hash {
			return fmt.Errorf("vertex %d is not found by its identity %v", v, id)
		}
	}
	if filled != live || nameBytes+t.dead != len(t.bytes.data) {
		return fmt.Errorf("%d slots for %d identities, %d+%d bytes of %d",
			filled, live, nameBytes, t.dead, len(t.bytes.data))
	}
	if free := slices.Sorted(slices.Values(t.free)); !slices.Equal(free, gone) {
		return fmt.Errorf("free indices %v, erased %v", free, gone)
	}
	return nil
}
