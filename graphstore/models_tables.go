package graphstore

import (
	"fmt"

	"gqlstream/ingest/event"
)

// The roles of model versions in their table.
const (
	activeRole   = "active"
	incomingRole = "incoming"
)

// role returns the role of a version, empty for none.
func (m *models) role(version uint32) string {
	switch version {
	case m.active:
		return activeRole
	case m.incoming:
		return incomingRole
	}
	return ""
}

// pendingRows visits the predictions of the incoming version by vertex.
func (s *Store) pendingRows(visit func([]vector) error) error {
	k := s.config.Classes
	return inChunks(len(s.classes.data), func(from, to int) error {
		vertices, probabilities := []uint32(nil), []float64(nil)
		var ends []event.Time
		var isEnding validity
		for v := Vertex(from); int(v) < to; v++ {
			if row := s.waiting(v); row != nil {
				end, known := s.expiry.waiting.at[uint64(v)]
				ends = append(ends, end)
				isEnding.append(known)
				vertices = append(vertices, uint32(v))
				for _, unit := range row {
					probabilities = append(probabilities, float64(unit)/event.One)
				}
			}
		}
		fixed := vectorOf("probabilities", probabilities)
		fixed.kind, fixed.width, fixed.rows = f64FixedVector, k, len(vertices)
		return visit([]vector{vectorOf("vertex", vertices), fixed, vectorOf("end", ends).with(isEnding)})
	})
}

func (l *loader) loadVersions(rows []vector) error {
	m, seen := &l.s.models, elements[event.Time](rows[3].data)
	for i := range rows[1].rows {
		version := uint32(len(l.s.versions.names))
		l.s.versions.add(rows[1].text(i))
		switch role := rows[2].text(i); {
		case !rows[2].has(i):
		case role == activeRole && m.active == noVersion:
			m.active = version
		case role == incomingRole && m.incoming == noVersion:
			m.incoming, m.seen = version, seen[i]
			m.pending = newColumn[uint32](l.s.config.Allocator)
		default:
			return fmt.Errorf("version %d is %q: %w", version, role, errTable)
		}
	}
	return nil
}

func (l *loader) loadPending(rows []vector) error {
	s, k := l.s, l.s.config.Classes
	vertices, probabilities := elements[uint32](rows[0].data), elements[float64](rows[1].data)
	ends := elements[event.Time](rows[2].data)
	for i := range rows[0].rows {
		at := int(vertices[i]) * k
		if at >= len(s.models.pending.data) {
			return fmt.Errorf("waiting prediction of vertex %d: %w", vertices[i], errTable)
		}
		for j := range k {
			s.models.pending.data[at+j] = uint32(probabilities[i*k+j] * event.One)
		}
		if rows[2].has(i) {
			s.expiry.waiting.set(uint64(vertices[i]), ends[i])
		}
	}
	return nil
}
