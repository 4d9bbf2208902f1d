package graphstore

import (
	"fmt"
	"slices"
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
	fresh := 0
	for _, r := range rules {
		wanted[r.Name] = r
		if c, known := m.byName[r.Name]; !known || m.communities[c].rule != r {
			fresh++
		}
	}
	if n := len(m.communities) + fresh; n > s.config.CommunitiesMax {
		return nil, fmt.Errorf("graphstore: set communities: %d with the retired ones, above the limit of %d",
			n, s.config.CommunitiesMax)
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

// retire asserts that every member leaves and frees the name of a community.
func (s *Store) retire(id Community) {
	m := &s.members
	c := &m.communities[id]
	for _, v := range c.vertices {
		s.assertMember(id, v, 0)
	}
	c.retired = true
	delete(m.byName, c.rule.Name)
	if c.rule.Kind == ByAttribute {
		is := attributeIs{c.rule.Key, c.rule.Value}
		list := slices.DeleteFunc(m.byAttribute[is], func(c Community) bool { return c == id })
		if m.byAttribute[is] = list; len(list) == 0 {
			delete(m.byAttribute, is)
		}
	}
}

// addRules gives new rules the next community indices and asserts the members
// that they have by attribute.
func (s *Store) addRules(rules []Rule) {
	for _, rule := range rules {
		if c, known := s.members.byName[rule.Name]; known {
			s.members.communities[c].configured = true
			continue
		}
		c := s.members.add(rule, true)
		if rule.Kind != ByAttribute {
			continue
		}
		for v := range Vertex(len(s.classes.data)) {
			if s.attributes.value(v, rule.Key) == rule.Value {
				s.assertMember(c, v, 1)
			}
		}
	}
}
