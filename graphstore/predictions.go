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

// refusePrediction returns the reason to refuse a prediction, empty if it is valid.
func (l *labelling) refusePrediction(e *event.Prediction) (event.Reason, string) {
	if e.Units == nil { // withdrawn
		if IsDerived(e.Version) {
			return event.BadValue, reservedVersion
		}
		return "", ""
	}
	return l.refuseUnits(e.Units, e.Version)
}

// reservedVersion is the detail of a refused version.
const reservedVersion = "model versions that begin with " + DerivedPrefix + " are reserved"

// refuseUnits returns the reason to refuse probabilities of a model version, empty if they are
// valid. A new version gets an index even if its vertex is refused afterwards.
func (l *labelling) refuseUnits(units []uint32, version string) (event.Reason, string) {
	if IsDerived(version) {
		return event.BadValue, reservedVersion
	}
	if len(units) != l.config.Classes {
		return event.WrongClasses, ""
	}
	sum := uint64(0)
	for _, unit := range units {
		sum += uint64(unit)
	}
	if sum != event.One {
		return event.NotNormal, ""
	}
	if _, known := l.versions.index[version]; !known {
		if len(l.versions.names) >= l.config.versionsMax {
			return event.LimitExceeded, ""
		}
		l.versions.add(version)
	}
	if l.models.late(l.versions.index[version]) {
		return event.Late, "a newer model version is being rolled out"
	}
	return "", ""
}

// assertPrediction records that prediction event at, which is valid, is about v. A withdrawal
// removes a prediction of any version.
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

// applyPredictions applies the last assertion of each vertex, and lists the changes. Predictions of
// an incoming model version change nothing before the switch.
func (l *labelling) applyPredictions(p *step) {
	l.predictions = p.sorted(l.predictions)
	for entries := range runs(l.predictions) {
		v := Vertex(entries[0].key)
		now := l.fold(p, entries, l.eventPrediction(v))
		l.setPrediction(&p.delta, &l.before, v, now)
		l.predictionEnds.set(entries[0].key, now.end)
	}
	l.applyPending(p)
}

// eventPrediction returns the prediction of v, if an event asserted it.
func (l *labelling) eventPrediction(v Vertex) eventPrediction {
	version := l.version.data[v]
	if version == noVersion || IsDerived(l.versions.names[version]) {
		return noEventPrediction
	}
	return eventPrediction{
		l.Prediction(v), version, l.evidence.at(v), l.predictionEnds.end(uint64(v)),
	}
}

// predicts returns the prediction that an entry asserts. The entry must not be a post.
func (l *labelling) predicts(p *step, at entry) eventPrediction {
	if at.at == absent {
		return noEventPrediction
	}
	e := &p.batch.Predictions[at.at]
	end := p.endOf(e.Time, e.TTL, l.config.Windows.Predictions)
	if e.Units == nil || end <= p.endsBy { // withdrawn, or ended already
		return noEventPrediction
	}
	now := eventPrediction{units: e.Units, version: l.versions.index[e.Version], end: end}
	now.evidence = Evidence{Time: p.ownTime(e.Time), Changed: p.now}
	now.evidence.Weight, now.evidence.Epoch = l.config.Evidence.weigh(now.evidence.Time)
	if e.Rests.Weight > 0 {
		now.evidence = e.Rests
	}
	return now
}

// setPrediction replaces the prediction of v and lists the change in delta, if there is one;
// backing holds the units before. A built-in classifier that repeats its prediction makes no
// change.
func (l *labelling) setPrediction(delta *Delta, backing *[]uint32, v Vertex, now eventPrediction) {
	before, was := l.Prediction(v), l.evidence.at(v)
	same := l.version.data[v] == now.version && slices.Equal(before, now.units)
	if was != now.evidence {
		l.evidence.set(v, now.evidence)
		delta.Evidence = append(delta.Evidence, EvidenceChange{V: v, Before: was})
	}
	if same {
		return
	}
	change := PredictionChange{V: v, VersionBefore: l.Version(v)}
	if before != nil {
		change.Before = storeUnits(backing, before)
	}
	l.count(v, -1)
	l.version.data[v] = now.version
	l.count(v, 1)
	k := l.config.Classes
	row := l.units.data[int(v)*k:][:k:k]
	if now.units == nil {
		clear(row)
	} else {
		copy(row, now.units)
		change.After = row
	}
	delta.Predictions = append(delta.Predictions, change)
}

// storeUnits copies units to the end of the backing memory and returns them there.
func storeUnits(backing *[]uint32, units []uint32) []uint32 {
	at := len(*backing)
	*backing = append(*backing, units...)
	return (*backing)[at:len(*backing):len(*backing)]
}
