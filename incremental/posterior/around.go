package posterior

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

// around keeps sums over the vertices one and two steps away, which posteriors read. A vertex
// that changes adds its difference at its neighbours once it is large enough; see New. The
// sums are of integers, because the order of the neighbours must not show.
type around struct {
	classes int
	counts  []uint32 // n x K: c1
	sums    words    // n rows: by how much neighbours have moved in all since pi was computed, in units of 1/unit; then sums of what they tell

	told   words    // n rows: what the neighbours of a vertex know of it
	late   []bool   // n: the vertex tells something else now
	moved  []Vertex // since the last spread
	marked []bool   // n: in moved
	now    words    // scratch, as news
	news   words    // what a vertex tells now less what it told
}

// words are rows of 2 + 2K, each what a vertex contributes to the sums of its neighbours: nothing yet; 1 if there is a g,
// else 0; g; c1 over the number of neighbours; both in units of 1/unit. They are short because what a vertex tells is
// mostly a wait for the rows of its neighbours.
type words []uint32

const (
	unit = 1 << 16
	// neighboursMost is the number of neighbours up to which their sums fit. A vertex of more reads no h and no c2: its
	// own neighbours say all.
	neighboursMost = 1<<16 - 1
)

func newAround(classes int) around {
	return around{classes: classes, now: make(words, 2+2*classes), news: make(words, 2+2*classes)}
}

func (a *around) grow(n int) {
	have, k := len(a.late), a.classes
	if n <= have {
		return
	}
	a.counts = append(a.counts, make([]uint32, (n-have)*k)...)
	a.sums = append(a.sums, make(words, (n-have)*len(a.now))...)
	a.told = append(a.told, make(words, (n-have)*len(a.now))...)
	a.late = append(a.late, make([]bool, n-have)...)
	a.marked = append(a.marked, make([]bool, n-have)...)
}

// row returns a row.
func (a *around) row(of words, at int) words { return of[at*len(a.now):][:len(a.now)] }

// heard returns what the neighbours of v say in all: how many have a g, the sum of these, and that of c1/d. It is not ok
// if they are too many.
func (a *around) heard(view graphstore.View, v Vertex) (hears uint32, heard, walks words, ok bool) {
	row := a.row(a.sums, int(v))
	return row[1], row[2 : 2+a.classes], row[2+a.classes:], len(view.Neighbors(v)) <= neighboursMost
}

// unread returns by how much the neighbours of v have moved in all since pi(v) was computed.
func (a *around) unread(v Vertex) *uint32 { return &a.sums[int(v)*len(a.now)] }

// read sets row to what v tells.
func (a *around) read(row words, view graphstore.View, sums *neighborhood.Sums, v Vertex) {
	k, neighbours := a.classes, len(view.Neighbors(v))
	mean, shares := row[2:2+k], row[2+k:]
	clear(row)
	for i, count := range a.counts[int(v)*k:][:k] {
		if count > 0 {
			shares[i] = share(count, neighbours)
		}
	}
	if votes := sums.Votes(v); votes.Count > 0 {
		row[1] = 1
		scale := unit / (float64(votes.Count) * event.One)
		for i, x := range votes.Sum {
			mean[i] = uint32(float64(float64(x)*scale) + 0.5)
		}
		return
	}
	for i, x := range view.Prediction(v) {
		row[1], mean[i] = 1, (x+event.One/unit/2)/(event.One/unit)
	}
}

// share returns a part of so many neighbours in units of 1/unit.
func share(count uint32, neighbours int) uint32 {
	return uint32(uint64(count) * unit / uint64(max(neighbours, 1)))
}

// compare sets news to what now tells otherwise than told, with by how much at most in front: 0 if they are the same. It
// returns news without the words behind that are 0, as c1 mostly is.
func (a *around) compare(told words) words {
	used, most := 0, uint32(0)
	for i := 1; i < len(told); i++ {
		change := a.now[i] - told[i] // two's complement
		if a.news[i] = change; change != 0 {
			used, most = i+1, max(most, min(change, -change))
		}
	}
	if a.now[1] != told[1] {
		most = unit
	}
	a.news[0] = most
	return a.news[:used]
}

// tell adds what a row tells to the sums of a neighbour u, or takes it from them.
func (a *around) tell(u Vertex, row words, sign int) {
	times, sums := uint32(sign), a.row(a.sums, int(u)) // two's complement: -1 subtracts
	for i := 1; i < len(sums); i++ {
		sums[i] += times * row[i]
	}
}

// move notes that v may tell something else from now on.
func (a *around) move(v Vertex) {
	if !a.marked[v] {
		a.marked[v] = true
		a.moved = append(a.moved, v)
	}
}

// link follows an edge that appeared or, with sign -1, is gone.
func (a *around) link(u, v Vertex, sign int) {
	a.tell(u, a.row(a.told, int(v)), sign)
	a.tell(v, a.row(a.told, int(u)), sign)
}

// count counts a neighbour of v that calibrates, at either end of an edge's life.
func (a *around) count(v Vertex, class event.Class, sign int) {
	if class != event.NoClass {
		a.counts[int(v)*a.classes+int(class)] += uint32(sign)
	}
}

// spread has v tell its neighbours how it has moved, unless that may be missed, and calls touch for those
// that have heard of more on average since they were computed than may be missed.
func (a *around) spread(view graphstore.View, sums *neighborhood.Sums, v Vertex, m bars, touch func(Vertex)) {
	a.read(a.now, view, sums, v)
	told := a.row(a.told, int(v))
	news, neighbours := a.compare(told), view.Neighbors(v)
	apart := a.news[0]
	if a.late[v] = apart > 0 && apart <= m.untold; a.late[v] {
		return
	}
	copy(told, a.now)
	a.news[0] = max(apart, 1) // a label that was computed meanwhile left out what v would have told then; see own
	news = a.news[:max(len(news), 1)]
	for _, u := range neighbours {
		sums := a.sums[int(u)*len(a.now):][:len(news)]
		for i, x := range news {
			sums[i] += x
		}
	}
	for _, u := range neighbours { // in a loop of its own, so that the one above has no branch that waits for memory
		if sums := a.sums[int(u)*len(a.now):][:2]; sums[0] > m.unread*sums[1] {
			touch(u)
		}
	}
}

// own returns the contribution of the label of v to c2 of v itself, in units of 1/unit. The
// views of a vertex leave it out.
func (a *around) own(view graphstore.View, v Vertex, class event.Class) (sum uint32) {
	for _, u := range view.Neighbors(v) {
		count := a.counts[int(u)*a.classes+int(class)]
		neighbours := len(view.Neighbors(u))
		sum += share(count, neighbours) - share(count-1, neighbours)
	}
	return sum
}

// recount counts everything from nothing.
func (a *around) recount(view graphstore.View, sums *neighborhood.Sums) {
	*a = newAround(a.classes)
	a.grow(view.Vertices())
	for v := range Vertex(view.Vertices()) {
		if class := calibrates(view, v); class != event.NoClass {
			for _, u := range view.Neighbors(v) {
				a.count(u, class, 1)
			}
		}
	}
	parallel.Ranges(view.Vertices(), func(from, to int) {
		for v := Vertex(from); v < Vertex(to); v++ {
			a.read(a.row(a.told, int(v)), view, sums, v)
		}
	})
	parallel.Ranges(view.Vertices(), func(from, to int) {
		for v := Vertex(from); v < Vertex(to); v++ {
			for _, u := range view.Neighbors(v) {
				a.tell(v, a.row(a.told, int(u)), 1)
			}
		}
	})
}
