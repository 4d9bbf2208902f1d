package graphstore

import (
	"cmp"
	"slices"

	"gqlstream/ingest/event"
)

// noLabel is what the store knows of most vertices.
var noLabel = Label{Class: event.NoClass}

// applyLabels sets the labels that stand, withdraws those whose time has come, and
// lists those that changed.
func (s *Store) applyLabels(b *event.Batch) {
	w := &s.work
	for i := range b.Labels {
		l := &b.Labels[i]
		if l.Class < event.NoClass || int(l.Class) >= s.config.Classes {
			s.refuse(b, event.KindLabel, i, event.UnknownClass, "")
			continue
		}
		if l.Role > event.Train {
			s.refuse(b, event.KindLabel, i, event.BadValue, "role")
			continue
		}
		if v, ok := s.subject(b, event.KindLabel, i, l.Vertex, l.Class != event.NoClass); ok {
			w.labels = append(w.labels, entry{uint64(v), uint32(i)})
		}
	}
	w.labels, w.scratch = sortEntries(w.labels, w.scratch)
	for i, e := range w.labels {
		if i+1 < len(w.labels) && w.labels[i+1].key == e.key {
			continue
		}
		after, end := noLabel, forever
		if e.at != fromErasure {
			after, end = s.labelOf(&b.Labels[e.at])
		}
		s.setLabel(Vertex(e.key), after)
		s.expiry.labels.set(e.key, end)
	}
	if ended := s.expiry.labels.due(s.time, w.labels[:0]); len(ended) > 0 {
		for _, e := range ended {
			s.setLabel(Vertex(e.key), noLabel)
		}
		w.labels = ended
		slices.SortFunc(s.delta.Labels, func(a, b LabelChange) int { return cmp.Compare(a.V, b.V) })
	}
}

// labelOf returns what an event asserts, and when that ends.
func (s *Store) labelOf(l *event.Label) (Label, event.Time) {
	end := endOf(l.Time, s.time, l.TTL, s.config.Windows.Labels)
	if l.Class == event.NoClass || end <= s.time { // withdrawn, or it has ended already
		return noLabel, forever
	}
	return Label{Class: l.Class, Role: l.Role}, end
}

// setLabel replaces the label of v and lists the change, if it is one.
func (s *Store) setLabel(v Vertex, after Label) {
	if before := s.View().Label(v); before != after {
		s.count(v, -1)
		s.classes.data[v], s.roles.data[v] = int32(after.Class), uint8(after.Role)
		s.count(v, 1)
		s.delta.Labels = append(s.delta.Labels, LabelChange{V: v, Before: before, After: after})
	}
}
