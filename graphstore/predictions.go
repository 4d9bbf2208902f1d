package graphstore

import (
	"slices"

	"gqlstream/ingest/event"
)

// Prediction returns the K units of v's prediction, nil when there is none.
func (l *labelling) Prediction(v Vertex) []uint32 {
	if l.version.data[v] == noVersion {
		return nil
	}
	k := l.config.Classes
	return l.units.data[int(v)*k:][:k:k]
}

// Version returns the index in Versions of the model that made v's prediction, 0 without one.
func (l *labelling) Version(v Vertex) uint32 {
	if version := l.version.data[v]; version != noVersion {
		return version
	}
	return 0
}

// refusePrediction returns why a prediction cannot be asserted, nothing when it can. A
// version that is new gets an index, even when its vertex is refused afterwards.
func (l *labelling) refusePrediction(e *event.Prediction) (event.Reason, string) {
	if IsDerived(e.Version) {
		return event.BadValue, "model versions that begin with " + DerivedPrefix + " are reserved"
	}
	if e.Units == nil {
		return "", "" // withdrawn
	}
	if len(e.Units) != l.config.Classes {
		return event.WrongClasses, ""
	}
	sum := uint64(0)
	for _, unit := range e.Units {
		sum += uint64(unit)
	}
	if sum != event.One {
		return event.NotNormal, ""
	}
	if _, known := l.versions.index[e.Version]; !known {
		if len(l.versions.names) >= l.config.versionsMax {
			return event.LimitExceeded, ""
		}
		l.versions.add(e.Version)
	}
	if l.models.late(l.versions.index[e.Version]) {
		return event.Late, "a newer model version is being rolled out"
	}
	return "", ""
}

// assertPrediction says that prediction event at, which was not refused, is about v. One
// that withdraws a prediction does so whichever version made it.
func (l *labelling) assertPrediction(p *step, v Vertex, at int) {
	e, entry := &p.batch.Predictions[at], entry{uint64(v), uint32(at)}
	incoming := e.Units != nil && l.admit(l.versions.index[e.Version])
	if incoming || e.Units == nil {
		l.pending = append(l.pending, entry)
	}
	if !incoming {
		l.predictions = append(l.predictions, entry)
	}
	if incoming {
		l.models.seen, l.models.came = p.now, true
	}
}

// applyPredictions sets or removes the predictions that stand, and lists those that
// changed. Those of an incoming model version change nothing before it is switched to.
func (l *labelling) applyPredictions(p *step) {
	l.predictions = p.standing(l.predictions)
	for _, e := range l.predictions {
		units, version, end := []uint32(nil), noVersion, forever
		if e.at != fromErasure {
			units, version, end = l.predicts(&p.batch.Predictions[e.at], p.now)
		}
		l.setPrediction(&p.delta, &l.before, Vertex(e.key), units, version)
		l.predictionEnds.set(e.key, end)
	}
	l.applyPending(p)
}

// predicts returns the prediction that an event asserts, and its end.
func (l *labelling) predicts(
	e *event.Prediction,
	now event.Time,
) (units []uint32, version uint32, end event.Time) {
	end = endOf(e.Time, now, e.TTL, l.config.Windows.Predictions)
	if e.Units == nil || end <= now { // withdrawn, or it has ended already
		return nil, noVersion, forever
	}
	return e.Units, l.versions.index[e.Version], end
}

// setPrediction replaces the prediction of v (no units: removes it) and lists
// the change in delta, if it is one; backing holds what was there before.
func (l *labelling) setPrediction(
	delta *Delta,
	backing *[]uint32,
	v Vertex,
	after []uint32,
	version uint32,
) {
	before := l.Prediction(v)
	if l.version.data[v] == version && slices.Equal(before, after) {
		return
	}
	change := PredictionChange{V: v, VersionBefore: l.Version(v)}
	if before != nil {
		change.Before = keep(backing, before)
	}
	l.count(v, -1)
	l.version.data[v] = version
	l.count(v, 1)
	k := l.config.Classes
	row := l.units.data[int(v)*k:][:k:k]
	if after == nil {
		clear(row)
	} else {
		copy(row, after)
		change.After = row
	}
	delta.Predictions = append(delta.Predictions, change)
}

// keep copies units to the end of the backing memory and returns them there.
func keep(backing *[]uint32, units []uint32) []uint32 {
	at := len(*backing)
	*backing = append(*backing, units...)
	return (*backing)[at:len(*backing):len(*backing)]
}
