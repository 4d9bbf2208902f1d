package pipeline

import (
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// seldomShare bounds the reading of all vertices for the page: at most 1/seldomShare of the time.
const seldomShare = 100

// seldom keeps a value that takes long to make, and makes it again when that is due. The fold's
// goroutine owns it.
type seldom[T any] struct {
	value T
	due   time.Time
}

// get returns the value, made again if that is due.
func (s *seldom[T]) get(read func() T) T {
	began := time.Now()
	if began.Before(s.due) {
		return s.value
	}
	s.value = read()
	now := time.Now()
	s.due = now.Add(seldomShare * now.Sub(began))
	return s.value
}

// coverage keeps the counts of evidence for the status.
type coverage struct{ seldom[web.Evidence] }

// count counts labels, predictions and members again if that is due, and returns the counts.
func (c *coverage) count(
	view graphstore.View, position event.Position, classes []string,
) web.Evidence {
	return c.get(func() web.Evidence {
		counts := countEvidence(view, classes)
		counts.Position = uint64(position)
		return counts
	})
}

// countEvidence counts the vertices with a label, with a prediction and in a community, and how
// many of each have an edge. It reads every vertex once.
func countEvidence(view graphstore.View, classes []string) web.Evidence {
	byClass := make([]uint64, len(classes))
	var labels, predictions, members web.Meeting
	for v := range graphstore.Vertex(view.Vertices()) {
		edge := view.Degree(v) > 0
		if class := view.Label(v).Class; class >= 0 {
			labels.Add(edge)
			byClass[class]++
		}
		if view.Prediction(v) != nil {
			predictions.Add(edge)
		}
		if len(view.MemberOf(v)) > 0 {
			members.Add(edge)
		}
	}
	of := map[string]uint64{}
	for class, name := range classes {
		of[name] = byClass[class]
	}
	return web.Evidence{
		Labels: labels, LabelsByClass: of, Predictions: predictions, Members: members,
	}
}
