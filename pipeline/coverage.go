package pipeline

import (
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// coverageShare bounds the counting of evidence: it takes at most one part in so many of the time.
const coverageShare = 100

// coverage keeps the counts of evidence for the status. The fold's goroutine owns it.
type coverage struct {
	counts web.Evidence
	due    time.Time
}

// count counts labels, predictions and members again if that is due, and returns the counts.
func (c *coverage) count(
	view graphstore.View, position event.Position, classes []string,
) web.Evidence {
	began := time.Now()
	if began.Before(c.due) {
		return c.counts
	}
	c.counts = countEvidence(view, classes)
	c.counts.Position = uint64(position)
	now := time.Now()
	c.due = now.Add(coverageShare * now.Sub(began))
	return c.counts
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
