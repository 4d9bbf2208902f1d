package posterior

import (
	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// around counts, for every vertex, the calibration labels among its neighbours, and notes
// which vertices changed in what their neighbours read of them.
type around struct {
	classes int
	counts  []uint32 // n x K: c1
	changed []bool   // n: g or c1/d may be another one than at the last Flush
}

const (
	// unit is one in the integers that h and c2 are summed in, so that the order of the
	// neighbours does not show.
	unit = 1 << 16
	// neighboursMost is the number of neighbours up to which these sums fit. A vertex of more
	// reads no h and no c2: its own neighbours say all.
	neighboursMost = 1<<16 - 1
)

func (a *around) grow(n int) {
	if have := len(a.changed); n > have {
		a.counts = append(a.counts, make([]uint32, (n-have)*a.classes)...)
		a.changed = append(a.changed, make([]bool, n-have)...)
	}
}

// of returns c1(v).
func (a *around) of(v Vertex) []uint32 { return a.counts[int(v)*a.classes:][:a.classes] }

// count counts a neighbour of v that calibrates, at either end of an edge's life.
func (a *around) count(v Vertex, class event.Class, sign int) {
	if class != event.NoClass {
		a.of(v)[class] += uint32(sign) // two's complement: -1 subtracts
	}
}

// recount counts the labels of all neighbours from nothing.
func (a *around) recount(view graphstore.View) {
	*a = around{classes: a.classes}
	a.grow(view.Vertices())
	for v := range Vertex(view.Vertices()) {
		if class := calibrates(view, v); class != event.NoClass {
			for _, u := range view.Neighbors(v) {
				a.count(u, class, 1)
			}
		}
	}
}

// share returns a part of so many neighbours in units of 1/unit.
func share(count uint32, neighbours int) uint32 {
	return uint32(uint64(count) * unit / uint64(max(neighbours, 1)))
}

// readNext adds up what the neighbours of the vertex that is being read say of theirs: g in
// next, and c1 over their number in walks, which leaves out a label of class own at the vertex
// itself. The vertex has a prediction, so each of its neighbours has a g.
func (in *Reader) readNext(neighbours []Vertex, own event.Class) {
	for _, u := range neighbours {
		votes := in.sums.Votes(u)
		scale := unit / (float64(votes.Count) * event.One)
		for i, x := range votes.Sum {
			in.means[i] += uint32(float64(float64(x)*scale) + 0.5)
		}
		degree := 0
		for i, n := range in.around.of(u) {
			if n == 0 {
				continue
			}
			if event.Class(i) == own {
				n--
			}
			if degree == 0 {
				degree = len(in.view.Neighbors(u))
			}
			in.walks[i] += share(n, degree)
		}
	}
}
