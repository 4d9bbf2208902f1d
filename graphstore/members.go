package graphstore

import (
	"slices"
	"unsafe"

	"gqlstream/graphstore/rule"
	"gqlstream/ingest/event"
)

// MembershipsMax bounds the memberships of all communities together, those of
// everyone apart: the arena of the reverse index has 32-bit offsets.
const MembershipsMax = 1 << 28

// MultiplicitiesMax bounds the multiplicities of a community together: statistics are
// sums in so many bits.
const MultiplicitiesMax = 1 << 47

// community is one tracked community and its members, sorted.
type community struct {
	rule           Rule
	configured     bool // by a rule; else a member event created it
	retired        bool
	sum            uint64
	vertices       []Vertex
	multiplicities []uint32

	program    *rule.Program // ByExpression only
	mismatches uint64        // evaluations of it that met types that do not go together
	ego        *ego          // Ego only
}

// attributeIs is what a rule by attribute asks for.
type attributeIs struct {
	key   string
	value event.Value
}

// memberRun is where the communities of one vertex stand in the arena.
type memberRun struct {
	at  uint32
	len uint32 // in memberships
}

// members holds the communities both ways: lists by community, and runs of
// memberships by vertex, each sorted.
type members struct {
	communities []community
	byName      map[string]Community
	byAttribute map[attributeIs][]Community
	rules       rules
	egos        []Community // that are not retired, sorted
	egoMembers  int         // that they may have together
	total       int         // memberships

	runs  column[memberRun]
	arena arena // two elements a membership
}

func newMembers(a Allocator) members {
	return members{
		byName: map[string]Community{}, byAttribute: map[attributeIs][]Community{},
		rules: rules{byKey: map[string][]Community{}},
		runs:  newColumn[memberRun](a), arena: newArena(a),
	}
}

func (m *members) release() {
	m.runs.release()
	m.arena.data.release()
}

// of returns the memberships of v.
func (m *members) of(v Vertex) []Membership {
	r := m.runs.data[v]
	if r.len == 0 {
		return nil
	}
	return unsafe.Slice((*Membership)(unsafe.Pointer(&m.arena.data.data[r.at])), int(r.len))[:r.len:r.len]
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
	case Ego:
		c.ego = newEgo(rule)
		m.egos = append(m.egos, id)
		m.egoMembers += rule.egoMembersMax()
	}
	return id
}

// retire frees the name of a community and takes it out of the indices by rule.
func (m *members) retire(id Community) {
	c := &m.communities[id]
	c.retired = true
	delete(m.byName, c.rule.Name)
	is := func(other Community) bool { return other == id }
	switch c.rule.Kind {
	case ByAttribute:
		key := attributeIs{c.rule.Key, c.rule.Value}
		if m.byAttribute[key] = slices.DeleteFunc(m.byAttribute[key], is); len(m.byAttribute[key]) == 0 {
			delete(m.byAttribute, key)
		}
	case ByExpression:
		m.rules.remove(id, c)
	case Ego:
		c.ego = nil
		m.egos = slices.DeleteFunc(m.egos, is)
		m.egoMembers -= c.rule.egoMembersMax()
	}
}

// multiplicity returns how often v is a member of c.
func (m *members) multiplicity(c Community, v Vertex) uint32 {
	list := m.of(v)
	if i, ok := findMembership(list, c); ok {
		return list[i].Multiplicity
	}
	return 0
}

func findMembership(list []Membership, c Community) (int, bool) {
	return slices.BinarySearchFunc(list, c, func(m Membership, c Community) int {
		return int(m.Community) - int(c)
	})
}

// apply makes the changes of one community, sorted by vertex, true both ways.
func (m *members) apply(changes []MemberChange) {
	if len(changes) == 0 {
		return
	}
	joins, leaves := 0, 0
	for i := range changes {
		change := &changes[i]
		m.setReverse(change)
		switch {
		case change.Before == 0:
			joins++
		case change.After == 0:
			leaves++
		}
	}
	m.total += joins - leaves
	c := &m.communities[changes[0].Community]
	c.leave(changes, leaves)
	c.join(changes, joins)
}

// setReverse brings the membership of one vertex to what a change says.
func (m *members) setReverse(change *MemberChange) {
	list := m.of(change.V)
	i, _ := findMembership(list, change.Community)
	switch {
	case change.Before == 0:
		list = m.resizeRun(change.V, len(list)+1)
		copy(list[i+1:], list[i:])
		list[i] = Membership{change.Community, change.After}
	case change.After == 0:
		copy(list[i:], list[i+1:])
		m.resizeRun(change.V, len(list)-1)
	default:
		list[i].Multiplicity = change.After
	}
}

// resizeRun gives the run of v room for n memberships, and no more than the
// smallest block that holds them, and returns it.
func (m *members) resizeRun(v Vertex, n int) []Membership {
	r := &m.runs.data[v]
	var before, after uint8 // classes, 0 for no block
	if r.len > 0 {
		before = classOf(2 * int(r.len))
	}
	if n > 0 {
		after = classOf(2 * n)
	}
	if before != after {
		at := uint32(0)
		if after > 0 {
			at = m.arena.alloc(after)
			copy(m.arena.data.data[at:][:2*n], m.arena.data.data[r.at:][:2*r.len])
		}
		if before > 0 {
			m.arena.release(r.at, before)
		}
		r.at = at
	}
	r.len = uint32(n)
	return m.of(v)
}

// leave takes out who left and updates who stays, moving the lists from the
// first that left on.
func (c *community) leave(changes []MemberChange, leaves int) {
	from, to := 0, 0
	for i := range changes {
		change := &changes[i]
		c.sum += uint64(change.After) - uint64(change.Before)
		if change.Before == 0 {
			continue
		}
		offset, _ := slices.BinarySearch(c.vertices[from:], change.V)
		next := from + offset
		if change.After > 0 {
			c.multiplicities[next] = change.After
			continue
		}
		to = c.shift(from, next, to)
		from = next + 1
	}
	if leaves > 0 {
		to = c.shift(from, len(c.vertices), to)
		c.vertices, c.multiplicities = c.vertices[:to], c.multiplicities[:to]
	}
}

// shift moves the members from <= i < until down to index to, and returns the
// index after them.
func (c *community) shift(from, until, to int) int {
	if from != to {
		copy(c.vertices[to:], c.vertices[from:until])
		copy(c.multiplicities[to:], c.multiplicities[from:until])
	}
	return to + until - from
}

// join puts in who joined, from the last to the first, moving each stretch of
// the lists once.
func (c *community) join(changes []MemberChange, joins int) {
	if joins == 0 {
		return
	}
	until := len(c.vertices)
	c.vertices = slices.Grow(c.vertices, joins)[:until+joins]
	c.multiplicities = slices.Grow(c.multiplicities, joins)[:until+joins]
	for i := len(changes) - 1; joins > 0; i-- {
		change := &changes[i]
		if change.Before != 0 {
			continue
		}
		at, _ := slices.BinarySearch(c.vertices[:until], change.V)
		copy(c.vertices[at+joins:], c.vertices[at:until])
		copy(c.multiplicities[at+joins:], c.multiplicities[at:until])
		joins--
		c.vertices[at+joins], c.multiplicities[at+joins] = change.V, change.After
		until = at
	}
}
