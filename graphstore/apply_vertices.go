package graphstore

import (
	"cmp"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// applyVertices sets attributes and starts erasures: what an erasure takes away
// is asserted absent and goes with the other assertions of the batch.
func (s *Store) applyVertices(b *event.Batch) {
	for i := range b.Vertices {
		e := &b.Vertices[i]
		if e.Erase {
			if v, ok := s.ids.lookup(e.Vertex); ok {
				s.erase(v)
			}
			continue
		}
		if reason, detail := s.acceptAttributes(e.Attributes); reason != "" {
			s.refuse(b, event.KindVertex, i, reason, detail)
			continue
		}
		v, ok := s.subject(b, event.KindVertex, i, e.Vertex, true)
		if !ok {
			continue
		}
		for j := range e.Attributes {
			s.setAttribute(v, e.Attributes[j].Key, e.Attributes[j].Value)
		}
		if len(s.members.rules.touched) > 0 {
			s.settleRules(v)
		}
	}
}

// acceptAttributes returns why attributes cannot be set, or nothing.
func (s *Store) acceptAttributes(list []event.Attribute) (event.Reason, string) {
	room, joins := s.config.AttributesMax-len(s.attributes.keys), 0
	for i := range list {
		key, value := list[i].Key, list[i].Value
		if value.Kind > event.BoolValue || math.IsNaN(value.Number) || math.IsInf(value.Number, 0) {
			return event.BadValue, "attribute value"
		}
		if _, known := s.attributes.index[key]; !known {
			room--
		}
		if len(s.members.byAttribute) > 0 {
			joins += len(s.members.byAttribute[attributeIs{key, value}])
		}
		if len(s.members.rules.byKey) > 0 {
			joins += len(s.members.rules.byKey[key])
		}
	}
	if room < 0 {
		return event.LimitExceeded, "attribute keys"
	}
	if !s.roomForMembers(joins) {
		return event.LimitExceeded, "memberships"
	}
	return "", ""
}

// setAttribute changes one attribute and asserts the memberships that follow.
func (s *Store) setAttribute(v Vertex, key string, value event.Value) {
	column := s.attributes.addKey(key)
	before := s.attributes.at(v, column)
	if before == value {
		return
	}
	for _, c := range s.members.byAttribute[attributeIs{key, before}] {
		s.assertMember(c, v, 0)
	}
	for _, c := range s.members.byAttribute[attributeIs{key, value}] {
		s.assertMember(c, v, 1)
	}
	s.attributes.set(v, column, value)
	if r := &s.members.rules; len(r.byKey) > 0 {
		r.touched = append(r.touched, r.byKey[key]...)
	}
}

func (s *Store) assertMember(c Community, v Vertex, multiplicity uint32) {
	w := &s.work
	w.members = append(w.members, entry{pair(uint32(c), uint32(v)), uint32(len(w.multiplicities))})
	w.multiplicities = append(w.multiplicities, multiplicity)
}

// erase asserts that v has nothing and forgets its attributes and its name.
func (s *Store) erase(v Vertex) {
	w := &s.work
	for _, u := range s.adj.neighbors(v) {
		w.edges = append(w.edges, entry{edgeKeyOf(u, v), fromErasure})
	}
	w.labels = append(w.labels, entry{uint64(v), fromErasure})
	w.predictions = append(w.predictions, entry{uint64(v), fromErasure})
	w.pending = append(w.pending, entry{uint64(v), fromErasure})
	for _, m := range s.members.of(v) {
		s.assertMember(m.Community, v, 0)
	}
	s.leaveRules(v)
	for key := range s.attributes.keys {
		s.attributes.set(v, key, event.Value{})
	}
	s.ids.erase(v)
	s.delta.Erased = append(s.delta.Erased, v)
}

// applyPredictions sets the predictions that stand, removes those whose time has
// come, and lists those that changed. Those of an incoming model version change
// nothing before it is switched to.
func (s *Store) applyPredictions(b *event.Batch) {
	w := &s.work
	s.lapse()
	came := false // a prediction of the incoming version
	for i := range b.Predictions {
		p := &b.Predictions[i]
		if IsDerived(p.Version) {
			s.refuseReserved(b, i)
			continue
		}
		if reason, ok := s.acceptPrediction(p); !ok {
			s.refuse(b, event.KindPrediction, i, reason, "")
			continue
		}
		if p.Units != nil && s.models.late(s.versions.index[p.Version]) {
			s.refuse(b, event.KindPrediction, i, event.Late, "a newer model version is being rolled out")
			continue
		}
		v, ok := s.subject(b, event.KindPrediction, i, p.Vertex, p.Units != nil)
		switch {
		case !ok:
		case p.Units == nil: // withdrawn, whichever version made it
			w.pending = append(w.pending, entry{uint64(v), uint32(i)})
			w.predictions = append(w.predictions, entry{uint64(v), uint32(i)})
		case s.admit(s.versions.index[p.Version]):
			came = true
			w.pending = append(w.pending, entry{uint64(v), uint32(i)})
		default:
			w.predictions = append(w.predictions, entry{uint64(v), uint32(i)})
		}
	}
	w.predictions, w.scratch = sortEntries(w.predictions, w.scratch)
	for i, e := range w.predictions {
		if i+1 < len(w.predictions) && w.predictions[i+1].key == e.key {
			continue
		}
		units, version, end := []uint32(nil), noVersion, forever
		if e.at != fromErasure {
			units, version, end = s.predictionOf(&b.Predictions[e.at])
		}
		s.setPrediction(&s.delta, &w.units, Vertex(e.key), units, version)
		s.expiry.predictions.set(e.key, end)
	}
	if ended := s.expiry.predictions.due(s.time, w.predictions[:0]); len(ended) > 0 {
		for _, e := range ended {
			s.setPrediction(&s.delta, &w.units, Vertex(e.key), nil, noVersion)
		}
		w.predictions = ended
		slices.SortFunc(s.delta.Predictions, func(a, b PredictionChange) int { return cmp.Compare(a.V, b.V) })
	}
	s.applyPending(b)
	if came {
		s.models.seen = s.time
		if s.models.counts.Coverage() >= s.config.SwitchAt {
			s.switchModel()
		}
	}
}

// predictionOf returns what an event asserts, and when that ends.
func (s *Store) predictionOf(p *event.Prediction) (units []uint32, version uint32, end event.Time) {
	end = endOf(p.Time, s.time, p.TTL, s.config.Windows.Predictions)
	if p.Units == nil || end <= s.time { // withdrawn, or it has ended already
		return nil, noVersion, forever
	}
	return p.Units, s.versions.index[p.Version], end
}

// acceptPrediction validates a prediction and gives its version an index.
func (s *Store) acceptPrediction(p *event.Prediction) (event.Reason, bool) {
	if p.Units == nil {
		return "", true // withdrawn
	}
	if len(p.Units) != s.config.Classes {
		return event.WrongClasses, false
	}
	sum := uint64(0)
	for _, unit := range p.Units {
		sum += uint64(unit)
	}
	if sum != event.One {
		return event.NotNormal, false
	}
	if _, known := s.versions.index[p.Version]; !known {
		if len(s.versions.names) >= s.config.VersionsMax {
			return event.LimitExceeded, false
		}
		s.versions.add(p.Version)
	}
	return "", true
}

// setPrediction replaces the prediction of v (no units: removes it) and lists
// the change in delta, if it is one; units backs what was there before.
func (s *Store) setPrediction(delta *Delta, units *[]uint32, v Vertex, after []uint32, version uint32) {
	k := s.config.Classes
	row := s.units.data[int(v)*k:][:k:k]
	change := PredictionChange{V: v, VersionBefore: s.View().Version(v)}
	before := s.View().Prediction(v)
	if s.version.data[v] == version && equalUnits(before, after) {
		return
	}
	if before != nil {
		at := len(*units)
		*units = append(*units, before...)
		change.Before = (*units)[at:len(*units):len(*units)]
	}
	s.count(v, -1)
	s.version.data[v] = version
	s.count(v, 1)
	if after == nil {
		clear(row)
	} else {
		copy(row, after)
		change.After, change.VersionAfter = row, version
	}
	delta.Predictions = append(delta.Predictions, change)
}

func equalUnits(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
