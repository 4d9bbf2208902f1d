package graphstore

import (
	"fmt"

	"gqlstream/ingest/event"
)

// checkColumns checks every label and prediction by itself.
func (l *labelling) checkColumns(n int, now event.Time) error {
	for v := range Vertex(n) {
		label := l.Label(v)
		if label.Class < event.NoClass || int(label.Class) >= l.config.Classes ||
			label.Role > event.Train {
			return fmt.Errorf("vertex %d has label %+v", v, label)
		}
		if at := l.LabelTime(v); at != 0 && label.Class == event.NoClass {
			return fmt.Errorf("vertex %d has no label, of the time %d", v, at)
		}
		if err := l.checkEvidence(v, now); err != nil {
			return err
		}
		sum := uint64(0)
		for _, unit := range l.units.data[int(v)*l.config.Classes:][:l.config.Classes] {
			sum += uint64(unit)
		}
		switch version := l.version.data[v]; {
		case version == noVersion && sum != 0, version != noVersion && sum != event.One:
			return fmt.Errorf("units of vertex %d sum to %d", v, sum)
		case version != noVersion && int(version) >= len(l.versions.names):
			return fmt.Errorf("vertex %d has version %d of %d", v, version, len(l.versions.names))
		}
	}
	return nil
}

// checkEvidence checks that the predictions that events asserted rest on something, and no
// others.
func (l *labelling) checkEvidence(v Vertex, now event.Time) error {
	e, version := l.Evidence(v), l.version.data[v]
	asserted := version != noVersion && !IsDerived(l.versions.names[version])
	if asserted != (e.Weight > 0) || e.Time > now || e.Changed > now ||
		!asserted && e != (Evidence{}) {
		return fmt.Errorf("vertex %d of version %d has the evidence %+v", v, version, e)
	}
	return nil
}

// checkModels checks that one model version alone is read, and recounts how far the incoming one
// has come.
func (l *labelling) checkModels() error {
	m, k := &l.models, l.config.Classes
	for v := range Vertex(len(l.classes.data)) {
		held := l.version.data[v]
		if held != noVersion && held != m.active && !IsDerived(l.versions.names[held]) {
			return fmt.Errorf(
				"vertex %d has a prediction of version %d, active is %d", v, held, m.active,
			)
		}
	}
	if m.incoming == noVersion {
		if len(m.pending.data) > 0 || m.counts != (RollOut{}) {
			return fmt.Errorf(
				"no version is incoming, %d units wait and the counts are %+v",
				len(m.pending.data),
				m.counts,
			)
		}
		return nil
	}
	if int(m.incoming) >= len(l.versions.names) || m.incoming == m.active ||
		len(m.pending.data) != len(l.units.data) {
		return fmt.Errorf("version %d of %d is incoming beside %d, with %d units of %d",
			m.incoming, len(l.versions.names), m.active, len(m.pending.data), len(l.units.data))
	}
	for v := range Vertex(len(l.classes.data)) {
		sum := uint64(0)
		for _, unit := range m.pending.data[int(v)*k:][:k] {
			sum += uint64(unit)
		}
		if sum != 0 && (sum != event.One) {
			return fmt.Errorf("waiting units of vertex %d sum to %d", v, sum)
		}
	}
	counts := m.counts
	l.recountModels()
	if counts != m.counts {
		return fmt.Errorf("the roll-out counts %+v, a recount gives %+v", counts, m.counts)
	}
	return nil
}

// checkAudits checks every audit label by itself, and that its vertex has no other label.
func (l *labelling) checkAudits() error {
	for v, a := range l.audits {
		if int(v) >= len(l.classes.data) || a.Class < 0 || int(a.Class) >= l.config.Classes ||
			a.Pi < event.PiMin || a.Pi > event.One {
			return fmt.Errorf("vertex %d has audit label %+v", v, a)
		}
		if l.classes.data[v] != int32(event.NoClass) {
			return fmt.Errorf("vertex %d has an audit label and another one", v)
		}
	}
	return nil
}
