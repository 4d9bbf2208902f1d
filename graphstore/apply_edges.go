package graphstore

import (
	"slices"

	"gqlstream/ingest/event"
)

// weightSumMax bounds the sum of all degrees: below it every sum of weights is a
// multiple of event.WeightUnit that a float64 holds exactly.
const weightSumMax = 1 << 33

// applyEdges sets the edges that stand, ends those whose time has come, and
// lists edges and degrees that changed.
func (s *Store) applyEdges(b *event.Batch) {
	w := &s.work
	for i := range b.Edges {
		if key, ok := s.edgeKey(b, i); ok {
			w.edges = append(w.edges, entry{key, uint32(i)})
		}
	}
	w.edges, w.scratch = sortEntries(w.edges, w.scratch)
	for i, e := range w.edges {
		if i+1 < len(w.edges) && w.edges[i+1].key == e.key {
			continue
		}
		if e.at == fromErasure {
			s.expiry.edges.clear(e.key)
			s.setEdge(e.key, 0)
		} else {
			s.assertEdge(b, e)
		}
	}
	if ended := s.expiry.edges.due(s.time, w.edges[:0]); len(ended) > 0 {
		for _, e := range ended {
			s.setEdge(e.key, 0)
		}
		w.edges = ended
		slices.SortFunc(s.delta.Edges, compareEdges)
	}
	s.listDegrees()
}

func compareEdges(a, b EdgeChange) int {
	if a.U != b.U {
		return int(a.U) - int(b.U)
	}
	return int(a.V) - int(b.V)
}

// edgeKey validates an edge event and returns what it is about.
func (s *Store) edgeKey(b *event.Batch, i int) (uint64, bool) {
	e := &b.Edges[i]
	var reason event.Reason
	switch {
	case e.Src == e.Dst:
		reason = event.SelfLoop
	case e.Remove:
		u, known := s.ids.lookup(e.Src)
		v, both := s.ids.lookup(e.Dst)
		return edgeKeyOf(u, v), known && both
	case !(e.Weight > 0 && e.Weight <= event.WeightMax && e.Weight == event.RoundWeight(e.Weight)):
		reason = event.BadWeight
	case len(e.Src.Name) > IDBytesMax || len(e.Dst.Name) > IDBytesMax:
		reason = event.BadID
	case (len(s.classes.data)+2 > s.config.VerticesMax || !s.roomForMatchNone(2)) && !s.roomFor(e.Src, e.Dst):
		reason = event.LimitExceeded
	default:
		u, _ := s.vertex(e.Src)
		v, _ := s.vertex(e.Dst)
		return edgeKeyOf(u, v), true
	}
	s.refuse(b, event.KindEdge, i, reason, "")
	return 0, false
}

func edgeKeyOf(u, v Vertex) uint64 { return pair(uint32(min(u, v)), uint32(max(u, v))) }

// roomFor reports whether those of the two that are new still fit.
func (s *Store) roomFor(src, dst event.ID) bool {
	room := s.config.VerticesMax - len(s.classes.data) + len(s.ids.free)
	if !s.roomForMatchNone(2) {
		room = 0
	}
	for _, id := range [...]event.ID{src, dst} {
		if _, known := s.ids.lookup(id); !known {
			room--
		}
	}
	return room >= 0
}

// assertEdge applies the edge event that stands for its key.
func (s *Store) assertEdge(b *event.Batch, entry entry) {
	e := &b.Edges[entry.at]
	weight, end := e.Weight, endOf(e.Time, s.time, e.TTL, s.config.Windows.Edges)
	if e.Remove || end <= s.time { // it is gone, or has ended already
		weight, end = 0, forever
	}
	if !s.setEdge(entry.key, weight) {
		s.refuse(b, event.KindEdge, int(entry.at), event.LimitExceeded, "edges")
		return
	}
	s.expiry.edges.set(entry.key, end)
}

// setEdge gives an edge a weight, 0 to remove it, and lists the change. It
// reports whether there was room.
func (s *Store) setEdge(key uint64, after float64) bool {
	high, low := unpair(key)
	u, v := Vertex(high), Vertex(low)
	before := s.adj.weight(u, v)
	if before == after {
		return true
	}
	if before == 0 && s.adj.edges >= s.config.EdgesMax ||
		s.adj.weightSum+2*(after-before) > weightSumMax {
		return false
	}
	s.touch(u)
	s.touch(v)
	s.adj.set(u, v, before, after)
	s.delta.Edges = append(s.delta.Edges, EdgeChange{U: u, V: v, Before: before, After: after})
	return true
}

// touch notes the degree of v before its first change.
func (s *Store) touch(v Vertex) {
	r := &s.adj.runs.data[v]
	if r.mark != 0 {
		return
	}
	w := &s.work
	w.touched = append(w.touched, entry{uint64(v), uint32(len(w.degrees))})
	w.degrees = append(w.degrees, DegreeChange{V: v, Before: r.degree, NeighborsBefore: int(r.len)})
	r.mark = uint32(len(w.degrees))
}

// listDegrees lists the degrees of the touched vertices, sorted, and unmarks them.
func (s *Store) listDegrees() {
	w := &s.work
	w.touched, w.scratch = sortEntries(w.touched, w.scratch)
	for _, e := range w.touched {
		change := w.degrees[e.at]
		r := &s.adj.runs.data[change.V]
		r.mark = 0
		change.After, change.NeighborsAfter = r.degree, int(r.len)
		s.delta.Degrees = append(s.delta.Degrees, change)
	}
}
