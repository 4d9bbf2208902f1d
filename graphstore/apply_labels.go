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
		after, at, end := noLabel, event.Time(0), forever
		if e.at != fromErasure {
			after, at, end = s.labelOf(&b.Labels[e.at])
		}
		s.setLabel(Vertex(e.key), after, at)
		s.expiry.labels.set(e.key, end)
	}
	if ended := s.expiry.labels.due(s.time, w.labels[:0]); len(ended) > 0 {
		for _, e := range ended {
			s.setLabel(Vertex(e.key), noLabel, 0)
		}
		w.labels = ended
		slices.SortFunc(s.delta.Labels, func(a, b LabelChange) int { return cmp.Compare(a.V, b.V) })
	}
}

// labelOf returns what an event asserts, since when, and when that ends. Nothing is
// younger than the log.
func (s *Store) labelOf(l *event.Label) (label Label, at, end event.Time) {
	end = endOf(l.Time, s.time, l.TTL, s.config.Windows.Labels)
	if l.Class == event.NoClass || end <= s.time { // withdrawn, or it has ended already
		return noLabel, 0, forever
	}
	if at = l.Time; at == 0 || at > s.time {
		at = s.time
	}
	return Label{Class: l.Class, Role: l.Role}, at, end
}

// setLabel replaces the label of v and lists the change, if it is one.
func (s *Store) setLabel(v Vertex, after Label, at event.Time) {
	before, was := s.View().Label(v), s.View().LabelTime(v)
	if !s.config.LabelTimes {
		at = 0
	}
	if before != after || was != at {
		s.count(v, -1)
		s.classes.data[v], s.roles.data[v] = int32(after.Class), uint8(after.Role)
		s.count(v, 1)
		if s.config.LabelTimes {
			s.times.data[v] = at
		}
		s.delta.Labels = append(s.delta.Labels, LabelChange{V: v, Before: before, After: after, TimeBefore: was})
	}
}
