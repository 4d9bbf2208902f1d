package simulate

import (
	"math/bits"
	"math/rand/v2"
)

// edgeOf packs the edge {u, v} as min<<32 | max. It is never zero unless u = v = 0.
func edgeOf(u, v uint32) uint64 {
	return uint64(min(u, v))<<32 | uint64(max(u, v))
}

// edgeSet is a set of packed edges with a uniform random draw: an open-addressing table with
// linear probing, at most half full. Every edge takes exactly one slot. Zero marks a free slot.
type edgeSet struct {
	slots []uint64
	size  int
}

const edgeSlotsMin = 1 << 10

// home is the slot where the probe for an edge starts. The multiplier is the
// golden ratio (Knuth's multiplicative hashing); the high bits choose.
func (e *edgeSet) home(edge uint64) uint64 {
	h := (edge ^ edge>>32) * 0x9e3779b97f4a7c15
	return h >> (64 - bits.TrailingZeros(uint(len(e.slots))))
}

// add enters an edge and reports whether it was absent.
func (e *edgeSet) add(edge uint64) bool {
	if 2*(e.size+1) > len(e.slots) {
		e.grow()
	}
	mask := uint64(len(e.slots) - 1)
	for i := e.home(edge); ; i = (i + 1) & mask {
		switch e.slots[i] {
		case edge:
			return false
		case 0:
			e.slots[i] = edge
			e.size++
			return true
		}
	}
}

func (e *edgeSet) grow() {
	old := e.slots
	e.slots = make([]uint64, max(edgeSlotsMin, 2*len(old)))
	e.size = 0
	for _, edge := range old {
		if edge != 0 {
			e.add(edge)
		}
	}
}

// takeAny removes and returns one edge, each with the same chance. The set must
// not be empty. It draws slots until one is taken: 2 to 4 draws unless the set has
// shrunk a lot, which a network that is kept at its size does not.
func (e *edgeSet) takeAny(rng *rand.Rand) uint64 {
	for {
		i := rng.Uint64N(uint64(len(e.slots)))
		if edge := e.slots[i]; edge != 0 {
			e.free(i)
			return edge
		}
	}
}

// free empties slot i and moves up the edges that were displaced by it.
func (e *edgeSet) free(i uint64) {
	mask := uint64(len(e.slots) - 1)
	e.size--
	for j := i; ; {
		e.slots[i] = 0
		for {
			j = (j + 1) & mask
			if e.slots[j] == 0 {
				return
			}
			if home := e.home(e.slots[j]); (j-home)&mask >= (j-i)&mask {
				break
			}
		}
		e.slots[i] = e.slots[j]
		i = j
	}
}
