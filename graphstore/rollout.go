package graphstore

import (
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// Defaults of Config.SwitchAt and Config.LapseAfter.
const (
	SwitchAtDefault   = 0.9
	LapseAfterDefault = 24 * time.Hour
)

// models keeps the predictions of two model versions apart. Those of the active version are in the
// columns that every reader uses. Those of an incoming version wait here, unseen, until it covers
// enough of the vertices that the active one predicts. Then they replace the active ones all at
// once (switchModel), so two versions are never mixed.
//
// The first version in an event is active. Any other version, new or old, is incoming from its
// first prediction on. If a third version was first mentioned later than the incoming one, it takes
// over and the predictions of the incoming one are dropped; if earlier, it is refused as late. A
// roll-out without a prediction for LapseAfter ends.
//
// Invariant: every prediction in the columns is of the active version or of a built-in classifier,
// and counts equal a recount.
type models struct {
	active   uint32     // noVersion before the first prediction
	incoming uint32     // noVersion without a roll-out
	seen     event.Time // log time of the last prediction of incoming
	// n x K units of incoming, zero where there are none; empty without a roll-out
	pending column[uint32]
	// n: evidence behind the predictions of incoming; empty without a roll-out
	evidence evidenceColumns
	counts   RollOut
	waiting  ends // by vertex: when predictions in pending end
	came     bool // whether the batch asserted a prediction of incoming
}

// RollOut is the progress of an incoming model version: of the vertices with a prediction of the
// active version, how many also have one of the incoming version, over all and among those with a
// calibration label.
type RollOut struct {
	Version                   uint32 // index in View.Versions
	Vertices, VerticesCovered uint64
	Labels, LabelsCovered     uint64
}

// Coverage returns the smaller of the two shares, 0 if there is nothing to cover.
func (r RollOut) Coverage() float64 {
	share := func(part, all uint64) float64 {
		if all == 0 {
			return 1
		}
		return float64(part) / float64(all)
	}
	return min(share(r.VerticesCovered, r.Vertices), share(r.LabelsCovered, r.Labels))
}

// late reports whether a version is older than the one that is being rolled out.
func (m *models) late(version uint32) bool {
	return m.incoming != noVersion && version != m.active && version < m.incoming
}

// admit decides where a prediction of a version that is not late belongs: in the columns, or with
// the incoming version, which its version may become now.
func (l *labelling) admit(version uint32) (incoming bool) {
	m := &l.models
	switch {
	case m.active == noVersion:
		m.active = version
		return false
	case version == m.active:
		return false
	case version != m.incoming:
		l.drop()
		m.incoming = version
		m.pending.resize(len(l.units.data))
		m.evidence.resize(len(l.version.data))
		l.recountModels()
		l.pending = l.pending[:0] // predictions of the version that it replaces
	}
	return true
}

// drop ends a roll-out and deletes its predictions.
func (l *labelling) drop() {
	m := &l.models
	m.pending = column[uint32]{}
	m.evidence = evidenceColumns{}
	m.waiting = ends{}
	m.incoming = noVersion
	m.seen = 0
	m.counts = RollOut{}
}

// lapse ends a roll-out that has been silent for too long.
func (l *labelling) lapse(now event.Time) {
	l.models.came = false
	m, after := &l.models, l.config.LapseAfter
	if m.incoming != noVersion && after > 0 && now-m.seen >= event.Time(after) {
		l.drop()
	}
}

// waiting returns the prediction of the incoming version for v, nil when there is
// none.
func (l *labelling) waiting(v Vertex) []uint32 {
	k := l.config.Classes
	if l.models.incoming == noVersion {
		return nil
	}
	row := l.models.pending.data[int(v)*k:][:k:k]
	for _, unit := range row {
		if unit > 0 {
			return row
		}
	}
	return nil
}

// count adds v to the counts of a roll-out (sign 1) or subtracts it (-1). Call it before and after
// a change of v's prediction or label.
func (l *labelling) count(v Vertex, sign int) {
	m := &l.models
	if m.incoming == noVersion || l.version.data[v] != m.active {
		return
	}
	one, covered := uint64(sign), uint64(0) // two's complement
	if l.waiting(v) != nil {
		covered = one
	}
	c := &m.counts
	c.Vertices += one
	c.VerticesCovered += covered
	if l.classes.data[v] != int32(event.NoClass) && event.Role(l.roles.data[v]) == event.Calibrate {
		c.Labels += one
		c.LabelsCovered += covered
	}
}

// recountModels counts from scratch.
func (l *labelling) recountModels() {
	l.models.counts = RollOut{}
	if l.models.incoming == noVersion {
		return
	}
	l.models.counts.Version = l.models.incoming
	for v := range Vertex(len(l.classes.data)) {
		l.count(v, 1)
	}
}

// applyPending applies the last predictions of the incoming version, and switches to that version
// once it covers enough.
func (l *labelling) applyPending(p *step) {
	m := &l.models
	if m.incoming == noVersion {
		return
	}
	l.pending = p.sorted(l.pending)
	for entries := range runs(l.pending) {
		v := Vertex(entries[0].key)
		held := noEventPrediction
		if units := l.waiting(v); units != nil {
			held = eventPrediction{units, m.incoming, m.evidence.at(v), m.waiting.end(uint64(v))}
		}
		now := l.fold(p, entries, held)
		l.setWaiting(v, now)
		m.waiting.set(entries[0].key, now.end)
	}
	if m.came && m.counts.Coverage() >= l.config.SwitchAt {
		l.switchModel(&p.delta)
	}
}

// setWaiting replaces the prediction of the incoming version for v.
func (l *labelling) setWaiting(v Vertex, now eventPrediction) {
	k := l.config.Classes
	row := l.models.pending.data[int(v)*k:][:k]
	l.count(v, -1)
	l.models.evidence.set(v, now.evidence)
	if now.units == nil {
		clear(row)
	} else {
		copy(row, now.units)
	}
	l.count(v, 1)
}

// switchModel makes the incoming version the active one. Its predictions replace all of the active
// version: a vertex without one loses its prediction, since the confusion of one model must not be
// applied to another. The changes are merged, net, with the earlier changes of the batch.
func (l *labelling) switchModel(d *Delta) {
	m, k := &l.models, l.config.Classes
	listed := slices.Clone(d.Predictions)
	d.Predictions = d.Predictions[:0]
	l.switchEvidence(d)
	for v := range Vertex(len(l.classes.data)) {
		row, after := l.units.data[int(v)*k:][:k:k], l.waiting(v)
		change := PredictionChange{V: v}
		if len(listed) > 0 && listed[0].V == v {
			change, listed = listed[0], listed[1:]
		} else if l.version.data[v] != noVersion {
			change.Before = storeUnits(&l.before, row)
			change.VersionBefore = l.version.data[v]
		}
		switch {
		case after != nil:
			copy(row, after)
			l.version.data[v] = m.incoming
			change.After = row
		case l.version.data[v] == m.active:
			clear(row)
			l.version.data[v] = noVersion
			change.After = nil
		case change.After == nil && l.version.data[v] != noVersion:
			continue // a built-in classifier's, and untouched
		}
		if change.Before != nil || change.After != nil {
			d.Predictions = append(d.Predictions, change)
		}
	}
	m.active = m.incoming
	l.predictionEnds = m.waiting
	l.drop()
}

// switchEvidence replaces the evidence of every vertex with that of the incoming version, and lists
// the changes, net. It runs before the predictions are replaced.
func (l *labelling) switchEvidence(d *Delta) {
	listed := slices.Clone(d.Evidence)
	d.Evidence = d.Evidence[:0]
	for v := range Vertex(len(l.classes.data)) {
		before := l.evidence.at(v)
		if len(listed) > 0 && listed[0].V == v {
			before, listed = listed[0].Before, listed[1:]
		}
		switch {
		case l.waiting(v) != nil:
			l.evidence.set(v, l.models.evidence.at(v))
		case l.version.data[v] == l.models.active:
			l.evidence.set(v, Evidence{})
		}
		if before != l.evidence.at(v) {
			d.Evidence = append(d.Evidence, EvidenceChange{V: v, Before: before})
		}
	}
}
