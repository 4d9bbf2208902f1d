package graphstore

import (
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// Apply applies the events of a batch and returns the changes and the refusals. Order: vertices,
// edges, labels, predictions, posts, members. Labels and predictions that end by the batch's clock
// end before the batch's own assertions of their kind, edges after them. Of several assertions with
// one key the last one counts, whatever their times, so a batch costs what it changes; posts add
// up, in any order. Both results are valid until the next Apply. The store copies the strings that
// it keeps.
//
// A refused event changes nothing. Assertions of absence (an edge removed, a label or prediction
// withdrawn, a member leaving) do not create the vertices and communities that they name. An erased
// vertex loses its edges, label, prediction, attributes, memberships and name; its index is free
// from the next Apply on.
func (s *Store) Apply(b *event.Batch) (*Delta, []event.Refusal) {
	s.resetBatch(b)
	s.assertVertices(b)
	s.assertEdges(b)
	s.labelling.expire(s.step.endsBy)
	s.assertLabels(b)
	s.assertPredictions(b)
	s.assertPosts(b)
	s.edges.apply(&s.step)
	s.labelling.applyLabels(&s.step)
	s.labelling.applyPredictions(&s.step)
	s.assertMembers(b)
	s.members.applyEgos(s.graph(), &s.step.delta)
	s.members.apply(&s.step)
	d := &s.step.delta
	slices.Sort(d.Erased)
	s.ids.release(d.Erased)
	slices.Sort(d.Reused)
	slices.Sort(d.Attributes)
	d.Attributes = slices.Compact(d.Attributes)
	return d, s.step.refused
}

// resetBatch empties the step and the per-batch state of the parts.
func (s *Store) resetBatch(b *event.Batch) {
	s.step.reset(b)
	s.step.delta.FirstVertex = Vertex(s.ids.len())
	s.step.delta.FirstCommunity = Community(len(s.members.communities))
	s.edges.resetBatch()
	if b.SetsClock() {
		s.labelling.setClock(s.step.now)
	}
	s.labelling.resetBatch(s.step.now)
	s.members.resetBatch()
}

// vertex returns the index of id, which it creates if need be, or the reason to refuse it.
func (s *Store) vertex(id event.ID) (Vertex, event.Reason) {
	v, known := s.ids.Lookup(id)
	n := s.ids.len()
	switch {
	case known:
		return v, ""
	case !s.verticesFit(1):
		return 0, event.LimitExceeded
	case len(id.Name) > IDBytesMax:
		return 0, event.BadID
	}
	if v = s.ids.add(id); int(v) == n {
		s.grow(n + 1)
	} else {
		s.step.delta.Reused = append(s.step.delta.Reused, v)
	}
	s.members.assertEach(s.members.rules.matchNone, v, 1)
	return v, ""
}

// grow extends every part to n vertices; only the last one is new.
func (s *Store) grow(n int) {
	s.edges.grow()
	s.members.of = append(s.members.of, nil)
	s.labelling.grow(n)
}

// verticesFit reports whether n new vertices fit, together with their memberships in the
// communities that hold vertices without attributes.
func (s *Store) verticesFit(n int) bool {
	joins := n * len(s.members.rules.matchNone)
	return n == 0 ||
		s.View().Present()+n <= s.config.Limits.Vertices && (joins == 0 || s.members.fit(joins))
}

// subject returns the vertex that an event is about. It creates the vertex when
// the event asserts something present, and refuses the event when it cannot.
func (s *Store) subject(kind event.Kind, i int, id event.ID, present bool) (Vertex, bool) {
	if !present {
		return s.ids.Lookup(id)
	}
	v, reason := s.vertex(id)
	if reason != "" {
		s.step.refuse(kind, i, reason, "vertex")
	}
	return v, reason == ""
}

// assertVertices sets attributes and starts erasures. An erasure asserts absence for everything
// about its vertex; the parts apply that with the other assertions of the batch.
func (s *Store) assertVertices(b *event.Batch) {
	for i := range b.Vertices {
		e := &b.Vertices[i]
		if e.Erase {
			if v, ok := s.ids.Lookup(e.Vertex); ok {
				s.erase(v)
			}
			continue
		}
		if reason, detail := s.refuseAttributes(e.Attributes); reason != "" {
			s.step.refuse(event.KindVertex, i, reason, detail)
			continue
		}
		v, ok := s.subject(event.KindVertex, i, e.Vertex, true)
		if !ok {
			continue
		}
		s.step.delta.Attributes = append(s.step.delta.Attributes, v)
		for j := range e.Attributes {
			key, value := e.Attributes[j].Key, e.Attributes[j].Value
			if before := s.attributes.set(v, key, value); before != value {
				s.members.attributeChanges(v, key, before, value)
			}
		}
		s.members.applyRules(s.attributes, v)
		if s.except.reads(e.Attributes) && s.except.holds(s.attributes, v) {
			s.labelling.forget(v)
		}
	}
}

// refuseAttributes returns the reason why attributes cannot be set, empty if they can.
func (s *Store) refuseAttributes(list []event.Attribute) (event.Reason, string) {
	free, joins := s.config.attributesMax-len(s.attributes), 0
	for i := range list {
		key, value := list[i].Key, list[i].Value
		if value.Kind > event.BoolValue || math.IsNaN(value.Number) || math.IsInf(value.Number, 0) {
			return event.BadValue, "attribute value"
		}
		if s.attributes[key] == nil {
			free--
		}
		joins += s.members.joinsBy(key, value)
	}
	switch {
	case free < 0:
		return event.LimitExceeded, "attribute keys"
	case !s.members.fit(joins):
		return event.LimitExceeded, "memberships"
	}
	return "", ""
}

// erase asserts that v has nothing, and deletes its attributes and its name.
func (s *Store) erase(v Vertex) {
	s.edges.leave(v)
	s.labelling.forget(v)
	s.members.leave(s.attributes, v)
	for key := range s.attributes {
		s.attributes.set(v, key, event.Value{})
	}
	s.ids.erase(v)
	s.step.delta.Erased = append(s.step.delta.Erased, v)
	s.step.delta.Attributes = append(s.step.delta.Attributes, v)
}
