package posterior

import (
	"math"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// causes are the reasons for which a posterior may have changed.
type causes uint8

const (
	// a prediction, an edge or a membership, which is how things are now
	byNews   causes = 1 << iota
	byLabels        // a label that came or went, which is only known now
)

// Update follows the graph from before delta to view; votes are the vertices with changed sums over
// neighbours. sums and pairs have been updated for the same delta. The next Ready computes the
// vertices whose own inputs changed: their prediction, their edges, the predictions and the labels
// of their neighbours. Flush also computes their neighbours, which read the change two steps away.
func (s *State) Update(
	view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums, votes []Vertex,
) {
	s.grow(view.Vertices())
	s.updateInside(view, delta)
	move := func(v Vertex, why causes) {
		s.inputChanges[v] |= why
		s.touch(v, why)
	}
	for _, v := range delta.Attributes {
		s.updateFeatures(view, v)
	}
	for _, v := range votes {
		move(v, byNews)
	}
	for _, e := range delta.Edges {
		if neighborhood.Appeared(e) != 0 {
			move(e.U, byNews)
			move(e.V, byNews)
		}
	}
	for _, p := range delta.Predictions {
		s.noteHub(view, p)
		move(p.V, byNews)
	}
	for _, c := range delta.Evidence {
		s.touch(c.V, byNews)
	}
	for _, c := range s.pairs.Changes() {
		why := byNews
		if c.Before.Class != c.After.Class {
			why = byLabels
			s.changed += event.One
		} else if c.After.Class != event.NoClass {
			s.changed += c.Moved
		}
		s.touch(c.V, why)
		if c.Before != c.After {
			for _, u := range view.Neighbors(c.V) {
				move(u, why)
			}
		}
	}
}

// loadingShare is the share of the labels that must come in a second of log time where a history
// loads, and loadingEvery the time between emissions there.
const loadingShare, loadingEvery = 0.25, 500 * time.Millisecond

// Loads reports whether a history is being read: since the epoch began, labels have come at more
// than loadingShare of them a second; and whether that is so short a time ago that the next
// emission may wait. It waits no longer than until another epoch is due.
func (s *State) Loads(now event.Time) (loads, waits bool) {
	if s.epoch == nil || s.held {
		return false, false
	}
	since := time.Duration(now - s.epoch.Began)
	more := float64(len(s.labels())) - float64(s.epoch.Count)
	return more > loadingShare*float64(s.epoch.Count)*since.Seconds() &&
		since > 0, since < loadingEvery
}

// Moves returns how far the posteriors moved that the last Ready or Flush computed, in the order of
// their vertices.
func (s *State) Moves() []float64 { return s.moves }

// farthest returns by how much the posterior of a class moved, where it moved most: 1 where there
// is none before or after.
func farthest(before, after []float64) (most float64) {
	if len(before) != len(after) {
		return 1
	}
	for i, x := range after {
		most = max(most, math.Abs(x-before[i]))
	}
	return most
}
