package graphstore

import (
	"fmt"
	"slices"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// rules finds the communities whose members an expression decides.
type rules struct {
	byKey map[string][]Community // by attribute that the expression reads
	// communities that include vertices without attributes, everyone's among them
	matchNone []Community

	touched []Community   // scratch: communities that a vertex event may have changed
	values  []event.Value // scratch: inputs of an evaluation
}

// mustCompile compiles the expression of a rule that was validated.
func mustCompile(r Rule) *rule.Program {
	program, err := rule.Compile(r.Expression)
	if err != nil {
		panic(fmt.Sprintf("graphstore: rule of %q: %v", r.Name, err))
	}
	return program
}

// add compiles the expression of a community.
func (r *rules) add(id Community, c *community) {
	c.program = mustCompile(c.rule)
	for _, key := range c.program.Keys() {
		r.byKey[key] = append(r.byKey[key], id)
	}
	if c.program.Match(make([]event.Value, len(c.program.Keys()))) == rule.Yes {
		r.matchNone = append(r.matchNone, id)
	}
}

// evaluate applies the expression of a community to a vertex in its present state.
func (m *members) evaluate(id Community, attributes attributes, v Vertex) rule.Outcome {
	r, c := &m.rules, &m.communities[id]
	r.values = attributes.list(v, c.program.Keys(), r.values)
	outcome := c.program.Match(r.values)
	clear(r.values) // do not keep texts alive
	if outcome == rule.Mismatch {
		c.mismatches++
	}
	return outcome
}

// attributeChanges asserts the memberships by attribute that follow from a new value of a key, and
// remembers the rules that read the key.
func (m *members) attributeChanges(v Vertex, key string, before, after event.Value) {
	m.assertEach(m.byAttribute[attributeIs{key, before}], v, 0)
	m.assertEach(m.byAttribute[attributeIs{key, after}], v, 1)
	m.rules.touched = append(m.rules.touched, m.rules.byKey[key]...)
}

// joinsBy returns the number of communities that a vertex may join by a value of a key.
func (m *members) joinsBy(key string, value event.Value) int {
	return len(m.byAttribute[attributeIs{key, value}]) + len(m.rules.byKey[key])
}

// assertEach sets the multiplicity of v in each community of a list.
func (m *members) assertEach(list []Community, v Vertex, multiplicity uint32) {
	for _, c := range list {
		m.assert(c, v, multiplicity)
	}
}

// applyRules asserts the memberships that follow from the changed attributes of v.
func (m *members) applyRules(attributes attributes, v Vertex) {
	r := &m.rules
	slices.Sort(r.touched)
	for _, c := range slices.Compact(r.touched) {
		multiplicity := uint32(0)
		if m.evaluate(c, attributes, v) == rule.Yes {
			multiplicity = 1
		}
		m.assert(c, v, multiplicity)
	}
	r.touched = r.touched[:0]
}

// leaveRules asserts that v is in no community by rule. It overrides earlier assertions of the
// batch. The caller deletes v's attributes afterwards.
func (m *members) leaveRules(attributes attributes, v Vertex) {
	for key, column := range attributes {
		if value := column.at(v); value.Kind != event.NullValue {
			m.assertEach(m.byAttribute[attributeIs{key, value}], v, 0)
			m.assertEach(m.rules.byKey[key], v, 0)
		}
	}
	m.assertEach(m.rules.matchNone, v, 0)
}
