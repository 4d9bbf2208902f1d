package classifier

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// loo holds the predictions that one vertex passes to labelled neighbours: by the class of
// each, its prediction without that neighbour's vote.
type loo struct {
	counts []uint32 // K
	said   []uint32 // K: to everyone else
	to     []uint32 // K x K
	known  []bool   // K
	voice  voice
}

func newLOO(k int) loo {
	return loo{
		counts: make([]uint32, k), said: make([]uint32, k), to: make([]uint32, k*k),
		known: make([]bool, k), voice: make(voice, k),
	}
}

// set takes the counts of a vertex.
func (l *loo) set(counts []uint32) {
	copy(l.counts, counts)
	l.voice.say(l.said, l.counts)
	clear(l.known)
}

// without returns the prediction that the vertex passes to a neighbour of a class.
func (l *loo) without(class event.Class) []uint32 {
	k := len(l.counts)
	to := l.to[int(class)*k : (int(class)+1)*k]
	if !l.known[class] {
		l.counts[class]--
		l.voice.say(to, l.counts)
		l.counts[class]++
		l.known[class] = true
	}
	return to
}

// Heard visits how the last Update changed what labelled vertices hear from their
// neighbours: each neighbour's prediction without the vertex's own vote. It must be
// read before the next Apply; view and delta are those of that Update.
func (e *Enq) Heard(view graphstore.View, delta *graphstore.Delta) iter.Seq[neighborhood.Hearing] {
	return func(yield func(neighborhood.Hearing) bool) {
		for i := range e.changed {
			c := &e.changed[i]
			if c.was {
				e.loo.set(e.before[c.before : c.before+e.classes])
				for _, w := range view.Neighbors(c.v) {
					class := neighborhood.LabelBefore(view, delta, w).Class
					if class != event.NoClass && !isNew(delta, c.v, w) {
						yield(neighborhood.Hearing{V: w, Out: e.loo.without(class), In: e.loo.said})
					}
				}
			}
			if c.is {
				e.tell(view, c.v, yield)
			}
		}
		for _, edge := range delta.Edges {
			if edge.After == 0 {
				e.part(view, delta, edge.U, edge.V, yield)
				e.part(view, delta, edge.V, edge.U, yield)
			}
		}
	}
}

// HeardByAll visits what labelled vertices hear, from nothing.
func (e *Enq) HeardByAll(view graphstore.View) iter.Seq[neighborhood.Hearing] {
	return func(yield func(neighborhood.Hearing) bool) {
		e.version, e.made = view.DerivedVersion(EnqName)
		for v := range Vertex(view.Vertices()) {
			if e.predicts(view, v) {
				e.tell(view, v, yield)
			}
		}
	}
}

// tell visits what the labelled neighbours of u hear from it.
func (e *Enq) tell(view graphstore.View, u Vertex, yield func(neighborhood.Hearing) bool) {
	set := false
	for _, w := range view.Neighbors(u) {
		if class := view.Label(w).Class; class != event.NoClass {
			if !set {
				e.loo.set(e.row(u))
				set = true
			}
			yield(neighborhood.Hearing{V: w, Out: e.loo.said, In: e.loo.without(class)})
		}
	}
}

// part takes back what w heard from u over an edge that is no more.
func (e *Enq) part(view graphstore.View, delta *graphstore.Delta, u, w Vertex, yield func(neighborhood.Hearing) bool) {
	class := neighborhood.LabelBefore(view, delta, w).Class
	if class == event.NoClass {
		return
	}
	i, found := slices.BinarySearchFunc(e.changed, u, func(c voter, v Vertex) int { return cmp.Compare(c.v, v) })
	if !found {
		panic(fmt.Sprintf("classifier: vertex %d lost a vote and was not counted", u))
	}
	if c := &e.changed[i]; c.was {
		e.loo.set(e.before[c.before : c.before+e.classes])
		yield(neighborhood.Hearing{V: w, Out: e.loo.without(class), In: e.loo.said})
	}
}

// isNew reports whether delta brought the edge.
func isNew(delta *graphstore.Delta, u, v Vertex) bool {
	i, found := slices.BinarySearchFunc(delta.Edges, graphstore.EdgeChange{U: min(u, v), V: max(u, v)},
		func(a, b graphstore.EdgeChange) int { return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V)) })
	return found && delta.Edges[i].Before == 0
}
