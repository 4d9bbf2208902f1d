package posterior

import (
	"math"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Update follows the graph from before delta to view; votes are those whose sums over
// neighbours changed. The next Ready computes the vertices whose own inputs changed: their
// prediction, their edges, the predictions and the labels of their neighbours. Flush computes
// the neighbours of these as well, which read them two steps away.
func (s *State) Update(view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums, votes []Vertex) {
	s.grow(view.Vertices())
	s.inside.update(view, delta, func(v Vertex) kept { return s.kept[v] }, s.touch,
		func(v Vertex) { s.kept[v] = kept{} })
	move := func(v Vertex) {
		s.around.changed[v] = true
		s.touch(v)
	}
	for _, v := range votes {
		move(v)
	}
	for _, e := range delta.Edges {
		if sign := neighborhood.Appeared(e); sign != 0 {
			move(e.U)
			move(e.V)
			s.around.count(e.V, classBefore(view, delta, e.U), sign)
			s.around.count(e.U, classBefore(view, delta, e.V), sign)
		}
	}
	for _, l := range delta.Labels {
		s.follow(view, delta, l.V, move)
		s.touch(l.V)
	}
	for _, p := range delta.Predictions {
		move(p.V)
		if neighborhood.LabelChange(delta, p.V) == nil {
			s.follow(view, delta, p.V, move)
		}
		if p.Before != nil && p.After != nil && calibrates(view, p.V) != event.NoClass {
			for i, x := range p.After {
				s.changed += uint64(max(x, p.Before[i])-min(x, p.Before[i])) / 2
			}
		}
	}
}

// follow counts at the neighbours of v that it has become, or is no longer, in L, or that
// its class there changed.
func (s *State) follow(view graphstore.View, delta *graphstore.Delta, v Vertex, move func(Vertex)) {
	before, after := classBefore(view, delta, v), calibrates(view, v)
	if before == after {
		return
	}
	s.changed += event.One
	for _, u := range view.Neighbors(v) {
		move(u)
		s.around.count(u, before, -1)
		s.around.count(u, after, 1)
	}
}

// loadingShare is the share of the labels that must come in a second of log time where a history loads, and
// loadingEvery the time between emissions there.
const loadingShare, loadingEvery = 0.25, 500 * time.Millisecond

// Loads reports whether a history is being read: since the epoch began, labels have come at more than loadingShare of
// them a second; and whether that is so short a time ago that the next emission may wait. It waits no longer than
// until another epoch is due.
func (s *State) Loads(now event.Time) (loads, waits bool) {
	if s.epoch == nil || s.held {
		return false, false
	}
	since := time.Duration(now - s.epoch.Began)
	more := float64(len(s.labels())) - float64(s.epoch.Count)
	return more > loadingShare*float64(s.epoch.Count)*since.Seconds() && since > 0, since < loadingEvery
}

// before returns the label of v before delta, and whether it had a prediction.
func before(view graphstore.View, delta *graphstore.Delta, v Vertex) (label graphstore.Label, predicted bool) {
	units, _ := neighborhood.PredictionBefore(view, delta, v)
	return neighborhood.LabelBefore(view, delta, v), units != nil
}

// classBefore returns the class of v if it was in L before delta, else NoClass.
func classBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) event.Class {
	if l, predicted := before(view, delta, v); predicted && l.Role == event.Calibrate {
		return l.Class
	}
	return event.NoClass
}

// Moves returns how far the posteriors moved that the last Ready or Flush computed, in the order of their vertices.
func (s *State) Moves() []float64 { return s.moves }

// farthest returns by how much the posterior of a class moved, where it moved most: 1 where there is none before or after.
func farthest(before, after []float64) (most float64) {
	if len(before) != len(after) {
		return 1
	}
	for i, x := range after {
		most = max(most, math.Abs(x-before[i]))
	}
	return most
}
