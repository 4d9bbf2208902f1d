package graphstore

import (
	"fmt"
)

// SetCommunities replaces the configured communities by rules and returns what
// that changed, valid until the next Apply. A rule that is configured already
// keeps its community. One that is gone, or is defined anew under its old name,
// retires: its members leave, its name is free, its index is never used again.
// Other rules get the next indices, after Delta.FirstCommunity, and their members
// by attribute join. Communities that member events created stay, and a rule for
// an explicit community of the same name adopts them.
//
// A community of everyone appears and retires without entries in Delta.Members:
// see View.Everyone and View.Retired. An error changes nothing.
func (s *Store) SetCommunities(rules []Rule) (*Delta, error) {
	if err := validateRules(rules); err != nil {
		return nil, fmt.Errorf("graphstore: set communities: %w", err)
	}
	m := &s.members
	wanted := make(map[string]Rule, len(rules))
	var fresh []Rule
	for _, r := range rules {
		wanted[r.Name] = r
		if c, known := m.byName[r.Name]; !known || m.communities[c].rule != r {
			fresh = append(fresh, r)
		}
	}
	if n := len(m.communities) + len(fresh); n > s.config.CommunitiesMax {
		return nil, fmt.Errorf("graphstore: set communities: %d with the retired ones, above the limit of %d",
			n, s.config.CommunitiesMax)
	}
	if !s.roomForRules(fresh) {
		return nil, fmt.Errorf("graphstore: set communities: more memberships than %d", MembershipsMax)
	}
	s.begin(s.delta.Position, s.time)
	for i := range m.communities {
		c := &m.communities[i]
		if rule, ok := wanted[c.rule.Name]; !c.retired && (c.configured || ok) && rule != c.rule {
			s.retire(Community(i))
		}
	}
	s.addRules(rules)
	s.settleMembers()
	return &s.delta, nil
}

// roomForRules reports whether the memberships that new rules bring are sure to fit:
// every vertex may be a member of each, but for the bound of an ego network.
func (s *Store) roomForRules(rules []Rule) bool {
	n := s.members.total + s.members.egoMembers
	for _, r := range rules {
		switch r.Kind {
		case ByAttribute, ByExpression:
			n += len(s.classes.data)
		case Ego:
			n += min(len(s.classes.data), r.egoMembersMax())
		}
	}
	return n <= MembershipsMax
}

// retire asserts that every member leaves and frees the name of a community.
func (s *Store) retire(id Community) {
	s.assertMembers(id, s.members.communities[id].vertices, 0)
	s.members.retire(id)
}

// addRules gives new rules the next community indices and asserts the members
// that they have by attributes or edges.
func (s *Store) addRules(rules []Rule) {
	for _, rule := range rules {
		if c, known := s.members.byName[rule.Name]; known {
			s.members.communities[c].configured = true
			continue
		}
		switch c := s.members.add(rule, true); rule.Kind {
		case ByAttribute, ByExpression:
			for v := range Vertex(len(s.classes.data)) {
				if s.matches(c, v) {
					s.assertMember(c, v, 1)
				}
			}
		case Ego:
			s.rebuildEgo(c)
		}
	}
}
