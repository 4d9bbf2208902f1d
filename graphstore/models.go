package graphstore

import (
	"time"

	"gqlstream/ingest/event"
)

// Defaults of Config.SwitchAt and Config.LapseAfter.
const (
	SwitchAtDefault   = 0.9
	LapseAfterDefault = 24 * time.Hour
)

// models keeps the predictions of two model versions apart. Those of the active
// version stand in the columns that everybody reads; those of an incoming one wait
// here, unseen, until it covers enough of what the active one predicts. Then they
// take its place at once (switchModel), so that at no time two versions are mixed.
//
// The first version that an event names is active. Another one is incoming from
// its first prediction on, whether it is new or comes back; one mentioned later
// than the incoming takes over and drops what had come of it, one mentioned
// earlier is refused as late. A roll-out that gets no prediction for LapseAfter is
// dropped.
//
// Invariant: every prediction in the columns that no built-in classifier made is
// of the active version, and counts are those of a recount.
type models struct {
	active   uint32         // noVersion before the first prediction
	incoming uint32         // noVersion without a roll-out
	seen     event.Time     // log time of the last prediction of incoming
	pending  column[uint32] // n x K units of incoming, all zero where there are none; empty without a roll-out
	counts   RollOut
}

// RollOut says how far an incoming model version has come: how many of the
// vertices that have a prediction of the active version have one of it as well,
// over all and among those with a calibration label.
type RollOut struct {
	Version                   uint32 // index in View.Versions
	Vertices, VerticesCovered uint64
	Labels, LabelsCovered     uint64
}

// Coverage returns the smaller of the two shares; nothing is covered by anything.
func (r RollOut) Coverage() float64 {
	share := func(part, all uint64) float64 {
		if all == 0 {
			return 1
		}
		return float64(part) / float64(all)
	}
	return min(share(r.VerticesCovered, r.Vertices), share(r.LabelsCovered, r.Labels))
}

// RollOut returns how far the incoming model version has come, and whether there is
// one. Its predictions are in no other answer of the view.
func (w View) RollOut() (RollOut, bool) {
	return w.s.models.counts, w.s.models.incoming != noVersion
}

// ActiveVersion returns the index in Versions of the predictions that events
// asserted, and whether there ever was one.
func (w View) ActiveVersion() (uint32, bool) {
	return w.s.models.active, w.s.models.active != noVersion
}

func newModels() models { return models{active: noVersion, incoming: noVersion} }

// late reports whether a version is older than the one that is being rolled out.
func (m *models) late(version uint32) bool {
	return m.incoming != noVersion && version != m.active && version < m.incoming
}

// admit says where a prediction of a version that is not late belongs: to the
// columns, or to those of the incoming version, which it may become now.
func (s *Store) admit(version uint32) (incoming bool) {
	m := &s.models
	switch {
	case m.active == noVersion:
		m.active = version
		return false
	case version == m.active:
		return false
	case version != m.incoming:
		s.drop()
		m.incoming = version
		m.pending = newColumn[uint32](s.config.Allocator)
		m.pending.resize(len(s.units.data))
		s.recountModels()
		s.work.pending = s.work.pending[:0] // of a version that it takes over from
	}
	return true
}

// drop ends a roll-out and forgets what had come of it.
func (s *Store) drop() {
	m := &s.models
	m.pending.release()
	s.expiry.waiting = ends{}
	m.incoming, m.seen, m.counts = noVersion, 0, RollOut{}
}

// lapse drops a roll-out that has been silent for too long.
func (s *Store) lapse() {
	m, after := &s.models, s.config.LapseAfter
	if m.incoming != noVersion && after > 0 && s.time-m.seen >= event.Time(after) {
		s.drop()
	}
}

// waiting returns the prediction of the incoming version for v, nil when there is
// none.
func (s *Store) waiting(v Vertex) []uint32 {
	k := s.config.Classes
	if s.models.incoming == noVersion {
		return nil
	}
	row := s.models.pending.data[int(v)*k:][:k:k]
	for _, unit := range row {
		if unit > 0 {
			return row
		}
	}
	return nil
}

// count adds v to the counts of a roll-out, or takes it back: to be called on both
// sides of a change of its prediction or label.
func (s *Store) count(v Vertex, sign int) {
	m := &s.models
	if m.incoming == noVersion || s.version.data[v] != m.active {
		return
	}
	one, covered := uint64(sign), uint64(0) // two's complement
	if s.waiting(v) != nil {
		covered = one
	}
	c := &m.counts
	c.Vertices += one
	c.VerticesCovered += covered
	if s.classes.data[v] != int32(event.NoClass) && event.Role(s.roles.data[v]) == event.Calibrate {
		c.Labels += one
		c.LabelsCovered += covered
	}
}

// recountModels counts from nothing.
func (s *Store) recountModels() {
	s.models.counts = RollOut{}
	if s.models.incoming == noVersion {
		return
	}
	s.models.counts.Version = s.models.incoming
	for v := range Vertex(len(s.classes.data)) {
		s.count(v, 1)
	}
}

// applyPending sets the predictions of the incoming version that stand and removes
// those whose time has come.
func (s *Store) applyPending(b *event.Batch) {
	w := &s.work
	if s.models.incoming == noVersion {
		return
	}
	w.pending, w.scratch = sortEntries(w.pending, w.scratch)
	for i, e := range w.pending {
		if i+1 < len(w.pending) && w.pending[i+1].key == e.key {
			continue
		}
		units, end := []uint32(nil), forever
		if e.at != fromErasure {
			units, _, end = s.predictionOf(&b.Predictions[e.at])
		}
		s.setWaiting(Vertex(e.key), units)
		s.expiry.waiting.set(e.key, end)
	}
	w.pending = s.expiry.waiting.due(s.time, w.pending[:0])
	for _, e := range w.pending {
		s.setWaiting(Vertex(e.key), nil)
	}
}

// setWaiting replaces the prediction of the incoming version for v.
func (s *Store) setWaiting(v Vertex, units []uint32) {
	k := s.config.Classes
	row := s.models.pending.data[int(v)*k:][:k]
	s.count(v, -1)
	clear(row)
	copy(row, units)
	s.count(v, 1)
}

// switchModel makes the incoming version the active one. Its predictions replace
// all of the active version: a vertex that has none of it has no prediction any
// more, or the confusion would be read off one model and applied to another. The
// changes join those that the batch has listed already, net.
func (s *Store) switchModel() {
	m, w, d, k := &s.models, &s.work, &s.delta, s.config.Classes
	listed := append(w.listed[:0], d.Predictions...)
	w.listed = listed
	d.Predictions = d.Predictions[:0]
	for v := range Vertex(len(s.classes.data)) {
		row, after := s.units.data[int(v)*k:][:k:k], s.waiting(v)
		change := PredictionChange{V: v}
		if len(listed) > 0 && listed[0].V == v {
			change, listed = listed[0], listed[1:]
		} else if s.version.data[v] != noVersion {
			change.Before, change.VersionBefore = w.keep(row), s.version.data[v]
		}
		switch {
		case after != nil:
			copy(row, after)
			s.version.data[v] = m.incoming
			change.After, change.VersionAfter = row, m.incoming
		case s.version.data[v] == m.active:
			clear(row)
			s.version.data[v] = noVersion
			change.After, change.VersionAfter = nil, 0
		case change.After == nil && s.version.data[v] != noVersion:
			continue // a built-in classifier's, and untouched
		}
		if change.Before != nil || change.After != nil {
			d.Predictions = append(d.Predictions, change)
		}
	}
	m.active = m.incoming
	s.expiry.predictions = s.expiry.waiting
	s.drop()
}

// keep copies units to the backing of PredictionChange.Before.
func (w *work) keep(units []uint32) []uint32 {
	at := len(w.units)
	w.units = append(w.units, units...)
	return w.units[at:len(w.units):len(w.units)]
}
