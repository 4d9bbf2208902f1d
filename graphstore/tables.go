package graphstore

import (
	"errors"
	"fmt"
	"iter"

	"gqlstream/ingest/event"
)

// Table names one table of the store. Each is a file of a snapshot.
type Table string

// The tables, in the order of loading. Rows of vertices and adjacency are in order of the vertex
// index, which other tables refer to.
const (
	metaTable Table = "meta" // one row: counts and times
	// names of model versions; which is active and which incoming
	versionsTable Table = "versions"
	// id (null: erased), label, role, version, degree, probabilities
	verticesTable    Table = "vertices"
	adjacencyTable   Table = "adjacency"   // lists of neighbours; of weights, null when all are one
	attributesTable  Table = "attributes"  // one row for each key of each vertex
	communitiesTable Table = "communities" // definitions
	membersTable     Table = "members"     // one row for each membership
	// end times: kind 0 edges, 1 labels, 2 predictions
	expiryTable  Table = "expiry"
	pendingTable Table = "pending" // predictions of the incoming model version, and their ends
	// audit labels, and sampling probabilities in units
	auditsTable Table = "audits"
)

// Tables returns every table in order.
func Tables() []Table {
	return []Table{
		metaTable, versionsTable, verticesTable, adjacencyTable,
		attributesTable, communitiesTable, membersTable, expiryTable, pendingTable, auditsTable,
	}
}

// snapshotFormat is the version of the tables' meaning.
const snapshotFormat = 3

// errTable is the error of a table whose values do not belong together.
var errTable = errors.New("the table contradicts itself or another one")

// table saves and loads one part of a store.
type table struct {
	records records
	size    int                     // of its file, in bytes, about; 0: not known
	load    func(data []byte) error // adds rows to a store that has none
	finish  func() error            // completes load; may be nil
}

// tableOf returns a table of structs. load gets them one by one, and must copy the texts and lists
// that it keeps.
func tableOf[T any](
	t Table, classes int, rows iter.Seq[T], load func(*T) error, finish func() error,
) table {
	columns := columnsOf[T](classes)
	return table{
		records: recordsOf(columns, rows),
		load:    func(data []byte) error { return eachRow(t, columns, data, false, load) },
		finish:  finish,
	}
}

// table returns one table of the store. A load compares each table with meta, which the first table
// fills.
func (s *Store) table(t Table, meta *metaRow) table {
	k := s.config.Classes
	l := &s.labelling
	m := &s.members
	switch t {
	case metaTable:
		return tableOf(t, k, s.metaRows, func(r *metaRow) error { *meta = *r; return nil },
			func() error { return s.loadMeta(meta) })
	case versionsTable:
		return tableOf(t, k, l.versionRows, l.loadVersion, nil)
	case verticesTable:
		vertices := tableOf(t, k, nil, s.loadVertex,
			func() error { return agree(s.ids.len(), meta.Vertices) })
		vertices.records = s.vertexRecords(columnsOf[vertexRow](k))
		return vertices
	case adjacencyTable:
		edges := tableOf(t, k, nil, s.edges.load,
			func() error { return s.edges.finishLoad(meta.Edges) })
		edges.records = s.edges.records(columnsOf[adjacencyRow](k))
		edges.size = s.edges.fileSize()
		return edges
	case attributesTable:
		load := func(r *attributeRow) error { return s.attributes.load(r, s.ids.len()) }
		return tableOf(t, k, s.attributes.rows, load, nil)
	case communitiesTable:
		return tableOf(t, k, m.communityRows, m.loadCommunity,
			func() error { return agree(len(m.communities), meta.Communities) })
	case membersTable:
		return tableOf(t, k, m.rows, m.load,
			func() error { return agree(m.total, meta.Memberships) })
	case expiryTable:
		return tableOf(t, k, s.expiryRows, s.loadExpiry, nil)
	case pendingTable:
		return tableOf(t, k, l.pendingRows, l.loadPending,
			func() error { l.recountModels(); return nil })
	}
	return tableOf(t, k, l.auditRows, l.loadAudit, nil)
}

// agree returns an error if a table does not have the number of elements that the meta table
// states.
func agree(have int, want uint64) error {
	if uint64(have) != want {
		return fmt.Errorf("%d rows, want %d: %w", have, want, errTable)
	}
	return nil
}

// Load returns the store that Sections described. section gives the bytes of each table, whose
// checksum the caller has verified: damaged bytes can end the process. config must have the same
// number of classes; its Communities are not used, see View.Rule and SetCommunities. The loaded
// store holds the same bytes as the saved one.
func Load(config Config, section func(Table) ([]byte, error)) (*Store, error) {
	config.Communities = nil
	s, err := New(config)
	if err != nil {
		return nil, err
	}
	meta := new(metaRow)
	for _, t := range Tables() {
		if err = s.loadTable(t, meta, section); err != nil {
			break
		}
	}
	if err == nil {
		s.ids.restoreFree()
		err = s.members.loadEgos(s.graph())
	}
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return s, nil
}

func (s *Store) loadTable(t Table, meta *metaRow, section func(Table) ([]byte, error)) error {
	data, err := section(t)
	if err != nil {
		return err
	}
	table := s.table(t, meta)
	if err = table.load(data); err == nil && table.finish != nil {
		err = table.finish()
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", t, err)
	}
	return nil
}

// metaRow is the one row of the meta table.
type metaRow struct {
	Format, Classes                           uint32
	Vertices, Edges, Communities, Memberships uint64
	Position                                  event.Position
	Time                                      event.Time
}

func (s *Store) metaRows(yield func(metaRow) bool) {
	yield(metaRow{
		Format: snapshotFormat, Classes: uint32(s.config.Classes),
		Vertices: uint64(s.ids.len()), Edges: uint64(s.edges.edges),
		Communities: uint64(len(s.members.communities)), Memberships: uint64(s.members.total),
		Position: s.step.delta.Position, Time: s.step.now,
	})
}

// loadMeta sets the data about the store as a whole.
func (s *Store) loadMeta(r *metaRow) error {
	if r.Format != snapshotFormat {
		return fmt.Errorf("a snapshot of another format than %d", snapshotFormat)
	}
	if int(r.Classes) != s.config.Classes {
		return fmt.Errorf("a snapshot of %d classes, want %d", r.Classes, s.config.Classes)
	}
	s.resetBatch(&event.Batch{Last: r.Position, Time: r.Time})
	return nil
}

// ClassesOf returns the number of classes of a snapshot, from the verified bytes of its tables.
func ClassesOf(section func(Table) ([]byte, error)) (classes int, err error) {
	meta, err := section(metaTable)
	if err != nil {
		return 0, err
	}
	err = eachRow(metaTable, columnsOf[metaRow](0), meta, false, func(r *metaRow) error {
		classes = int(r.Classes)
		return nil
	})
	return classes, err
}

// vertexRow is a row of the table of vertices, which has all data about them except edges,
// attributes and communities; see Store.vertexRecords.
type vertexRow struct {
	Vertex        Vertex
	ID            nullable[string]
	Label         nullable[int32]
	Role          nullable[string]
	Version       nullable[uint32]
	Degree        float64
	Probabilities nullable[[]float64]  `list:"fixed"`
	LabelTime     nullable[event.Time] `column:"label_time"`

	evidenceRow
}

// evidenceRow is the evidence behind a prediction; null unless an event asserted the prediction.
type evidenceRow struct {
	Weight  nullable[uint32]
	Epoch   nullable[int64]
	Time    nullable[event.Time] `column:"prediction_time"`
	Changed nullable[event.Time] `column:"prediction_changed"`

	Observations nullable[uint32]
}

// evidenceRowOf returns evidence in the form that rows have.
func evidenceRowOf(e Evidence) evidenceRow {
	known := e.Weight > 0
	return evidenceRow{
		nullable[uint32]{e.Weight, known},
		nullable[int64]{e.Epoch, known},
		nullable[event.Time]{e.Time, known},
		nullable[event.Time]{e.Changed, known},
		nullable[uint32]{e.Observations, known},
	}
}

// value returns the evidence in a row.
func (r *evidenceRow) value() Evidence {
	return Evidence{
		Weight: r.Weight.Value, Epoch: r.Epoch.Value, Time: r.Time.Value, Changed: r.Changed.Value,
		Observations: r.Observations.Value,
	}
}

// loadVertex gives the next vertex its name and its class columns. Its degree follows from its
// edges.
func (s *Store) loadVertex(r *vertexRow) error {
	n := s.ids.len()
	if v := s.ids.restore(r.ID.Value, r.ID.Valid); int(v) != n {
		return fmt.Errorf("vertex %d occurs twice", v)
	}
	s.grow(n + 1)
	s.labelling.load(r)
	return nil
}

// expiryRow is an entry that ends: an edge, a label or a prediction.
type expiryRow struct {
	Kind uint8
	U    Vertex
	V    nullable[Vertex] // null for vertices
	End  event.Time
}

// expiring returns the ends of each kind, in the order of their rows.
func (s *Store) expiring() []*ends {
	return []*ends{
		event.KindEdge: &s.edges.ends, event.KindLabel: &s.labelling.labelEnds,
		event.KindPrediction: &s.labelling.predictionEnds,
	}
}

func (s *Store) expiryRows(yield func(expiryRow) bool) {
	for kind, ends := range s.expiring() {
		for _, e := range ends.sorted() {
			high, low := unpair(e.key)
			r := expiryRow{Kind: uint8(kind), U: Vertex(low), End: e.end}
			if event.Kind(kind) == event.KindEdge {
				r.U, r.V = Vertex(high), nullable[Vertex]{Vertex(low), true}
			}
			if !yield(r) {
				return
			}
		}
	}
}

// loadExpiry passes an end to the part that holds the entry.
func (s *Store) loadExpiry(r *expiryRow) error {
	n, all := s.ids.len(), s.expiring()
	if int(r.U) >= n || int(r.V.Value) >= n || int(r.Kind) >= len(all) {
		return fmt.Errorf("expiry of %d-%d of kind %d: %w", r.U, r.V.Value, r.Kind, errTable)
	}
	key := uint64(r.U)
	if r.V.Valid {
		key = pair(uint32(r.U), uint32(r.V.Value))
	}
	all[r.Kind].set(key, r.End)
	return nil
}
