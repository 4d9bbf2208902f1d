package graphstore

import (
	"slices"

	"gqlstream/ingest/event"
)

// Table names one table of the store. Each is a file of a snapshot.
type Table string

// The tables, in the order in which a snapshot is loaded. Rows of vertices and
// adjacency are in order of the vertex index, which other tables refer to.
const (
	MetaTable        Table = "meta"        // one row: what the store holds, and when
	VersionsTable    Table = "versions"    // names of the model versions, which is active and which incoming
	VerticesTable    Table = "vertices"    // id (null: erased), label, role, version, degree, probabilities
	AdjacencyTable   Table = "adjacency"   // lists of neighbours; of weights, null when all are one
	AttributesTable  Table = "attributes"  // one row for each key of each vertex
	CommunitiesTable Table = "communities" // definitions
	MembersTable     Table = "members"     // one row for each membership
	ExpiryTable      Table = "expiry"      // what ends, and when: kind 0 edges, 1 labels, 2 predictions
	PendingTable     Table = "pending"     // predictions of the incoming model version, and when they end
)

// Tables returns every table in order.
func Tables() []Table {
	return []Table{
		MetaTable, VersionsTable, VerticesTable, AdjacencyTable,
		AttributesTable, CommunitiesTable, MembersTable, ExpiryTable, PendingTable,
	}
}

// snapshotFormat is the version of the tables' meaning.
const snapshotFormat = 2

// Rows of a record batch at most, and bytes of text in it before it is closed:
// Arrow's offsets have 32 bits.
const (
	chunkRowsMax  = 1 << 16
	chunkBytesMax = 1 << 26
)

// table visits the rows of a table in chunks, at least one. The vectors are
// copies: nothing of the store is aliased.
func (s *Store) table(t Table, visit func([]vector) error) error {
	switch t {
	case MetaTable:
		return visit(s.metaRows())
	case VersionsTable:
		return s.versionRows(visit)
	case VerticesTable:
		return inChunks(len(s.classes.data), func(from, to int) error {
			return visit(s.vertexRows(from, to))
		})
	case AdjacencyTable:
		return inChunks(len(s.classes.data), func(from, to int) error {
			return visit(s.adjacencyRows(from, to))
		})
	case AttributesTable:
		return s.attributeRows(visit)
	case CommunitiesTable:
		return s.communityRows(visit)
	case MembersTable:
		return s.memberRows(visit)
	case PendingTable:
		return s.pendingRows(visit)
	default:
		return s.expiryRows(visit)
	}
}

func inChunks(n int, visit func(from, to int) error) error {
	for from := 0; ; from += chunkRowsMax {
		to := min(n, from+chunkRowsMax)
		if err := visit(from, to); err != nil || to == n {
			return err
		}
	}
}

func (s *Store) metaRows() []vector {
	return []vector{
		vectorOf("format", []uint32{snapshotFormat}),
		vectorOf("classes", []uint32{uint32(s.config.Classes)}),
		vectorOf("vertices", []uint64{uint64(len(s.classes.data))}),
		vectorOf("edges", []uint64{uint64(s.adj.edges)}),
		vectorOf("communities", []uint64{uint64(len(s.members.communities))}),
		vectorOf("memberships", []uint64{uint64(s.members.total)}),
		vectorOf("position", []event.Position{s.delta.Position}),
		vectorOf("time", []event.Time{s.time}),
	}
}

func sequence(from, to int) []uint32 {
	numbers := make([]uint32, to-from)
	for i := range numbers {
		numbers[i] = uint32(from + i)
	}
	return numbers
}

func (s *Store) vertexRows(from, to int) []vector {
	k := s.config.Classes
	var ids, roles texts
	var labelled, predicted validity
	degrees, probabilities := make([]float64, to-from), make([]float64, (to-from)*k)
	labels, versions := make([]int32, to-from), make([]uint32, to-from)
	w := s.View()
	for v := Vertex(from); int(v) < to; v++ {
		i := int(v) - from
		ids.append(w.ID(v).String(), !w.Erased(v))
		label := w.Label(v)
		labels[i] = int32(max(0, label.Class))
		labelled.append(label.Class != event.NoClass)
		roles.append(label.Role.String(), label.Class != event.NoClass)
		degrees[i], versions[i] = w.Degree(v), w.Version(v)
		units := w.Prediction(v)
		predicted.append(units != nil)
		for j, unit := range units {
			probabilities[i*k+j] = float64(unit) / event.One
		}
	}
	fixed := vectorOf("probabilities", probabilities)
	fixed.kind, fixed.width, fixed.rows = f64FixedVector, k, to-from
	rows := []vector{
		vectorOf("vertex", sequence(from, to)), ids.vector("id"),
		vectorOf("label", labels).with(labelled), roles.vector("role"),
		vectorOf("version", versions).with(predicted), vectorOf("degree", degrees), fixed.with(predicted),
	}
	if s.config.LabelTimes {
		rows = append(rows, vectorOf("label_time", slices.Clone(s.times.data[from:to])).with(labelled))
	}
	return rows
}

func (s *Store) adjacencyRows(from, to int) []vector {
	size := 0
	for v := from; v < to; v++ {
		size += int(s.adj.runs.data[v].len)
	}
	offsets, neighbors := make([]int32, 1, to-from+1), make([]uint32, 0, size)
	weights, weighted, heavy := []float64(nil), validity{}, s.adj.heavy > 0
	weightOffsets := make([]int32, 1, to-from+1)
	for v := from; v < to; v++ {
		r := &s.adj.runs.data[v]
		neighbors = append(neighbors, s.adj.entries(r)...)
		weights = append(weights, s.adj.weightsOf(Vertex(v))...)
		offsets = append(offsets, int32(len(neighbors)))
		weightOffsets = append(weightOffsets, int32(len(weights)))
		weighted.append(heavy)
	}
	return []vector{
		vectorOf("vertex", sequence(from, to)), listsOf("neighbors", offsets, neighbors),
		listsOf("weights", weightOffsets, weights).with(weighted),
	}
}

func (s *Store) versionRows(visit func([]vector) error) error {
	var names, roles texts
	var incoming validity
	var seen []event.Time
	first := 0
	flush := func(end int) error {
		rows := []vector{
			vectorOf("version", sequence(first, end)), names.vector("name"),
			roles.vector("role"), vectorOf("seen", seen).with(incoming),
		}
		first, names, roles, incoming, seen = end, texts{}, texts{}, validity{}, nil
		return visit(rows)
	}
	for i, name := range s.versions.names {
		names.append(name, true)
		role := s.models.role(uint32(i))
		roles.append(role, role != "")
		incoming.append(role == incomingRole)
		seen = append(seen, s.models.seen)
		if len(names.bytes) >= chunkBytesMax || i+1-first == chunkRowsMax {
			if err := flush(i + 1); err != nil {
				return err
			}
		}
	}
	return flush(len(s.versions.names))
}

// expiryRows visits what ends by kind, then edge or vertex; v is null for vertices.
func (s *Store) expiryRows(visit func([]vector) error) error {
	all := s.expiry.edges.sorted()
	labels := len(all)
	all = append(all, s.expiry.labels.sorted()...)
	predictions := len(all)
	all = append(all, s.expiry.predictions.sorted()...)
	return inChunks(len(all), func(from, to int) error {
		kinds, ends := make([]uint8, to-from), make([]event.Time, to-from)
		us, vs := make([]uint32, to-from), make([]uint32, to-from)
		var isEdge validity
		for i, e := range all[from:to] {
			ends[i] = e.end
			us[i], vs[i] = unpair(e.key)
			isEdge.append(from+i < labels)
			switch {
			case from+i >= predictions:
				kinds[i], us[i], vs[i] = uint8(event.KindPrediction), uint32(e.key), 0
			case from+i >= labels:
				kinds[i], us[i], vs[i] = uint8(event.KindLabel), uint32(e.key), 0
			}
		}
		return visit([]vector{
			vectorOf("kind", kinds), vectorOf("u", us), vectorOf("v", vs).with(isEdge), vectorOf("end", ends),
		})
	})
}
