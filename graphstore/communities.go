package graphstore

import (
	"fmt"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// SetCommunities replaces the configured communities by rules and returns what
// that changed, valid until the next Apply. A rule that is configured already
// keeps its community. One that is gone, or is defined anew under its old name,
// retires: its members leave, its name is free, its index is never used again.
// Other rules get the next indices, after Delta.FirstCommunity, and their members
// join. Communities that member events created stay, and a rule for
// an explicit community of the same name adopts them.
//
// An error changes nothing.
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
	if n := len(m.communities) + len(fresh); n > s.config.Limits.Communities {
		return nil, fmt.Errorf("graphstore: set communities: %d with the retired ones, above the limit of %d",
			n, s.config.Limits.Communities)
	}
	room := s.config.Limits.Memberships - s.members.total - s.members.egoMembers + s.leaving(wanted)
	joins, ok := s.findMembers(fresh, room)
	if !ok {
		return nil, fmt.Errorf("graphstore: set communities: more memberships than %d", s.config.Limits.Memberships)
	}
	s.begin(&event.Batch{Last: s.step.delta.Position, Time: s.step.now})
	for i := range m.communities {
		if s.retires(&m.communities[i], wanted) {
			m.assertAll(Community(i), m.communities[i].vertices, 0)
			m.retire(Community(i))
		}
	}
	s.addRules(rules, joins)
	m.apply(&s.step)
	return &s.step.delta, nil
}

// retires reports whether the rules wanted leave no place for a community as it is.
func (s *Store) retires(c *community, wanted map[string]Rule) bool {
	rule, ok := wanted[c.rule.Name]
	return !c.retired && (c.configured || ok) && rule != c.rule
}

// leaving returns the number of memberships that end when the wanted rules hold.
func (s *Store) leaving(wanted map[string]Rule) (n int) {
	for i := range s.members.communities {
		if c := &s.members.communities[i]; s.retires(c, wanted) {
			n += len(c.vertices) + c.rule.egoMembersMax()
		}
	}
	return n
}

// joining are the members that a rule to be added finds.
type joining struct {
	vertices   []Vertex
	mismatches uint64
}

// findMembers returns the members that new rules have whatever the edges, by name, and
// whether they fit into the room with all that the ego networks among them may have. It
// stops as soon as they do not, so a rule of millions of members costs no memory first.
func (s *Store) findMembers(rules []Rule, room int) (map[string]joining, bool) {
	found := make(map[string]joining, len(rules))
	for _, r := range rules {
		if room -= r.egoMembersMax(); room < 0 {
			return nil, false
		}
		if r.Kind == Explicit || r.Kind == Ego {
			continue
		}
		j := s.searchMembers(r, room)
		if room -= len(j.vertices); room < 0 {
			return nil, false
		}
		found[r.Name] = j
	}
	return found, true
}

// searchMembers returns the vertices for which a rule holds that no edge decides, until they are
// more than the most wanted.
func (s *Store) searchMembers(r Rule, most int) (j joining) {
	var program *rule.Program
	if r.Kind == ByExpression {
		program = mustCompile(r)
	}
	var values []event.Value
	for v := range Vertex(s.ids.len()) {
		if s.ids.Erased(v) || len(j.vertices) > most {
			continue
		}
		is := r.Kind == Everyone || s.attributes.Attribute(v, r.Key) == r.Value
		if program != nil {
			values = s.attributes.list(v, program.Keys(), values)
			outcome := program.Match(values)
			if is = outcome == rule.Yes; outcome == rule.Mismatch {
				j.mismatches++
			}
		}
		if is {
			j.vertices = append(j.vertices, v)
		}
	}
	return j
}

// addRules gives new rules the next community indices and asserts their members. They were found
// before, but for those of ego networks, which are searched now.
func (s *Store) addRules(rules []Rule, found map[string]joining) {
	for _, r := range rules {
		if c, known := s.members.byName[r.Name]; known {
			s.members.communities[c].configured = true
			continue
		}
		id := s.members.add(r, true)
		if r.Kind == Ego {
			s.members.rebuildEgo(s.graph(), id)
			continue
		}
		s.members.communities[id].mismatches = found[r.Name].mismatches
		s.members.assertAll(id, found[r.Name].vertices, 1)
	}
}
