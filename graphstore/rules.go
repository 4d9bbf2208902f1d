package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// rules finds the communities whose members an expression decides.
type rules struct {
	byKey     map[string][]Community // that read the attribute
	matchNone []Community            // that hold a vertex without attributes

	touched []Community   // scratch: those that a vertex event may have moved
	values  []event.Value // scratch: what an evaluation reads
}

// add compiles the expression of a community.
func (r *rules) add(id Community, c *community) {
	program, err := rule.Compile(c.rule.Expression)
	if err != nil {
		panic(fmt.Sprintf("graphstore: rule of %q: %v", c.rule.Name, err)) // it was validated
	}
	c.program = program
	for _, key := range program.Keys() {
		r.byKey[key] = append(r.byKey[key], id)
	}
	if program.Match(make([]event.Value, len(program.Keys()))) == rule.Yes {
		r.matchNone = append(r.matchNone, id)
	}
}

// remove forgets the expression of a community.
func (r *rules) remove(id Community, c *community) {
	is := func(other Community) bool { return other == id }
	for _, key := range c.program.Keys() {
		if r.byKey[key] = slices.DeleteFunc(r.byKey[key], is); len(r.byKey[key]) == 0 {
			delete(r.byKey, key)
		}
	}
	r.matchNone = slices.DeleteFunc(r.matchNone, is)
	c.program = nil
}

// evaluate applies the expression of a community to a vertex as it stands.
func (s *Store) evaluate(id Community, v Vertex) rule.Outcome {
	r, c := &s.members.rules, &s.members.communities[id]
	r.values = r.values[:0]
	for _, key := range c.program.Keys() {
		r.values = append(r.values, s.attributes.value(v, key))
	}
	outcome := c.program.Match(r.values)
	clear(r.values) // no text outlives its vertex
	if outcome == rule.Mismatch {
		c.mismatches++
	}
	return outcome
}

// settleRules asserts the memberships that follow from the changed attributes of v.
func (s *Store) settleRules(v Vertex) {
	r := &s.members.rules
	slices.Sort(r.touched)
	for _, c := range slices.Compact(r.touched) {
		if s.evaluate(c, v) == rule.Yes {
			s.assertMember(c, v, 1)
		} else {
			s.assertMember(c, v, 0)
		}
	}
	r.touched = r.touched[:0]
}

// matches reports whether v is a member by its attributes of the community of a
// rule that is by attribute or expression.
func (s *Store) matches(id Community, v Vertex) bool {
	switch c := &s.members.communities[id]; c.rule.Kind {
	case ByAttribute:
		return s.attributes.value(v, c.rule.Key) == c.rule.Value
	case ByExpression:
		return !s.ids.erased(v) && s.evaluate(id, v) == rule.Yes
	}
	return false
}

// leaveRules asserts that v, whose attributes are about to be forgotten, is a
// member by none of them, whatever the batch asserted before.
func (s *Store) leaveRules(v Vertex) {
	m := &s.members
	leave := func(list []Community) {
		for _, c := range list {
			s.assertMember(c, v, 0)
		}
	}
	for column, key := range s.attributes.keys {
		if value := s.attributes.at(v, column); value.Kind != event.NullValue {
			leave(m.byAttribute[attributeIs{key, value}])
			leave(m.rules.byKey[key])
		}
	}
	leave(m.rules.matchNone)
}
