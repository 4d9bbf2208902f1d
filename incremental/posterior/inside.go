package posterior

import (
	"cmp"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
)

// inside counts, for every community, its open members and the edges between them. An
// open vertex has a prediction and no label: its class is estimated. The counts are
// integers, so that after any history they equal a recount.
type inside struct {
	edges, distinct []int        // by community
	degrees         []int        // by community: sums over the open members
	open            int          // open vertices of the graph
	histograms      []*Histogram // by community
	classes         int
	features        int                               // F
	learned         map[graphstore.Community]struct{} // see Learned

	before map[Vertex]past // of the vertices that the update changes
	order  []Vertex        // they, sorted

	here, other []membership // scratch
	members     []graphstore.MemberChange
	pool        []membership // backing of before
}

// past has the communities of a vertex before an update, and whether it was open.
type past struct {
	list []membership // by community
	open bool
}

// ofOpen returns the communities that it was an open member of.
func (p past) ofOpen() []membership {
	if !p.open {
		return nil
	}
	return p.list
}

// membership is one community of a vertex, with its multiplicity there.
type membership = graphstore.Membership

func byCommunity(a, b membership) int { return cmp.Compare(a.Community, b.Community) }

func newInside(classes int) inside {
	return inside{
		classes: classes, learned: map[graphstore.Community]struct{}{}, before: map[Vertex]past{},
	}
}

// grow allocates new communities.
func (n *inside) grow(view graphstore.View) {
	for id := len(n.edges); id < view.Communities(); id++ {
		n.edges, n.distinct = append(n.edges, 0), append(n.distinct, 0)
		n.degrees = append(n.degrees, 0)
		n.histograms = append(n.histograms, newHistogram(n.classes, n.features))
	}
}

// isOpen reports whether the class of v is to be estimated from its posterior.
func isOpen(view graphstore.View, v Vertex) bool {
	return view.Label(v).Class == event.NoClass && view.Prediction(v) != nil
}

// wasOpen reports whether v was open before delta.
func wasOpen(view graphstore.View, delta *graphstore.Delta, v Vertex) bool {
	units, _ := neighborhood.PredictionBefore(view, delta, v)
	return units != nil && neighborhood.LabelBefore(view, delta, v).Class == event.NoClass
}

// of appends the communities that v is an open member of, sorted.
func (n *inside) of(dst []membership, view graphstore.View, v Vertex) []membership {
	if !isOpen(view, v) {
		return dst
	}
	return append(dst, view.MemberOf(v)...)
}

// ofBefore appends the communities that v was an open member of before the update.
func (n *inside) ofBefore(dst []membership, view graphstore.View, v Vertex) []membership {
	if p, changed := n.before[v]; changed {
		return append(dst, p.ofOpen()...)
	}
	return n.of(dst, view, v)
}

// updateInside follows delta: first the edges, between the old members, then one member after the
// other, over the new edges. A vertex that joins its first community is touched. Its stored
// posterior is dropped unless it was a label: the posterior dates from its last read, and a restart
// does not know that time.
func (s *State) updateInside(view graphstore.View, delta *graphstore.Delta) {
	n := &s.inside
	n.grow(view)
	n.collect(view, delta, s.pairs.Changes())
	for _, e := range delta.Edges {
		if sign := neighborhood.Appeared(e); sign != 0 {
			n.here, n.other = n.ofBefore(n.here[:0], view, e.U), n.ofBefore(n.other[:0], view, e.V)
			n.countShared(n.here, n.other, sign)
			n.addDegree(n.here, sign)
			n.addDegree(n.other, sign)
		}
	}
	for _, v := range n.order {
		was := n.before[v]
		if len(was.list) == 0 {
			s.touch(v, byNews)
			if s.labelPi[v] == nil {
				s.contributions[v] = contribution{}
			}
		}
		n.move(
			was.list, view.MemberOf(v), &s.contributions[v], s.features.of(v), s.openness(view, v),
			s.massOf(view, v),
		)
		if was.open {
			n.open--
		}
		if isOpen(view, v) {
			n.open++
		}
		n.here = n.of(n.here[:0], view, v)
		if !slices.Equal(was.ofOpen(), n.here) {
			n.replace(view, v, was.ofOpen(), n.here)
		}
		delete(n.before, v) // from here on it counts as it is now
	}
}

// countShared counts an edge for every community that both sorted lists name.
func (n *inside) countShared(a, b []membership, sign int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].Community < b[0].Community:
			a = a[1:]
		case a[0].Community > b[0].Community:
			b = b[1:]
		default:
			n.edges[a[0].Community] += sign
			a, b = a[1:], b[1:]
		}
	}
}

// addDegree adds to the degrees of the communities that a list names.
func (n *inside) addDegree(list []membership, change int) {
	for _, m := range list {
		n.degrees[m.Community] += change
	}
}

// replace moves v from one list of communities to another.
func (n *inside) replace(view graphstore.View, v Vertex, was, is []membership) {
	for _, m := range was {
		n.distinct[m.Community]--
	}
	for _, m := range is {
		n.distinct[m.Community]++
	}
	if len(was)+len(is) == 0 {
		return
	}
	degree := len(view.Neighbors(v))
	n.addDegree(was, -degree)
	n.addDegree(is, degree)
	for _, u := range view.Neighbors(v) {
		n.other = n.ofBefore(n.other[:0], view, u)
		n.countShared(was, n.other, -1)
		n.countShared(is, n.other, 1)
	}
}

// collect notes the communities that vertices were members of before delta changed them: those of
// now, with the changes of members undone.
func (n *inside) collect(view graphstore.View, delta *graphstore.Delta, labels []pairs.Change) {
	n.order, n.pool = n.order[:0], n.pool[:0]
	n.members = append(n.members[:0], delta.Members...)
	members := n.members
	slices.SortFunc(members, func(a, b graphstore.MemberChange) int {
		return cmp.Or(cmp.Compare(a.V, b.V), cmp.Compare(a.Community, b.Community))
	})
	n.order = append(n.order, delta.Erased...)
	n.order = append(n.order, delta.Reused...)
	for _, l := range labels {
		n.order = append(n.order, l.V)
	}
	for _, p := range delta.Predictions {
		if (p.Before == nil) != (p.After == nil) {
			n.order = append(n.order, p.V)
		}
	}
	for _, m := range members {
		n.order = append(n.order, m.V)
	}
	slices.Sort(n.order)
	n.order = slices.Compact(n.order)
	for _, v := range n.order {
		end := 0
		for end < len(members) && members[end].V == v {
			end++
		}
		n.before[v] = n.wasIn(view, delta, v, members[:end])
		members = members[end:]
	}
}

// wasIn lists the communities that v was a member of before delta, which made these changes.
func (n *inside) wasIn(
	view graphstore.View, delta *graphstore.Delta, v Vertex, changes []graphstore.MemberChange,
) past {
	start := len(n.pool)
	n.pool = append(n.pool, view.MemberOf(v)...)
	list := slices.DeleteFunc(n.pool[start:], func(m membership) bool {
		_, changed := slices.BinarySearchFunc(
			changes,
			m.Community,
			func(c graphstore.MemberChange, id graphstore.Community) int {
				return cmp.Compare(c.Community, id)
			},
		)
		return changed
	})
	for _, c := range changes {
		if c.Before > 0 {
			list = append(list, membership{Community: c.Community, Multiplicity: c.Before})
		}
	}
	slices.SortFunc(list, byCommunity)
	n.pool = append(n.pool[:start], list...)
	return past{n.pool[start:len(n.pool):len(n.pool)], wasOpen(view, delta, v)}
}

// recount counts everything again.
func (n *inside) recount(view graphstore.View) {
	*n = newInside(n.classes)
	n.grow(view)
	for v := range Vertex(view.Vertices()) {
		if isOpen(view, v) {
			n.open++
		}
		n.here = n.of(n.here[:0], view, v)
		for _, m := range n.here {
			n.distinct[m.Community]++
		}
		if len(n.here) == 0 {
			continue
		}
		n.addDegree(n.here, len(view.Neighbors(v)))
		for _, u := range view.Neighbors(v) {
			if u > v {
				n.other = n.of(n.other[:0], view, u)
				n.countShared(n.here, n.other, 1)
			}
		}
	}
}

// Inside returns the number of edges between different open members of a community, the
// number of such members, and the sum of their degrees.
func (s *State) Inside(id graphstore.Community) (edges, distinct, degrees int) {
	return s.inside.edges[id], s.inside.distinct[id], s.inside.degrees[id]
}
