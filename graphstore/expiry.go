package graphstore

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// expiry knows when edges with a time to live end. An end that is put off stays
// in the heap where it was and is looked up when it comes to the top, so that
// asserting an edge again costs no change of the heap.
//
// Invariant: for every edge in ends the heap holds the edge at that end or
// before. What due returns depends on ends alone.
type expiry struct {
	ends map[uint64]event.Time // by edge
	heap []ending              // lowest first
}

// ending is the edge to look at when a time has come.
type ending struct {
	end event.Time
	key uint64
}

func compareEndings(a, b ending) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.key, b.key))
}

func earlier(a, b ending) bool { return compareEndings(a, b) < 0 }

func newExpiry() expiry { return expiry{ends: map[uint64]event.Time{}} }

// endOf returns when an edge asserted at t with a time to live ends.
func endOf(t event.Time, ttl time.Duration) event.Time {
	if t > 0 && int64(ttl) > math.MaxInt64-int64(t) {
		return math.MaxInt64
	}
	return t + event.Time(ttl)
}

// set lets an edge end at the given time and at no other.
func (x *expiry) set(key uint64, end event.Time) {
	before, known := x.ends[key]
	if known && before == end {
		return
	}
	x.ends[key] = end
	if !known || end < before {
		heapPush(&x.heap, ending{end, key}, earlier)
	}
}

// clear lets an edge live on.
func (x *expiry) clear(key uint64) {
	if len(x.ends) > 0 {
		delete(x.ends, key)
	}
}

// heapSlack is how many entries of no use the heap may hold besides as many as
// there are edges with an end.
const heapSlack = 1024

// due appends the edges that end at now or before, by end, and forgets them.
func (x *expiry) due(now event.Time, keys []entry) []entry {
	if len(x.heap) > 2*len(x.ends)+heapSlack {
		x.rebuild()
	}
	for len(x.heap) > 0 && x.heap[0].end <= now {
		e := heapPop(&x.heap, earlier)
		switch end, known := x.ends[e.key]; {
		case !known:
		case end <= now:
			delete(x.ends, e.key)
			keys = append(keys, entry{key: e.key, at: fromErasure})
		default:
			heapPush(&x.heap, ending{end, e.key}, earlier)
		}
	}
	return keys
}

// sorted returns every edge with an end, by end.
func (x *expiry) sorted() []ending {
	all := make([]ending, 0, len(x.ends))
	for key, end := range x.ends {
		all = append(all, ending{end, key})
	}
	slices.SortFunc(all, compareEndings)
	return all
}

// rebuild makes the heap hold every edge once, sorted.
func (x *expiry) rebuild() { x.heap = x.sorted() }
