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

// versionRow is a model version.
type versionRow struct {
	Version uint32
	Name    string
	Role    nullable[string]
	Seen    nullable[event.Time] // of the incoming version
}

// versionRows visits the model versions by index.
func (l *labelling) versionRows(yield func(versionRow) bool) {
	m := &l.models
	for i, name := range l.versions.names {
		r := versionRow{
			Version: uint32(i),
			Name:    name,
			Seen:    nullable[event.Time]{m.seen, uint32(i) == m.incoming},
		}
		switch uint32(i) {
		case m.active:
			r.Role = nullable[string]{activeRole, true}
		case m.incoming:
			r.Role = nullable[string]{incomingRole, true}
		}
		if !yield(r) {
			return
		}
	}
}

// loadVersion adds a model version and its role.
func (l *labelling) loadVersion(r *versionRow) error {
	m, version := &l.models, uint32(len(l.versions.names))
	l.versions.add(r.Name)
	switch role := r.Role.Value; {
	case !r.Role.Valid:
	case role == activeRole && m.active == noVersion:
		m.active = version
	case role == incomingRole && m.incoming == noVersion:
		m.incoming, m.seen = version, r.Seen.Value
	default:
		return fmt.Errorf("version %d is %q: %w", version, role, errTable)
	}
	return nil
}

// pendingRow is a prediction of the incoming version.
type pendingRow struct {
	Vertex        Vertex
	Probabilities []float64 `list:"fixed"`
	End           nullable[event.Time]

	evidenceRow
}

// pendingRows visits the predictions of the incoming version by vertex.
func (l *labelling) pendingRows(yield func(pendingRow) bool) {
	probabilities := make([]float64, l.config.Classes)
	for v := range Vertex(len(l.classes.data)) {
		row := l.waiting(v)
		if row == nil {
			continue
		}
		end, known := l.models.waiting.at[uint64(v)]
		if !yield(pendingRow{
			v, probabilitiesOf(row, probabilities),
			nullable[event.Time]{end, known},
			evidenceRowOf(l.models.evidence.at(v)),
		}) {
			return
		}
	}
}

// loadPending adds a prediction of the incoming version.
func (l *labelling) loadPending(r *pendingRow) error {
	at := int(r.Vertex) * l.config.Classes
	if at >= len(l.models.pending.data) {
		return fmt.Errorf("waiting prediction of vertex %d: %w", r.Vertex, errTable)
	}
	copyUnits(l.models.pending.data[at:], r.Probabilities)
	l.models.evidence.set(r.Vertex, r.value())
	if r.End.Valid {
		l.models.waiting.set(uint64(r.Vertex), r.End.Value)
	}
	return nil
}

// probabilitiesOf writes units as probabilities, zeros for none, and returns them.
func probabilitiesOf(units []uint32, probabilities []float64) []float64 {
	clear(probabilities)
	for i, unit := range units {
		probabilities[i] = float64(unit) / event.One
	}
	return probabilities
}

// copyUnits writes probabilities as units. It is exact if they were units.
func copyUnits(units []uint32, probabilities []float64) {
	for i, p := range probabilities {
		units[i] = uint32(p * event.One)
	}
}

// load sets the class columns of the last vertex from a row.
func (l *labelling) load(r *vertexRow) {
	v := len(l.classes.data) - 1
	if r.Label.Valid {
		l.classes.data[v] = r.Label.Value
		l.roles.data[v] = uint8(event.Calibrate)
		if r.Role.Value == event.Train.String() {
			l.roles.data[v] = uint8(event.Train)
		}
		l.times.data[v] = r.LabelTime.Value
	}
	if r.Version.Valid {
		l.version.data[v] = r.Version.Value
		copyUnits(l.units.data[v*l.config.Classes:], r.Probabilities.Value)
		l.evidence.set(Vertex(v), r.value())
	}
}

// auditRow is the audit label of a vertex.
type auditRow struct {
	Vertex Vertex
	Class  int32
	Pi     uint32
}

// auditRows visits the audit labels by vertex.
func (l *labelling) auditRows(yield func(auditRow) bool) {
	for _, v := range l.Audits() {
		if !yield(auditRow{v, int32(l.audits[v].Class), l.audits[v].Pi}) {
			return
		}
	}
}

// loadAudit adds an audit label.
func (l *labelling) loadAudit(r *auditRow) error {
	l.audits[r.Vertex] = Audit{Class: event.Class(r.Class), Pi: r.Pi}
	return nil
}
