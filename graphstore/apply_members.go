package graphstore

import (
	"strings"

	"gqlstream/ingest/event"
)

// applyMembers sets the memberships that stand and lists those that changed.
func (s *Store) applyMembers(b *event.Batch) {
	for i := range b.Members {
		e := &b.Members[i]
		if e.Multiplicity > 0 && !s.roomForMembers(1) {
			s.refuse(b, event.KindMember, i, event.LimitExceeded, "memberships")
			continue
		}
		c, ok := s.explicit(b, i)
		if !ok {
			continue
		}
		m := uint64(e.Multiplicity)
		if m > 0 && s.members.communities[c].sum+s.work.joining+m > MultiplicitiesMax {
			s.refuse(b, event.KindMember, i, event.LimitExceeded, "multiplicities of the community")
			continue
		}
		if v, ok := s.subject(b, event.KindMember, i, e.Vertex, m > 0); ok {
			s.work.joining += m
			s.assertMember(c, v, e.Multiplicity)
		}
	}
	s.settleEgos()
	s.settleMembers()
}

// roomForMembers reports whether n more joins fit, should every one asserted in
// this batch be one, and every ego network come to have all that it may.
func (s *Store) roomForMembers(n int) bool {
	return s.members.total+s.members.egoMembers+len(s.work.members)+n <= MembershipsMax
}

// settleMembers makes the asserted memberships true, community by community.
func (s *Store) settleMembers() {
	w, d := &s.work, &s.delta
	w.members, w.scratch = sortEntries(w.members, w.scratch)
	first := 0 // change of the community at hand
	for i, e := range w.members {
		if i+1 < len(w.members) && w.members[i+1].key == e.key {
			continue
		}
		high, low := unpair(e.key)
		c, v := Community(high), Vertex(low)
		if first < len(d.Members) && d.Members[first].Community != c {
			s.members.apply(d.Members[first:])
			first = len(d.Members)
		}
		before, after := s.members.multiplicity(c, v), w.multiplicities[e.at]
		if before != after {
			d.Members = append(d.Members, MemberChange{Community: c, V: v, Before: before, After: after})
		}
	}
	s.members.apply(d.Members[first:])
}

// explicit returns the community of a member event, created if it is new and
// the event a join.
func (s *Store) explicit(b *event.Batch, i int) (Community, bool) {
	e := &b.Members[i]
	c, known := s.members.byName[e.Community]
	switch {
	case known && s.members.communities[c].rule.Kind != Explicit:
		s.refuse(b, event.KindMember, i, event.BadValue, "the community is defined by a rule")
		return 0, false
	case known:
		return c, true
	case e.Multiplicity == 0:
		return 0, false
	case e.Community == "":
		s.refuse(b, event.KindMember, i, event.MissingField, "community")
		return 0, false
	case len(s.members.communities) >= s.config.CommunitiesMax:
		s.refuse(b, event.KindMember, i, event.LimitExceeded, "communities")
		return 0, false
	}
	if _, ok := s.subject(b, event.KindMember, i, e.Vertex, true); !ok {
		return 0, false
	}
	return s.members.add(Rule{Name: strings.Clone(e.Community)}, false), true
}
