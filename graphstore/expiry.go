package graphstore

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// Windows are how long an assertion of a kind holds that has no time to live of
// its own, from its own time on. Zero is for ever.
type Windows struct {
	Edges, Labels, Predictions time.Duration
}

// forever is the end of what does not end.
const forever = event.Time(math.MaxInt64)

// expiry knows when assertions end, kind by kind. It is empty when none does.
type expiry struct {
	edges       ends // by edgeKeyOf
	labels      ends // by vertex
	predictions ends // by vertex; never those of Derive
	waiting     ends // by vertex: predictions of the incoming model version
}

// ends knows when some things end. An end that is put off stays in the heap where
// it was and is looked up when it comes to the top, so that asserting a thing
// again, which a window makes the common case, costs no change of the heap.
//
// Invariant: for every thing in at the heap holds it at that end or before. What
// due returns depends on at alone, so the order within the heap never shows.
type ends struct {
	at   map[uint64]event.Time // nil until something ends
	heap []ending              // lowest first
}

// ending is the thing to look at when a time has come.
type ending struct {
	end event.Time
	key uint64
}

func compareEndings(a, b ending) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.key, b.key))
}

func earlier(a, b ending) bool { return compareEndings(a, b) < 0 }

// endOf returns when an assertion ends that was made at t, or now if it does not
// say, with a time to live or else the window of its kind.
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
		heapPush(&x.heap, ending{end, key}, earlier)
	}
}

// clear lets a thing live on.
func (x *ends) clear(key uint64) {
	if len(x.at) > 0 {
		delete(x.at, key)
	}
}

// heapSlack is how many entries of no use the heap may hold besides as many as
// there are things with an end.
const heapSlack = 1024

// due appends the things that end at now or before, by key, and forgets them.
func (x *ends) due(now event.Time, keys []entry) []entry {
	if len(x.heap) > 2*len(x.at)+heapSlack {
		x.rebuild()
	}
	for len(x.heap) > 0 && x.heap[0].end <= now {
		e := heapPop(&x.heap, earlier)
		switch end, known := x.at[e.key]; {
		case !known:
		case end <= now:
			delete(x.at, e.key)
			keys = append(keys, entry{key: e.key, at: fromErasure})
		default:
			heapPush(&x.heap, ending{end, e.key}, earlier)
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
	slices.SortFunc(x.heap, compareEndings)
}

// sorted returns everything with an end, by key.
func (x *ends) sorted() []ending {
	keys, ends := make([]entry, 0, len(x.at)), make([]event.Time, 0, len(x.at))
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
