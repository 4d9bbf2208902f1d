package graphstore

import (
	"fmt"
	"slices"
	"strings"

	"gqlstream/ingest/event"
)

// valueAt returns row i of the columns kind, text and number.
func valueAt(rows []vector, i int) event.Value {
	value := event.Value{Kind: event.ValueKind(rows[0].data[i])}
	switch value.Kind {
	case event.StringValue:
		value.Text = strings.Clone(rows[1].text(i))
	case event.NumberValue, event.BoolValue:
		value.Number = elements[float64](rows[2].data)[i]
	}
	return value
}

func (l *loader) loadAttributes(rows []vector) error {
	vertices := elements[uint32](rows[0].data)
	for i := range rows[0].rows {
		if int(vertices[i]) >= len(l.s.classes.data) {
			return fmt.Errorf("attribute of vertex %d: %w", vertices[i], errTable)
		}
		column := l.s.attributes.addKey(rows[1].text(i))
		l.s.attributes.set(Vertex(vertices[i]), column, valueAt(rows[2:], i))
	}
	return nil
}

func (l *loader) loadCommunities(rows []vector) error {
	hops, most := elements[uint32](rows[11].data), elements[uint32](rows[12].data)
	for i := range rows[0].rows {
		rule := Rule{
			Name: strings.Clone(rows[1].text(i)), Kind: RuleKind(rows[2].data[i]),
			Key: strings.Clone(rows[5].text(i)), Value: valueAt(rows[6:], i),
			Expression: strings.Clone(rows[9].text(i)), Root: strings.Clone(rows[10].text(i)),
			Hops: int(hops[i]), MembersMax: int(most[i]),
		}
		if err := validateRules([]Rule{rule}); err != nil {
			return err
		}
		if _, known := l.s.members.byName[rule.Name]; known {
			return fmt.Errorf("community %q: %w", rule.Name, errTable)
		}
		c := l.s.members.add(rule, rows[3].data[i] != 0)
		if rows[4].data[i] != 0 {
			l.s.retire(c)
		}
	}
	return nil
}

func (l *loader) loadMembers(rows []vector) error {
	communities, vertices := elements[uint32](rows[0].data), elements[uint32](rows[1].data)
	multiplicities := elements[uint32](rows[2].data)
	for i := range rows[0].rows {
		change := MemberChange{
			Community: Community(communities[i]), V: Vertex(vertices[i]), After: multiplicities[i],
		}
		if uint64(change.Community) >= l.communities || uint64(change.V) >= l.vertices || change.After == 0 {
			return fmt.Errorf("member %d of community %d: %w", change.V, change.Community, errTable)
		}
		if len(l.changes) > 0 && l.changes[0].Community != change.Community {
			l.s.members.apply(l.changes)
			l.changes = l.changes[:0]
		}
		l.changes = append(l.changes, change)
	}
	return nil
}

func (l *loader) loadExpiry(rows []vector) error {
	us, vs := elements[uint32](rows[1].data), elements[uint32](rows[2].data)
	ends := elements[event.Time](rows[3].data)
	x := &l.s.expiry
	for i, kind := range rows[0].data {
		if uint64(us[i]) >= l.vertices || uint64(vs[i]) >= l.vertices {
			return fmt.Errorf("expiry of %d-%d: %w", us[i], vs[i], errTable)
		}
		switch event.Kind(kind) {
		case event.KindEdge:
			x.edges.set(pair(us[i], vs[i]), ends[i])
		case event.KindLabel:
			x.labels.set(uint64(us[i]), ends[i])
		case event.KindPrediction:
			x.predictions.set(uint64(us[i]), ends[i])
		default:
			return fmt.Errorf("expiry of kind %d: %w", kind, errTable)
		}
	}
	return nil
}

// loadEgos searches the ego networks, whose members the tables told already.
func (s *Store) loadEgos() error {
	for _, c := range s.members.egos {
		community := &s.members.communities[c]
		list := s.searchEgo(community.ego)
		slices.Sort(list)
		if !slices.Equal(list, community.vertices) {
			return fmt.Errorf("members of %q: %w", community.rule.Name, errTable)
		}
	}
	return nil
}
