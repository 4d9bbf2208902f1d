package graphstore

import (
	"maps"
	"slices"

	"gqlstream/ingest/event"
)

// Audit returns the audit label of v.
func (l *labelling) Audit(v Vertex) Audit {
	if a, ok := l.audits[v]; ok {
		return a
	}
	return noAudit
}

// Audits returns the vertices with an audit label, sorted.
func (l *labelling) Audits() []Vertex { return slices.Sorted(maps.Keys(l.audits)) }

// setAudit replaces the audit label of v and lists the change, if it is one.
func (l *labelling) setAudit(p *step, v Vertex, after Audit) {
	before := l.Audit(v)
	if before == after {
		return
	}
	if after == noAudit {
		delete(l.audits, v)
	} else {
		l.audits[v] = after
	}
	p.delta.Audits = append(p.delta.Audits, AuditChange{V: v, Before: before, After: after})
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
