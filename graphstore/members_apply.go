package graphstore

import (
	"slices"
	"strings"

	"gqlstream/ingest/event"
)

// resetBatch empties the per-batch state.
func (m *members) resetBatch() {
	m.asserted = emptied(m.asserted)
	m.joining = 0
}

// fit reports whether n more memberships fit if every asserted one is new and every ego network
// grows to its limit.
func (m *members) fit(n int) bool { return m.total+m.egoMembers+len(m.asserted)+n <= m.most }

// assert sets the multiplicity of v in c.
func (m *members) assert(c Community, v Vertex, multiplicity uint32) {
	m.asserted = append(m.asserted, entry{pair(uint32(c), uint32(v)), multiplicity})
}

// assertAll sets the multiplicity in c of each vertex of a list.
func (m *members) assertAll(c Community, list []Vertex, multiplicity uint32) {
	for _, v := range list {
		m.assert(c, v, multiplicity)
	}
}

// leave asserts that v is in no community. It overrides earlier assertions of the batch. The caller
// deletes v's attributes afterwards.
func (m *members) leave(attributes attributes, v Vertex) {
	for _, membership := range m.of[v] {
		m.assert(membership.Community, v, 0)
	}
	m.leaveRules(attributes, v)
}

// refuse returns the community of a member event, whether it exists, and the reason to refuse the
// event, empty if it is valid.
func (m *members) refuse(
	e *event.Member,
	communitiesMax int,
) (c Community, known bool, reason event.Reason, detail string) {
	if e.Multiplicity > 0 && !m.fit(1) {
		return 0, false, event.LimitExceeded, "memberships"
	}
	sum := m.joining + uint64(e.Multiplicity)
	if c, known = m.byName[e.Community]; known {
		sum += m.communities[c].sum
	}
	switch {
	case known && m.communities[c].rule.Kind != Explicit:
		return c, known, event.BadValue, "the community is defined by a rule"
	case e.Multiplicity == 0:
	case !known && e.Community == "":
		return c, known, event.MissingField, "community"
	case !known && len(m.communities) >= communitiesMax:
		return c, known, event.LimitExceeded, "communities"
	case sum > multiplicitiesMax:
		return c, known, event.LimitExceeded, "multiplicities of the community"
	}
	return c, known, "", ""
}

// assertEvent applies a member event to v. It creates the community if it is new.
func (m *members) assertEvent(e *event.Member, c Community, known bool, v Vertex) {
	if !known {
		c = m.add(Rule{Name: strings.Clone(e.Community)}, false)
	}
	m.joining += uint64(e.Multiplicity)
	m.assert(c, v, e.Multiplicity)
}

// apply applies the asserted memberships, community by community, and lists the changes.
func (m *members) apply(p *step) {
	d := &p.delta
	m.asserted = p.lastOfEach(m.asserted)
	first := len(d.Members) // first change of the current community
	for _, e := range m.asserted {
		high, low := unpair(e.key)
		c, v := Community(high), Vertex(low)
		if first < len(d.Members) && d.Members[first].Community != c {
			m.change(d.Members[first:])
			first = len(d.Members)
		}
		if before, after := m.multiplicity(c, v), e.at; before != after {
			d.Members = append(d.Members,
				MemberChange{Community: c, V: v, Before: before, After: after})
		}
	}
	m.change(d.Members[first:])
	m.asserted = m.asserted[:0]
}

// change applies the changes of one community, sorted by vertex, to both lists.
func (m *members) change(changes []MemberChange) {
	if len(changes) == 0 {
		return
	}
	c, joins := &m.communities[changes[0].Community], 0
	for i := range changes {
		change := &changes[i]
		m.setReverse(change)
		c.sum += uint64(change.After) - uint64(change.Before)
		if change.Before == 0 {
			joins++
		}
	}
	m.total -= len(c.vertices)
	c.vertices = slices.Grow(c.vertices, joins)
	c.multiplicities = slices.Grow(c.multiplicities, joins)
	m.merge(c, changes)
	m.total += len(c.vertices)
}

// setReverse applies a change to the list of its vertex.
func (m *members) setReverse(change *MemberChange) {
	list := &m.of[change.V]
	i, _ := findMembership(*list, change.Community)
	switch {
	case change.Before == 0:
		*list = slices.Insert(*list, i, Membership{change.Community, change.After})
	case change.After == 0:
		*list = slices.Delete(*list, i, i+1)
	default:
		(*list)[i].Multiplicity = change.After
	}
}

// merge applies changes to the lists of a community. From the first changed member on it rewrites
// them from a copy, one stretch between two changes at a time.
func (m *members) merge(c *community, changes []MemberChange) {
	first, _ := slices.BinarySearch(c.vertices, changes[0].V)
	m.vertices = append(m.vertices[:0], c.vertices[first:]...)
	m.multiplicities = append(m.multiplicities[:0], c.multiplicities[first:]...)
	vertices, multiplicities := m.vertices, m.multiplicities
	c.vertices = c.vertices[:first]
	c.multiplicities = c.multiplicities[:first]
	for i := range changes {
		change := &changes[i]
		at, was := slices.BinarySearch(vertices, change.V)
		c.vertices = append(c.vertices, vertices[:at]...)
		c.multiplicities = append(c.multiplicities, multiplicities[:at]...)
		if change.After > 0 {
			c.vertices = append(c.vertices, change.V)
			c.multiplicities = append(c.multiplicities, change.After)
		}
		if was {
			at++
		}
		vertices, multiplicities = vertices[at:], multiplicities[at:]
	}
	c.vertices = append(c.vertices, vertices...)
	c.multiplicities = append(c.multiplicities, multiplicities...)
}
