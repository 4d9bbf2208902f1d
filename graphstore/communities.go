package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// SetCommunities replaces the configured communities by rules. A rule that is configured already
// keeps its community. A new rule with the name of an explicit community takes that community over.
// A community without a rule, or with another rule under the same name, is removed. Communities
// that member events created stay while they have members. Empty ones are removed, and make room
// under the limit of communities.
//
// Indices change: the communities that stay come first, in their order, then those of the other
// rules, in theirs. Every View and Delta becomes invalid. An error changes nothing.
func (s *Store) SetCommunities(rules []Rule) error {
	if err := validateRules(rules); err != nil {
		return fmt.Errorf("set communities: %w", err)
	}
	wanted := make(map[string]Rule, len(rules))
	for _, r := range rules {
		wanted[r.Name] = r
	}
	var stay []*community
	stays, free := map[string]bool{}, s.config.Limits.Memberships
	for i := range s.members.communities {
		c := &s.members.communities[i]
		rule, configured := wanted[c.rule.Name]
		members := !configured && !c.configured && len(c.vertices) > 0
		if rule == c.rule || members {
			stay, free = append(stay, c), free-len(c.vertices)-c.rule.egoMembersMax()
			stays[c.rule.Name] = true
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return stays[r.Name] })
	if n := len(stay) + len(fresh); n > s.config.Limits.Communities {
		return fmt.Errorf("set communities: %d, above the limit of %d",
			n, s.config.Limits.Communities)
	}
	joins, ok := s.findMembers(fresh, free)
	if !ok {
		return fmt.Errorf("set communities: more memberships than %d",
			s.config.Limits.Memberships)
	}
	s.members = newMembers(s.members.most, len(s.members.of))
	for _, c := range stay {
		_, c.configured = wanted[c.rule.Name]
		s.members.adopt(c)
	}
	s.resetBatch(&event.Batch{Last: s.step.delta.Position, Time: s.step.now})
	s.addRules(fresh, joins)
	s.members.apply(&s.step)
	return nil
}

// joining lists the members that a new rule finds.
type joining struct {
	vertices   []Vertex
	mismatches uint64
}

// findMembers returns the members of new rules by name, ego networks apart, and whether they fit
// into free memberships together with the most members that the ego networks may have. It stops at
// the limit, so a rule with millions of members does not allocate them first.
func (s *Store) findMembers(rules []Rule, free int) (map[string]joining, bool) {
	found := make(map[string]joining, len(rules))
	for _, r := range rules {
		if free -= r.egoMembersMax(); free < 0 {
			return nil, false
		}
		if r.Kind == Explicit || r.Kind == Ego {
			continue
		}
		j := s.searchMembers(r, free)
		if free -= len(j.vertices); free < 0 {
			return nil, false
		}
		found[r.Name] = j
	}
	return found, true
}

// searchMembers returns the vertices that satisfy a rule without edges, until they are more than
// the most wanted.
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
