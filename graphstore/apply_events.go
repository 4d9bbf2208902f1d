package graphstore

import "gqlstream/ingest/event"

// assertEdges passes the edge events of the batch to the edges.
func (s *Store) assertEdges(b *event.Batch) {
	for i := range b.Edges {
		if key, ok := s.edgeKey(b, i); ok {
			s.edges.assert(key, uint32(i))
		}
	}
}

// edgeKey validates an edge event and returns the key of its edge.
func (s *Store) edgeKey(b *event.Batch, i int) (uint64, bool) {
	e := &b.Edges[i]
	var reason event.Reason
	switch {
	case e.Src == e.Dst:
		reason = event.SelfLoop
	case e.Remove:
		u, known := s.ids.Lookup(e.Src)
		v, both := s.ids.Lookup(e.Dst)
		return edgeKeyOf(u, v), known && both
	case !goodWeight(e.Weight):
		reason = event.BadWeight
	case len(e.Src.Name) > IDBytesMax || len(e.Dst.Name) > IDBytesMax:
		reason = event.BadID
	case !s.verticesFit(2) && !s.verticesFit(s.countNew(e.Src, e.Dst)):
		reason = event.LimitExceeded
	default:
		src, _ := s.vertex(e.Src)
		dst, _ := s.vertex(e.Dst)
		return edgeKeyOf(src, dst), true
	}
	s.step.refuse(event.KindEdge, i, reason, "")
	return 0, false
}

// goodWeight reports whether w is a valid edge weight.
func goodWeight(w float64) bool {
	return w > 0 && w <= event.WeightMax && w == event.RoundWeight(w)
}

// countNew returns how many different vertices of ids do not exist yet.
func (s *Store) countNew(ids ...event.ID) (n int) {
	for _, id := range ids {
		if _, known := s.ids.Lookup(id); !known {
			n++
		}
	}
	return n
}

// assertLabels passes the label events of the batch to the labelling.
func (s *Store) assertLabels(b *event.Batch) {
	for i := range b.Labels {
		e := &b.Labels[i]
		if reason, detail := s.labelling.refuseLabel(e); reason != "" {
			s.step.refuse(event.KindLabel, i, reason, detail)
		} else if v, ok := s.evident(event.KindLabel, i, e.Vertex, e.Class != event.NoClass); ok {
			s.labelling.assertLabel(v, i)
		}
	}
}

// assertPredictions passes the prediction events of the batch to the labelling.
func (s *Store) assertPredictions(b *event.Batch) {
	for i := range b.Predictions {
		e := &b.Predictions[i]
		if reason, detail := s.labelling.refusePrediction(e); reason != "" {
			s.step.refuse(event.KindPrediction, i, reason, detail)
		} else if v, ok := s.evident(event.KindPrediction, i, e.Vertex, e.Units != nil); ok {
			s.labelling.assertPrediction(&s.step, v, i)
		}
	}
}

// evident is subject for a label or prediction; ok is false also if it is not read.
func (s *Store) evident(kind event.Kind, i int, id event.ID, present bool) (v Vertex, ok bool) {
	v, ok = s.subject(kind, i, id, present)
	return v, ok && !s.except.holds(s.attributes, v)
}

// assertMembers passes the member events of the batch to the members. Events about a community with
// a rule are refused. Leaving a community that does not exist has no effect.
func (s *Store) assertMembers(b *event.Batch) {
	for i := range b.Members {
		e := &b.Members[i]
		c, known, reason, detail := s.members.refuse(e, s.config.Limits.Communities)
		if reason != "" {
			s.step.refuse(event.KindMember, i, reason, detail)
			continue
		}
		present := e.Multiplicity > 0
		if !known && !present {
			continue
		}
		if v, ok := s.subject(event.KindMember, i, e.Vertex, present); ok {
			s.members.assertEvent(e, c, known, v)
		}
	}
}
