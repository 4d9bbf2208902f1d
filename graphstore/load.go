package graphstore

import (
	"errors"
	"fmt"
	"slices"

	"gqlstream/ingest/event"
)

// errTable is what is wrong with a table whose values do not belong together.
var errTable = errors.New("the table contradicts itself or another one")

// Load returns the store that Sections described. section gives the bytes of each
// table, whose checksum the caller has verified: damaged bytes can end the
// process. config must have the same number of classes; its Communities are not
// used, see View.Rule and SetCommunities. With the same HubDegree the loaded store
// holds the same bytes as the one saved.
func Load(config Config, section func(Table) ([]byte, error)) (*Store, error) {
	config.Communities = nil
	s, err := New(config)
	if err != nil {
		return nil, err
	}
	l := loader{s: s}
	for _, t := range Tables() {
		l.begin(t)
		data, err := section(t)
		if err == nil {
			err = readTable(t, data, func(rows []vector) error { return l.load(t, rows) })
		}
		if err == nil {
			err = l.finish(t)
		}
		if err != nil {
			s.Release()
			return nil, fmt.Errorf("graphstore: load: %w", err)
		}
	}
	s.ids.vacuum()
	if err := s.loadEgos(); err != nil {
		s.Release()
		return nil, fmt.Errorf("graphstore: load: %w", err)
	}
	return s, nil
}

// loader fills an empty store table by table.
type loader struct {
	s                                         *Store
	shape                                     []vector // columns of the table at hand, without rows
	vertices, edges, communities, memberships uint64
	entries                                   uint64         // neighbours loaded
	changes                                   []MemberChange // of the community at hand
}

// begin notes which columns a table must have: those that the store, in which it
// is still empty, would write.
func (l *loader) begin(t Table) {
	_ = l.s.table(t, func(rows []vector) error { // visit cannot fail
		l.shape = rows
		return nil
	})
}

// load adds rows of a table.
func (l *loader) load(t Table, rows []vector) error {
	same := func(a, b vector) bool {
		return a.name == b.name && a.kind == b.kind && a.width == b.width
	}
	if !slices.EqualFunc(rows, l.shape, same) {
		return fmt.Errorf("table %s has not the columns of this version and configuration", t)
	}
	var err error
	switch t {
	case MetaTable:
		err = l.loadMeta(rows)
	case VersionsTable:
		err = l.loadVersions(rows)
	case VerticesTable:
		err = l.loadVertices(rows)
	case AdjacencyTable:
		err = l.loadAdjacency(rows)
	case AttributesTable:
		err = l.loadAttributes(rows)
	case CommunitiesTable:
		err = l.loadCommunities(rows)
	case MembersTable:
		err = l.loadMembers(rows)
	case ExpiryTable:
		err = l.loadExpiry(rows)
	case PendingTable:
		err = l.loadPending(rows)
	}
	return err
}

// finish completes what the rows of a table began.
func (l *loader) finish(t Table) error {
	s := l.s
	ok := true
	switch t {
	case VerticesTable:
		if uint64(len(s.classes.data)) != l.vertices {
			return fmt.Errorf("table %s: %w", t, errTable)
		}
		return s.checkColumns()
	case AdjacencyTable:
		return l.finishAdjacency()
	case CommunitiesTable:
		ok = uint64(len(s.members.communities)) == l.communities
	case MembersTable:
		s.members.apply(l.changes)
		s.members.vacuum()
		ok = uint64(s.members.total) == l.memberships
	case PendingTable:
		s.recountModels()
		return s.checkModels()
	}
	if !ok {
		return fmt.Errorf("table %s: %w", t, errTable)
	}
	return nil
}

func (l *loader) loadMeta(rows []vector) error {
	one := func(i int) uint64 { return elements[uint64](rows[i].data)[0] }
	if rows[0].rows != 1 || elements[uint32](rows[0].data)[0] != snapshotFormat {
		return fmt.Errorf("a snapshot of another format than %d", snapshotFormat)
	}
	if k := int(elements[uint32](rows[1].data)[0]); k != l.s.config.Classes {
		return fmt.Errorf("a snapshot of %d classes, want %d", k, l.s.config.Classes)
	}
	l.vertices, l.edges, l.communities, l.memberships = one(2), one(3), one(4), one(5)
	l.s.begin(event.Position(one(6)), event.Time(one(7)))
	return nil
}

func (l *loader) loadVertices(rows []vector) error {
	s, k := l.s, l.s.config.Classes
	labels, versions := elements[int32](rows[2].data), elements[uint32](rows[4].data)
	probabilities := elements[float64](rows[6].data)
	for i := range rows[0].rows {
		v := s.ids.restore(rows[1].text(i), rows[1].has(i))
		if int(v) != len(s.classes.data) {
			return fmt.Errorf("vertex %d stands twice", v)
		}
		s.grow(int(v) + 1)
		if rows[2].has(i) {
			s.classes.data[v] = labels[i]
			s.roles.data[v] = uint8(event.Calibrate)
			if rows[3].text(i) == event.Train.String() {
				s.roles.data[v] = uint8(event.Train)
			}
			if s.config.LabelTimes {
				s.times.data[v] = elements[event.Time](rows[7].data)[i]
			}
		}
		if rows[4].has(i) {
			s.version.data[v] = versions[i]
			for j := range k {
				s.units.data[int(v)*k+j] = uint32(probabilities[i*k+j] * event.One)
			}
		}
	}
	return nil
}

// loadAdjacency appends runs in the layout of Vacuum.
func (l *loader) loadAdjacency(rows []vector) error {
	g := &l.s.adj
	vertices := elements[uint32](rows[0].data)
	for i := range rows[0].rows {
		list, weights := listOf[uint32](&rows[1], i), listOf[float64](&rows[2], i)
		v := Vertex(vertices[i])
		if uint64(v) >= l.vertices || g.runs.data[v].len > 0 ||
			len(weights) > 0 && len(weights) != len(list) {
			return fmt.Errorf("neighbours of vertex %d: %w", v, errTable)
		}
		if len(list) == 0 {
			continue
		}
		r := &g.runs.data[v]
		r.len = uint32(len(list))
		r.setClass(classOf(len(list)))
		r.at = g.arena.alloc(r.class())
		copy(g.entries(r), list)
		r.degree = float64(len(list))
		if len(weights) > 0 {
			l.loadWeights(r, weights)
		}
		g.weightSum += r.degree
		l.entries += uint64(len(list))
	}
	return nil
}

func (l *loader) loadWeights(r *run, weights []float64) {
	g := &l.s.adj
	g.weights.resize(len(g.arena.data.data))
	copy(g.weights.data[r.at:], weights)
	r.degree = 0
	for _, weight := range weights {
		r.degree += weight
		if weight != 1 {
			g.heavy++
		}
	}
}

// finishAdjacency checks the neighbours and indexes the hubs.
func (l *loader) finishAdjacency() error {
	g := &l.s.adj
	starts := make([]uint32, len(g.runs.data))
	for v := range g.runs.data {
		r := &g.runs.data[v]
		starts[v] = r.at
		for _, u := range g.entries(r) {
			if uint64(u) >= l.vertices {
				return fmt.Errorf("vertex %d has the neighbour %d: %w", v, u, errTable)
			}
		}
	}
	if l.entries != 2*l.edges {
		return fmt.Errorf("%d neighbours of %d edges: %w", l.entries, l.edges, errTable)
	}
	g.edges = int(l.edges)
	g.settle(starts)
	return nil
}
