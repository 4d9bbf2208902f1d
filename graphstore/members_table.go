package graphstore

import (
	"fmt"
	"slices"
	"strings"
)

// communityRow is the definition of a community.
type communityRow struct {
	Community  Community
	Name       string
	Rule       RuleKind
	Configured bool
	Key        nullable[string]
	valueRow
	Expression, Root nullable[string]
	Hops             uint32
	MembersMax       uint32 `column:"members_max"`
}

// communityRows visits the definitions by index.
func (m *members) communityRows(yield func(communityRow) bool) {
	for i := range m.communities {
		c := &m.communities[i]
		r := &c.rule
		if !yield(communityRow{
			Community: Community(i), Name: r.Name, Rule: r.Kind, Configured: c.configured,
			Key: nullable[string]{r.Key, r.Kind == ByAttribute}, valueRow: rowOf(r.Value),
			Expression: nullable[string]{r.Expression, r.Kind == ByExpression},
			Root:       nullable[string]{r.Root, r.Kind == Ego},
			Hops:       uint32(r.Hops), MembersMax: uint32(r.MembersMax),
		}) {
			return
		}
	}
}

// loadCommunity adds a definition, in order of the index.
func (m *members) loadCommunity(r *communityRow) error {
	rule := Rule{
		Name:       strings.Clone(r.Name),
		Kind:       r.Rule,
		Key:        strings.Clone(r.Key.Value),
		Value:      r.value(),
		Expression: strings.Clone(r.Expression.Value),
		Root:       strings.Clone(r.Root.Value),
		Hops:       int(r.Hops),
		MembersMax: int(r.MembersMax),
	}
	if err := validateRules([]Rule{rule}); err != nil {
		return err
	}
	if _, known := m.byName[rule.Name]; known {
		return fmt.Errorf("community %q: %w", rule.Name, errTable)
	}
	m.add(rule, r.Configured)
	return nil
}

// memberRow is a membership.
type memberRow struct {
	Community    Community
	Vertex       Vertex
	Multiplicity uint32
}

// rows visits memberships by community, then vertex.
func (m *members) rows(yield func(memberRow) bool) {
	for i := range m.communities {
		c := &m.communities[i]
		for j, v := range c.vertices {
			if !yield(memberRow{Community(i), v, c.multiplicities[j]}) {
				return
			}
		}
	}
}

// load adds a membership. They are sorted by community, then vertex.
func (m *members) load(r *memberRow) error {
	if int(r.Community) >= len(m.communities) || int(r.Vertex) >= len(m.of) || r.Multiplicity == 0 {
		return fmt.Errorf("member %d of community %d: %w", r.Vertex, r.Community, errTable)
	}
	list, of := m.communities[r.Community].vertices, m.of[r.Vertex]
	if n := len(list); n > 0 && list[n-1] >= r.Vertex {
		return fmt.Errorf("member %d of community %d comes late: %w",
			r.Vertex, r.Community, errTable)
	}
	if n := len(of); n > 0 && of[n-1].Community >= r.Community {
		return fmt.Errorf("community %d of member %d comes late: %w",
			r.Community, r.Vertex, errTable)
	}
	m.append(r.Community, r.Vertex, r.Multiplicity)
	return nil
}

// loadEgos searches the ego networks. Their members came from the tables.
func (m *members) loadEgos(g graph) error {
	for _, c := range m.egos {
		community := &m.communities[c]
		list := community.ego.search(g)
		slices.Sort(list)
		if !slices.Equal(list, community.vertices) {
			return fmt.Errorf("members of %q: %w", community.rule.Name, errTable)
		}
	}
	return nil
}
