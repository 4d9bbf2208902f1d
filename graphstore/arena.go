package graphstore

import "math/bits"

// smallestClass is the capacity class of the smallest block, of two elements.
const smallestClass = 1

// arena hands out blocks of powers of two from one column. Freed blocks wait in
// a list for each class, linked through their first element, and a large free
// block is halved before the column grows.
type arena struct {
	data column[uint32]
	free [33]uint32 // by class: offset plus one of the first free block, or 0
	idle int        // elements in free blocks
}

func newArena(a Allocator) arena { return arena{data: newColumn[uint32](a)} }

// blank makes the arena n zeros, all in use. It keeps its memory unless a third of that
// would be spare.
func (a *arena) blank(n int) {
	if spare := cap(a.data.data) - n; spare < 0 || spare > n/2+growFreely {
		a.data.release()
		a.data = newColumn[uint32](a.data.allocator)
		a.data.reserve(n)
	}
	a.data.data = a.data.data[:0]
	a.data.resize(n)
	a.free, a.idle = [33]uint32{}, 0
}

// classOf returns the class of the smallest block that holds n elements.
func classOf(n int) uint8 {
	return uint8(max(smallestClass, bits.Len(uint(n-1))))
}

// alloc returns the offset of a block of 1<<class elements.
func (a *arena) alloc(class uint8) uint32 {
	for larger := class; int(larger) < len(a.free); larger++ {
		if a.free[larger] == 0 {
			continue
		}
		at := a.free[larger] - 1
		a.free[larger] = a.data.data[at]
		a.idle -= 1 << class
		for larger > class {
			larger--
			half := at + 1<<larger
			a.data.data[half] = a.free[larger]
			a.free[larger] = half + 1
		}
		return at
	}
	at := len(a.data.data)
	a.data.resize(at + 1<<class)
	return uint32(at)
}

// release gives a block back.
func (a *arena) release(at uint32, class uint8) {
	a.data.data[at] = a.free[class]
	a.free[class] = at + 1
	a.idle += 1 << class
}
