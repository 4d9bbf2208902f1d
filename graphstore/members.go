package graphstore

import (
	"slices"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// membershipsMax bounds the memberships of all communities together: as many as there may be
// vertices, so that a community of all of them fits.
const membershipsMax = VerticesMaxDefault

// multiplicitiesMax bounds the sum of the multiplicities of a community: statistics are integer
// sums with a fixed number of bits.
const multiplicitiesMax = 1 << 47

// community is one tracked community and its members, sorted.
type community struct {
	rule           Rule
	configured     bool // by a rule; else a member event created it
	sum            uint64
	vertices       []Vertex
	multiplicities []uint32

	program    *rule.Program // ByExpression only
	mismatches uint64        // evaluations of program that met types which do not go together
	ego        *ego          // Ego only
}

// attributeIs is the condition of a rule by attribute.
type attributeIs struct {
	key   string
	value event.Value
}

// members holds the communities both ways: lists by community, and lists by vertex, each sorted.
type members struct {
	communities []community
	byName      map[string]Community
	byAttribute map[attributeIs][]Community
	rules       rules
	egos        []Community // sorted
	egoMembers  int         // that they may have together at most
	total       int         // memberships

	of [][]Membership // by vertex

	most     int     // memberships
	asserted []entry // of the batch: community and vertex, and the multiplicity
	joining  uint64  // sum of the multiplicities that member events of the batch assert

	vertices       []Vertex // scratch: the members of a community that changes
	multiplicities []uint32
}

// newMembers returns an empty table for that many vertices, with a limit on memberships.
func newMembers(most, vertices int) members {
	return members{
		byName: map[string]Community{}, byAttribute: map[attributeIs][]Community{},
		rules: rules{byKey: map[string][]Community{}},
		of:    make([][]Membership, vertices), most: most,
	}
}

// add gives a rule the next community index.
func (m *members) add(rule Rule, configured bool) Community {
	id := Community(len(m.communities))
	m.communities = append(m.communities, community{rule: rule, configured: configured})
	m.byName[rule.Name] = id
	c := &m.communities[id]
	switch rule.Kind {
	case ByAttribute:
		is := attributeIs{rule.Key, rule.Value}
		m.byAttribute[is] = append(m.byAttribute[is], id)
	case ByExpression:
		m.rules.add(id, c)
	case Everyone:
		m.rules.matchNone = append(m.rules.matchNone, id)
	case Ego:
		c.ego = newEgo(rule)
		m.egos = append(m.egos, id)
		m.egoMembers += rule.egoMembersMax()
	}
	return id
}

// adopt gives an existing community the next index.
func (m *members) adopt(old *community) {
	id := m.add(old.rule, old.configured)
	c := &m.communities[id]
	c.mismatches, c.ego = old.mismatches, old.ego
	for i, v := range old.vertices {
		m.append(id, v, old.multiplicities[i])
	}
}

// append adds a member that sorts after all others, by community and then by vertex.
func (m *members) append(id Community, v Vertex, multiplicity uint32) {
	c := &m.communities[id]
	c.vertices, c.multiplicities = append(c.vertices, v), append(c.multiplicities, multiplicity)
	c.sum += uint64(multiplicity)
	m.of[v] = append(m.of[v], Membership{id, multiplicity})
	m.total++
}

// multiplicity returns the multiplicity of v in c.
func (m *members) multiplicity(c Community, v Vertex) uint32 {
	list := m.of[v]
	if i, ok := findMembership(list, c); ok {
		return list[i].Multiplicity
	}
	return 0
}

// findMembership returns the index of c in the list, or where to insert it. It tries the end first:
// a community that vertices join now usually has a high index.
func findMembership(list []Membership, c Community) (int, bool) {
	if n := len(list); n == 0 || list[n-1].Community < c {
		return n, false
	}
	return slices.BinarySearchFunc(list, c, func(m Membership, c Community) int {
		return int(m.Community) - int(c)
	})
}
