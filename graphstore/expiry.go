package graphstore

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// Windows say how long an assertion of a kind holds that has no time to live of
// its own, from its own time on. Zero is for ever.
type Windows struct {
	Edges, Labels, Predictions time.Duration
}

// forever is the end of what does not end.
const forever = event.Time(math.MaxInt64)

// ends knows when some things end. An end that is put off stays in the heap where
// it was and is looked up when it comes to the top, so that asserting a thing
// again, which a window makes the common case, costs no change of the heap.
//
// Invariant: for every thing in at the heap holds it at that end or before. What
// due returns depends on at alone, so the order within the heap never shows.
type ends struct {
	at   map[uint64]event.Time // nil until something ends
	heap endings               // lowest first
}

// ending is the thing to look at when a time has come.
type ending struct {
	end event.Time
	key uint64
}

// endings are a heap with the earliest on top.
type endings []ending

// Len and the methods below are those of heap.Interface; heap.Init and heap.Fix call the first
// three.
func (h endings) Len() int           { return len(h) }
func (h endings) Less(i, j int) bool { return h[i].end < h[j].end }
func (h endings) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h endings) Push(any)           { panic("graphstore: add is to be used") }
func (h endings) Pop() any           { panic("graphstore: takeLowest is to be used") }

// add does what heap.Push does, which allocates for passing an element as any: with windows,
// two to three times an event.
func (h *endings) add(e ending) {
	*h = append(*h, e)
	heap.Fix(h, len(*h)-1)
}

// takeLowest does what heap.Pop does.
func (h *endings) takeLowest() ending {
	lowest, last := (*h)[0], len(*h)-1
	h.Swap(0, last)
	if *h = (*h)[:last]; last > 0 {
		heap.Fix(h, 0)
	}
	return lowest
}

// endOf returns the end of an assertion that was made at t, or now if it does not say, with a time
// to live or else the window of its kind.
func endOf(t, now event.Time, ttl, window time.Duration) event.Time {
	if ttl == 0 {
		ttl = window
	}
	if t == 0 {
		t = now
	}
	if ttl == 0 || t > 0 && int64(ttl) > math.MaxInt64-int64(t) {
		return forever
	}
	return t + event.Time(ttl)
}

// set lets a thing end at the given time and at no other.
func (x *ends) set(key uint64, end event.Time) {
	if end == forever {
		x.clear(key)
		return
	}
	before, known := x.at[key]
	if known && before == end {
		return
	}
	if x.at == nil {
		x.at = map[uint64]event.Time{}
	}
	x.at[key] = end
	if !known || end < before {
		x.heap.add(ending{end, key})
	}
}

// end returns when a thing ends.
func (x *ends) end(key uint64) event.Time {
	if end, known := x.at[key]; known {
		return end
	}
	return forever
}

// clear lets a thing live on.
func (x *ends) clear(key uint64) { delete(x.at, key) }

// heapSlack bounds the entries of no use that the heap may hold besides as many as
// there are things with an end.
const heapSlack = 1024

// due appends the things that end at now or before, by key, and forgets them.
func (x *ends) due(now event.Time, keys []entry) []entry {
	if len(x.heap) > 2*len(x.at)+heapSlack {
		x.rebuild()
	}
	for len(x.heap) > 0 && x.heap[0].end <= now {
		e := x.heap.takeLowest()
		switch end, known := x.at[e.key]; {
		case !known:
		case end <= now:
			delete(x.at, e.key)
			keys = append(keys, entry{key: e.key, at: fromErasure})
		default:
			x.heap.add(ending{end, e.key})
		}
	}
	slices.SortFunc(keys, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return keys
}

// rebuild makes the heap hold everything once.
func (x *ends) rebuild() {
	x.heap = x.heap[:0]
	for key, end := range x.at {
		x.heap = append(x.heap, ending{end, key})
	}
	heap.Init(x.heap)
}

// sorted returns everything with an end, by key.
func (x *ends) sorted() []ending {
	keys := make([]entry, 0, len(x.at))
	ends := make([]event.Time, 0, len(x.at))
	for key, end := range x.at {
		keys = append(keys, entry{key: key, at: uint32(len(ends))})
		ends = append(ends, end)
	}
	keys, _ = sortEntries(keys, nil)
	all := make([]ending, len(keys))
	for i, e := range keys {
		all[i] = ending{ends[e.at], e.key}
	}
	return all
}
