package posterior

import (
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

// around keeps sums over the vertices one and two steps away, which posteriors read. A vertex
// that changes adds its difference at its neighbours once it is large enough; see Options. The
// sums are of integers, because the order of the neighbours must not show.
type around struct {
	classes int
	counts  []uint32 // n x K: c1
	degree  []uint32 // n
	sums    []uint64 // n x (1 + 2 K): of the words of the neighbours; see outgoing
	owes    []uint64 // n: by how much neighbours have moved in all since pi(v) was computed, in units of 1/event.One

	told   []uint32   // n: of one that has moved, 1 + the slot with what its neighbours know, else 0
	slots  []outgoing // of told
	free   []uint32   // those that nobody has
	moved  []Vertex   // since the last spread
	marked []bool     // n: in moved
	now    outgoing   // scratch, as news
	news   outgoing   // what a vertex tells now less what it told
}

// outgoing is the contribution of a vertex to the sums of its neighbours.
type outgoing struct {
	words  []uint64 // 1 + 2 K: 1 if there is a g, else 0; g in units of 1/event.One; c1 over the number of neighbours in units of 1/unit
	degree uint32
	used   int // of the words; those behind are 0, as c1 mostly is in news, and all words while little is predicted
}

// trim sets used.
func (o *outgoing) trim() {
	for o.used = len(o.words); o.used > 0 && o.words[o.used-1] == 0; {
		o.used--
	}
}

// words returns what the neighbours of v say in all: how many have a g, the sum of these, and that of c1/d.
func (a *around) words(v Vertex) (hears uint64, heard, walks []uint64) {
	k := a.classes
	row := a.sums[int(v)*(1+2*k):][:1+2*k]
	return row[0], row[1 : 1+k], row[1+k:]
}

func newAround(classes int) around {
	return around{classes: classes, now: newOutgoing(classes), news: newOutgoing(classes)}
}

func newOutgoing(classes int) outgoing {
	return outgoing{words: make([]uint64, 1+2*classes)}
}

func (a *around) grow(n int) {
	have, k := len(a.degree), a.classes
	if n <= have {
		return
	}
	a.counts = append(a.counts, make([]uint32, (n-have)*k)...)
	a.degree = append(a.degree, make([]uint32, n-have)...)
	a.sums = append(a.sums, make([]uint64, (n-have)*(1+2*k))...)
	a.owes = append(a.owes, make([]uint64, n-have)...)
	a.told = append(a.told, make([]uint32, n-have)...)
	a.marked = append(a.marked, make([]bool, n-have)...)
}

// read sets o to what v tells with these votes and this prediction.
func (a *around) read(o *outgoing, v Vertex, votes neighborhood.Votes, prediction []uint32) {
	k := a.classes
	mean, shares := o.words[1:1+k], o.words[1+k:]
	defer o.trim()
	clear(o.words)
	o.degree = a.degree[v]
	if votes.Count > 0 || prediction != nil {
		o.words[0] = 1
	}
	for i, count := range a.counts[int(v)*k:][:k] {
		if count > 0 {
			shares[i] = uint64(count) * unit / uint64(max(o.degree, 1))
		}
	}
	if votes.Count > 0 {
		for i, x := range votes.Sum {
			mean[i] = x / uint64(votes.Count)
		}
		return
	}
	for i, x := range prediction {
		mean[i] = uint64(x)
	}
}

// apart returns by how much two tell other things at most, in units of 1/event.One, rounded
// up: 0 if they are the same.
func (o *outgoing) apart(p *outgoing) (most uint64) {
	if o.words[0] != p.words[0] {
		return math.MaxUint32
	}
	if o.degree != p.degree {
		most = 1
	}
	k := len(o.words) / 2
	for i := 1; i <= k; i++ {
		most = max(most, distance(o.words[i], p.words[i]), (distance(o.words[k+i], p.words[k+i])+unit/event.One-1)/(unit/event.One))
	}
	return most
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// tell adds what o tells to the sums of a neighbour u, or takes it from them.
func (a *around) tell(u Vertex, o *outgoing, sign int) {
	times, sums := uint64(sign), a.sums[int(u)*len(o.words):][:o.used] // two's complement: -1 subtracts
	for i, x := range o.words[:len(sums)] {
		sums[i] += times * x
	}
}

// remember keeps what the neighbours of v know of it, before its first change.
func (a *around) remember(view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums, v Vertex) {
	if a.marked[v] {
		return
	}
	a.marked[v] = true
	a.moved = append(a.moved, v)
	if a.told[v] > 0 {
		return
	}
	if len(a.free) == 0 {
		a.free = append(a.free, uint32(len(a.slots)))
		a.slots = append(a.slots, newOutgoing(a.classes))
	}
	slot := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	units, _ := neighborhood.PredictionBefore(view, delta, v)
	a.read(&a.slots[slot], v, sums.Before(v), units)
	a.told[v] = slot + 1
}

// known returns what the neighbours of v, which is remembered, know of it.
func (a *around) known(v Vertex) *outgoing { return &a.slots[a.told[v]-1] }

// link follows an edge that appeared or, with sign -1, is gone. Both ends are remembered.
func (a *around) link(u, v Vertex, sign int) {
	a.tell(u, a.known(v), sign)
	a.tell(v, a.known(u), sign)
	a.degree[u] += uint32(sign)
	a.degree[v] += uint32(sign)
}

// count counts a neighbour of v that calibrates, at either end of an edge's life.
func (a *around) count(v Vertex, class event.Class, sign int) {
	if class != event.NoClass {
		a.counts[int(v)*a.classes+int(class)] += uint32(sign)
	}
}

// spread has v tell its neighbours how it has moved, unless that may be missed, and calls touch for those
// that have heard of more on average since they were touched than may be missed.
func (a *around) spread(view graphstore.View, sums *neighborhood.Sums, v Vertex, m missed, touch func(Vertex)) {
	told := a.known(v)
	a.read(&a.now, v, sums.Votes(v), view.Prediction(v))
	apart := told.apart(&a.now)
	if apart > 0 && apart <= m.untold {
		return
	}
	for i, x := range a.now.words {
		a.news.words[i] = x - told.words[i] // two's complement
	}
	a.news.trim()
	apart = max(apart, 1) // a label that was computed meanwhile left out what v would have told then; see own
	for _, u := range view.Neighbors(v) {
		a.tell(u, &a.news, 1)
		if a.owes[u] += apart; a.owes[u] > m.unread*a.sums[int(u)*len(told.words)] {
			touch(u)
		}
	}
	a.free = append(a.free, a.told[v]-1)
	a.told[v] = 0
}

// late lists the vertices whose neighbours do not know how they have moved, sorted.
func (a *around) late() (list []Vertex) {
	for v, slot := range a.told {
		if slot > 0 {
			list = append(list, Vertex(v))
		}
	}
	return list
}

// own returns the contribution of the label of v to c2 of v itself, in units of 1/unit. The
// views of a vertex leave it out.
func (a *around) own(view graphstore.View, v Vertex, class event.Class) (sum uint64) {
	for _, u := range view.Neighbors(v) {
		count, degree := uint64(a.counts[int(u)*a.classes+int(class)]), uint64(a.degree[u])
		sum += count*unit/degree - (count-1)*unit/degree
	}
	return sum
}

// recount counts everything from nothing.
func (a *around) recount(view graphstore.View, sums *neighborhood.Sums) {
	*a = newAround(a.classes)
	a.grow(view.Vertices())
	for v := range Vertex(view.Vertices()) {
		a.degree[v] = uint32(len(view.Neighbors(v)))
		if class := calibrates(view, v); class != event.NoClass {
			for _, u := range view.Neighbors(v) {
				a.count(u, class, 1)
			}
		}
	}
	width := 1 + 2*a.classes
	told := make([]uint64, view.Vertices()*width) // the words of each vertex
	parallel.Ranges(view.Vertices(), func(from, to int) {
		for v := from; v < to; v++ {
			a.read(&outgoing{words: told[v*width:][:width]}, Vertex(v), sums.Votes(Vertex(v)), view.Prediction(Vertex(v)))
		}
	})
	parallel.Ranges(view.Vertices(), func(from, to int) {
		for v := from; v < to; v++ {
			sum := a.sums[v*width:][:width]
			for _, u := range view.Neighbors(Vertex(v)) {
				for i, x := range told[int(u)*width:][:width] {
					sum[i] += x
				}
			}
		}
	})
}
