package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// SetCommunities replaces the configured communities by rules. A rule that is configured already
// keeps its community, and one for an explicit community of the same name adopts it. One that is
// gone, or is defined anew under its old name, loses its community. Those that member events
// created stay.
//
// Communities are counted anew: those that stay get the first indices, in their order, then come
// those of the other rules, in theirs. It ends every View and Delta. An error changes nothing.
func (s *Store) SetCommunities(rules []Rule) error {
	if err := validateRules(rules); err != nil {
		return fmt.Errorf("graphstore: set communities: %w", err)
	}
	wanted := make(map[string]Rule, len(rules))
	for _, r := range rules {
		wanted[r.Name] = r
	}
	var stay []*community
	stays, room := map[string]bool{}, s.config.Limits.Memberships
	for i := range s.members.communities {
		c := &s.members.communities[i]
		rule, configured := wanted[c.rule.Name]
		if rule == c.rule || !configured && !c.configured {
			stay, room = append(stay, c), room-len(c.vertices)-c.rule.egoMembersMax()
			stays[c.rule.Name] = true
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return stays[r.Name] })
	if n := len(stay) + len(fresh); n > s.config.Limits.Communities {
		return fmt.Errorf("graphstore: set communities: %d, above the limit of %d",
			n, s.config.Limits.Communities)
	}
	joins, ok := s.findMembers(fresh, room)
	if !ok {
		return fmt.Errorf("graphstore: set communities: more memberships than %d",
			s.config.Limits.Memberships)
	}
	s.members = newMembers(s.members.most, len(s.members.of))
	for _, c := range stay {
		_, c.configured = wanted[c.rule.Name]
		s.members.adopt(c)
	}
	s.begin(&event.Batch{Last: s.step.delta.Position, Time: s.step.now})
	s.addRules(fresh, joins)
	s.members.apply(&s.step)
	return nil
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
		id := s.members.add(r, true)
		if r.Kind == Ego {
			s.members.rebuildEgo(s.graph(), id)
			continue
		}
		s.members.communities[id].mismatches = found[r.Name].mismatches
		s.members.assertAll(id, found[r.Name].vertices, 1)
	}
}
