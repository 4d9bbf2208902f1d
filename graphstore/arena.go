package graphstore

import "math/bits"

// A page holds this many elements, 256 KiB of them when they have four bytes.
const (
	pageBits = 16
	pageSize = 1 << pageBits
	pageMask = pageSize - 1
)

// smallestClass is the capacity class of the smallest block, of two elements.
const smallestClass = 1

// pages is a vector that grows without ever copying what it holds: each span of memory
// stays where it is. A span is one page, or as many as one large block needs.
//
// One Arrow buffer that doubles would be simpler, and was used before; but then every
// growth leaves a copy of the whole behind, so a graph of 23 bytes an edge took 59.
type pages[T fixed] struct {
	list  [][]T       // by number of the page: its elements, to the end of its span
	spans []column[T] // the memory behind them
}

// from returns the elements from index at on, to the end of the span.
func (p *pages[T]) from(at uint32) []T { return p.list[at>>pageBits][at&pageMask:] }

// clone returns a copy, to be read.
func (p *pages[T]) clone() (copied pages[T]) {
	for i := range p.spans {
		copied.add(p.spans[i].clone())
	}
	return copied
}

// extend adds a span of n elements, a multiple of the page size, all zero.
func (p *pages[T]) extend(n int) {
	var span column[T]
	span.reserve(n)
	span.resize(n)
	p.add(span)
}

func (p *pages[T]) add(span column[T]) {
	p.spans = append(p.spans, span)
	n := len(span.data)
	for from := 0; from < n; from += pageSize {
		p.list = append(p.list, span.data[from:n:n])
	}
}

// fit makes the vector as long as another one, span by span.
func (p *pages[T]) fit(other *pages[uint32]) {
	for n := len(p.list); n < len(other.list); n = len(p.list) {
		p.extend(len(other.list[n]))
	}
}

// arena hands out blocks of powers of two elements, addressed by 32-bit offsets. Freed
// blocks wait in a list for each class, linked through their first element, and a
// large free block is halved before the arena grows.
type arena struct {
	pages[uint32]
	used int        // elements in blocks, those in free blocks included
	free [33]uint32 // by class: offset plus one of the first free block, or 0
	idle int        // elements in free blocks
	// given counts what was given back since the last compaction; unlike idle, it follows from the events.
	given int
}

// classOf returns the class of the smallest block that holds n elements.
func classOf(n int) uint8 {
	return uint8(max(smallestClass, bits.Len(uint(n-1))))
}

// take returns the offset of a block of 1<<class elements.
func (a *arena) take(class uint8) uint32 {
	for larger := class; int(larger) < len(a.free); larger++ {
		if a.free[larger] == 0 {
			continue
		}
		at := a.free[larger] - 1
		a.free[larger] = a.from(at)[0]
		a.idle -= 1 << class
		for larger > class {
			larger--
			a.link(at+1<<larger, larger)
		}
		return at
	}
	return a.append(class)
}

// append returns a block behind the last one. When the last page has less room than
// that, its rest becomes free blocks, because a block never crosses into another span.
func (a *arena) append(class uint8) uint32 {
	size := 1 << class
	if rest := -a.used & pageMask; rest < size {
		for rest > 0 {
			half := uint8(bits.Len(uint(rest)) - 1)
			a.link(uint32(a.used), half)
			a.idle += 1 << half
			a.used += 1 << half
			rest -= 1 << half
		}
		a.extend(max(size, pageSize))
	}
	at := uint32(a.used)
	a.used += size
	return at
}

// give takes a block back.
func (a *arena) give(at uint32, class uint8) {
	a.link(at, class)
	a.idle += 1 << class
	a.given += 1 << class
}

// link puts a block at the head of the list of its class.
func (a *arena) link(at uint32, class uint8) {
	a.from(at)[0] = a.free[class]
	a.free[class] = at + 1
}

// idleSlack bounds the elements that may be given back besides half as many as are in use.
const idleSlack = 1 << 20

// givenTooMuch reports whether an arena should be compacted. It bounds memory and
// keeps offsets within 32 bits; random arrival stays below it.
func (a *arena) givenTooMuch() bool { return 2*a.given > a.used-a.idle+2*idleSlack }
