package graphstore

import (
	"maps"

	"gqlstream/ingest/event"
)

// expressions are the rules of allRules, written a second time in Go.
var expressions = map[string]func(attributes map[string]event.Value) bool{
	"german adults": func(attributes map[string]event.Value) bool {
		age := attributes["age"]
		return attributes["language"].Text == "de" && age.Kind == event.NumberValue &&
			age.Number >= 89
	},
	"not german": func(attributes map[string]event.Value) bool {
		return attributes["language"].Text != "de"
	},
}

// applyRules computes the members of everyone, by expression and of ego networks from nothing.
func (m *model) applyRules() {
	for _, r := range m.rules {
		if r.Kind != ByExpression && r.Kind != Ego && r.Kind != Everyone {
			continue
		}
		maps.DeleteFunc(
			m.members,
			func(key memberID, _ uint32) bool { return key.community == r.Name },
		)
		near := m.ball(r)
		for id := range m.index {
			if r.Kind == Everyone ||
				r.Kind == ByExpression && expressions[r.Name](m.attributes[id]) ||
				near[id] {
				m.members[memberID{r.Name, id}] = 1
			}
		}
	}
}

// ball returns the members of an ego network: one hop after the other over all edges, until
// there are too many.
func (m *model) ball(r Rule) map[event.ID]bool {
	in := map[event.ID]bool{}
	if root := event.ParseID(r.Root); r.Kind == Ego && m.known(root) {
		in[root] = true
	}
	for range r.Hops {
		next := maps.Clone(in)
		for key := range m.edges {
			if in[key.a] || in[key.b] {
				next[key.a], next[key.b] = true, true
			}
		}
		if len(next) > r.egoMembersMax() {
			break
		}
		in = next
	}
	return in
}
