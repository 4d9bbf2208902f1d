package graphstore

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// Windows are the default lifetimes of assertions, by kind, counted from the assertion's own time.
// Zero is for ever.
type Windows struct {
	Edges, Labels, Predictions time.Duration
}

// forever is the end of an entry that does not end.
const forever = event.Time(math.MaxInt64)

// ends holds end times by key. If an end is postponed, its entry stays in the heap and is looked up
// when it reaches the top. So asserting something again, which a window makes the common case, does
// not change the heap.
//
// Invariant: for every key in at, the heap has an entry at that end or before. The results of due
// depend on at alone, so the order within the heap never shows.
type ends struct {
	at   map[uint64]event.Time // nil until something ends
	heap endings               // lowest first
}

// ending is a key to look at when a time has come.
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

// add is heap.Push without allocations: heap.Push passes an element as any, which costs two or
// three allocations an event with windows.
func (h *endings) add(e ending) {
	*h = append(*h, e)
	heap.Fix(h, len(*h)-1)
}

// takeLowest is heap.Pop, likewise.
func (h *endings) takeLowest() ending {
	lowest, last := (*h)[0], len(*h)-1
	h.Swap(0, last)
	if *h = (*h)[:last]; last > 0 {
		heap.Fix(h, 0)
	}
	return lowest
}

// endOf returns the end of an assertion made at time t: after its own time to
// live, or else after the window of its kind.
func endOf(t event.Time, ttl, window time.Duration) event.Time {
	if ttl == 0 {
		ttl = window
	}
	if ttl == 0 || t > 0 && int64(ttl) > math.MaxInt64-int64(t) {
		return forever
	}
	return t + event.Time(ttl)
}

// set makes an entry end at the given time and no other.
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

// end returns the end of an entry.
func (x *ends) end(key uint64) event.Time {
	if end, known := x.at[key]; known {
		return end
	}
	return forever
}

// clear makes an entry last for ever.
func (x *ends) clear(key uint64) { delete(x.at, key) }

// heapSlack bounds the outdated entries of the heap, beyond as many as there are entries with an
// end.
const heapSlack = 1024

// due appends the keys that end at now or before, in order, and removes them.
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
			keys = append(keys, entry{key: e.key, at: absent})
		default:
			x.heap.add(ending{end, e.key})
		}
	}
	slices.SortFunc(keys, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return keys
}

// rebuild makes the heap hold every entry once.
func (x *ends) rebuild() {
	x.heap = x.heap[:0]
	for key, end := range x.at {
		x.heap = append(x.heap, ending{end, key})
	}
	heap.Init(x.heap)
}

// sorted returns every entry with an end, by key.
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
