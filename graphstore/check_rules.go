package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// checkRules checks that exactly the vertices that a rule says are members.
func (s *Store) checkRules() error {
	for i := range s.members.communities {
		c := &s.members.communities[i]
		if c.retired || c.rule.Kind == Explicit || c.rule.Kind == Everyone {
			continue
		}
		want, hops := s.membersByRule(c.rule)
		if !slices.Equal(c.vertices, want) || c.sum != uint64(len(want)) {
			return fmt.Errorf("community %q holds %d vertices, want %d, or others", c.rule.Name, len(c.vertices), len(want))
		}
		if c.ego != nil && (c.ego.radius != hops || len(c.ego.reach) != len(want)) {
			return fmt.Errorf("community %q reaches %d vertices in %d hops, want %d in %d",
				c.rule.Name, len(c.ego.reach), c.ego.radius, len(want), hops)
		}
	}
	return nil
}

// membersByRule returns the members that a rule says, from nothing, and how many
// hops an ego network reaches.
func (s *Store) membersByRule(r Rule) (list []Vertex, hops int) {
	if r.Kind == Ego {
		return s.ball(r)
	}
	program, err := rule.Compile(r.Expression) // which fails for ByAttribute, and is then not used
	for v := range Vertex(len(s.classes.data)) {
		in := s.attributes.value(v, r.Key) == r.Value
		if r.Kind == ByExpression {
			var values []event.Value
			for _, key := range program.Keys() {
				values = append(values, s.attributes.value(v, key))
			}
			in = err == nil && !s.ids.erased(v) && program.Match(values) == rule.Yes
		}
		if in {
			list = append(list, v)
		}
	}
	return list, 0
}

// ball returns the vertices that an ego network must hold, by breadth first search.
func (s *Store) ball(r Rule) (list []Vertex, hops int) {
	root, known := s.ids.lookup(event.ParseID(r.Root))
	if !known {
		return nil, 0
	}
	in := map[Vertex]bool{root: true}
	list = []Vertex{root}
	for ; hops < r.Hops; hops++ {
		next := slices.Clone(list)
		for _, v := range list {
			for _, u := range s.adj.neighbors(v) {
				if !in[u] {
					in[u] = true
					next = append(next, u)
				}
			}
		}
		if len(next) > r.egoMembersMax() {
			break
		}
		list = next
	}
	slices.Sort(list)
	return list, hops
}
