package tally

import (
	"cmp"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// shift is a change of one vertex's multiplicity in one community. A member whose profile or label
// changes is a shift as well, with the same multiplicity before and after: its old state is
// subtracted and its new state added, so there is one code path for every kind of change.
type shift struct {
	v             Vertex
	community     CommunityID
	before, after uint32
}

// Update applies the changes of labels, profiles and members from the graph before delta to the
// graph of view; sums and pairs have been updated for the same delta. A step may have several
// deltas, one after the other, after Begin. Sources then returns the change of a kernel's source by
// all of them.
func (t *Tallies) Update(view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums,
	votes []Vertex,
) {
	if !t.keep.SoftPair && !t.keep.HardPair {
		votes = nil // no cell of a member depends on its neighbours
	}
	t.collect(delta, votes)
	t.changed = t.changed[:0]
	labels, audits, predictions, shifts := delta.Labels, delta.Audits, delta.Predictions, t.shifts
	changes, evidence := t.pairs.Changes(), delta.Evidence
	for _, v := range t.vertices {
		after := t.stateOf(view, sums, v)
		before := after
		before.profile.votes = sums.Before(v)
		if len(labels) > 0 && labels[0].V == v {
			before.label, before.time, labels = labels[0].Before, labels[0].TimeBefore, labels[1:]
		}
		if len(audits) > 0 && audits[0].V == v {
			before.audit, audits = audits[0].Before, audits[1:]
		}
		if len(predictions) > 0 && predictions[0].V == v {
			before.profile.own = predictions[0].Before
			before.version, predictions = predictions[0].VersionBefore, predictions[1:]
			active, _ := view.ActiveVersion()
			after.dropped = after.profile.own == nil && before.profile.own != nil &&
				before.version != active
		}
		if len(evidence) > 0 && evidence[0].V == v {
			before.setObserved(evidence[0].Before)
			evidence = evidence[1:]
		}
		row := rowChange{v: v, was: t.Calibrates(v), is: t.pairs.Calibrates(v) != event.NoClass}
		if len(changes) > 0 && changes[0].V == v {
			before.fresh, changes = changes[0].Fresh, changes[1:]
		}
		t.changeRow(row, &before, &after)
		end := 0
		for end < len(shifts) && shifts[end].v == v {
			end++
		}
		t.changeMember(view, v, &before, &after, shifts[:end])
		shifts = shifts[end:]
	}
	t.mergeRows()
	if len(t.changed) == 0 {
		return
	}
	t.countRows(view, sums)
	if t.moveLandmark(view) {
		t.TouchAll()
	}
}

// Begin starts a step: it allocates new vertices and communities and clears the lists of the last
// step's changes. It visits only the communities that the last step touched.
func (t *Tallies) Begin(view graphstore.View) {
	for id := len(t.each); id < view.Communities(); id++ {
		t.each = append(t.each, t.newCommunity())
		t.status = append(t.status, touched)
	}
	for _, id := range t.resourced {
		t.each[id].sources = t.each[id].sources[:0]
	}
	t.resourced = t.resourced[:0]
	t.decay.before = t.decay.landmark
}

// collect lists the vertices that any part of delta touches, sorted and once
// each, and the membership changes by vertex.
func (t *Tallies) collect(delta *graphstore.Delta, votes []Vertex) {
	t.vertices, t.shifts = t.vertices[:0], t.shifts[:0]
	for _, l := range delta.Labels {
		t.vertices = append(t.vertices, l.V)
	}
	for _, a := range delta.Audits {
		t.vertices = append(t.vertices, a.V)
	}
	for _, p := range delta.Predictions {
		t.vertices = append(t.vertices, p.V)
	}
	for _, c := range t.pairs.Changes() {
		t.vertices = append(t.vertices, c.V)
	}
	for _, e := range delta.Evidence {
		t.vertices = append(t.vertices, e.V)
	}
	t.vertices = append(t.vertices, votes...)
	for _, m := range delta.Members {
		t.vertices = append(t.vertices, m.V)
		t.shifts = append(
			t.shifts,
			shift{v: m.V, community: m.Community, before: m.Before, after: m.After},
		)
	}
	slices.Sort(t.vertices)
	t.vertices = slices.Compact(t.vertices)
	slices.SortFunc(t.shifts, func(a, b shift) int {
		return cmp.Or(cmp.Compare(a.v, b.v), cmp.Compare(a.community, b.community))
	})
}

// changeMember moves v from its state before to its state after in every
// community that it is, or was, a member of. shifts are v's, by community.
func (t *Tallies) changeMember(
	view graphstore.View, v Vertex, before, after *state, shifts []shift,
) {
	if len(view.MemberOf(v))+len(shifts) == 0 {
		return // as most vertices of a large graph
	}
	turned := t.keep.turned(before, after)
	for _, s := range shifts {
		t.recount(s, before, after, turned)
	}
	byCommunity := func(s shift, id CommunityID) int { return cmp.Compare(s.community, id) }
	for _, m := range view.MemberOf(v) {
		_, counted := slices.BinarySearchFunc(shifts, m.Community, byCommunity)
		if !counted {
			t.recount(shift{v, m.Community, m.Multiplicity, m.Multiplicity}, before, after, turned)
		}
	}
}

// recount replaces the terms of one member of one community and records the change of the kernel's
// source. turned is the replaced part of the member.
func (t *Tallies) recount(s shift, before, after *state, turned float64) {
	c := t.each[s.community]
	if s.before == s.after && s.after > 0 && before.differsInTime(after) {
		c.observations.count(before, -1)
		c.observations.count(after, 1)
		return
	}
	if s.before > 0 || s.after > 0 {
		if !(t.keep.Means && s.before == s.after && before.alike(after)) {
			t.status[s.community] = touched
		}
	}
	if t.noteMovement(c, s, before, after) {
		t.status[s.community] = touched
	}
	c.noteDropped(s, after)
	t.count(c, before, s.before, -1)
	t.count(c, after, s.after, 1)
	c.progress.turn(before.square(s.before), after.square(s.after), turned)
	if change := source(after, s.after) - source(before, s.before); change != 0 {
		if len(c.sources) == 0 {
			t.resourced = append(t.resourced, s.community)
		}
		c.sources = append(c.sources, diffusion.SourceChange{V: s.v, Change: change})
	}
}

// differsInTime reports whether a member has equal profiles in both states and a newer observation.
func (s *state) differsInTime(o *state) bool {
	return s.observed != o.observed && s.alike(o) &&
		slices.Equal(s.profile.own, o.profile.own) &&
		slices.Equal(s.profile.votes.Sum, o.profile.votes.Sum) &&
		s.profile.votes.Mass == o.profile.votes.Mass
}

// square returns the squared multiplicity of a member that is estimated from its profile, else 0.
func (s *state) square(multiplicity uint32) float64 {
	if s.labelled() || s.profile.own == nil {
		return 0
	}
	return float64(multiplicity) * float64(multiplicity)
}

// source returns the multiplicity with which a member feeds the kernel.
func source(s *state, multiplicity uint32) float64 {
	if s.labelled() {
		return 0
	}
	return float64(multiplicity)
}

// rowChange records whether a vertex was a calibration row before an Update, and is one after.
type rowChange struct {
	v       Vertex
	was, is bool
}

// changeRow applies a change of the label or profile of one vertex to the calibration rows. All
// communities read the rows. If methods read only the means of cells, they read the labels of each
// class alone.
func (t *Tallies) changeRow(c rowChange, before, after *state) {
	if !c.was && !c.is {
		return
	}
	t.changed = append(t.changed, c)
	aged := t.keep.HalfLife > 0 && before.time != after.time
	same := before.label == after.label && !aged && c.was == c.is
	if !(t.keep.Means && same) {
		t.TouchAll()
	}
}

// mergeRows mends the list of rows after changes, which are sorted by vertex.
func (t *Tallies) mergeRows() {
	if !slices.ContainsFunc(t.changed, func(c rowChange) bool { return c.was != c.is }) {
		return
	}
	out, rest := t.merged[:0], t.rows
	for _, c := range t.changed {
		at, _ := slices.BinarySearch(rest, c.v)
		out = append(out, rest[:at]...)
		if rest = rest[at:]; c.was {
			rest = rest[1:]
		}
		if c.is {
			out = append(out, c.v)
		}
	}
	t.merged, t.rows = t.rows, append(out, rest...)
}

// rebuildMembers counts the members of one community again; its Sources then list the whole kernel.
func (t *Tallies) rebuildMembers(id CommunityID, view graphstore.View, sums *neighborhood.Sums) {
	empty := state{
		label: graphstore.Label{Class: event.NoClass},
		audit: graphstore.Audit{Class: event.NoClass},
	}
	view.ForMembers(id, func(v Vertex, multiplicity uint32) {
		s := t.stateOf(view, sums, v)
		t.recount(shift{v: v, community: id, after: multiplicity}, &empty, &s, 1)
	})
}
