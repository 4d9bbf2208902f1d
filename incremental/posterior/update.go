package posterior

import (
	"cmp"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Update follows the graph from before delta to view; votes are what the sums of the
// neighbours say changed. It marks the posteriors whose inputs may have changed, and
// returns their vertices, each once, valid until the next call.
func (s *State) Update(view graphstore.View, delta *graphstore.Delta, sums *neighborhood.Sums, votes []neighborhood.Change) []Vertex {
	s.grow(view.Vertices())
	for _, v := range s.recent {
		s.now[v] = false
	}
	s.recent = s.recent[:0]
	s.inside.update(view, delta)
	for _, e := range delta.Edges {
		if sign := appeared(e); sign != 0 {
			s.countEdge(e.V, classBefore(view, delta, e.U), sign)
			s.countEdge(e.U, classBefore(view, delta, e.V), sign)
			s.move(e.U)
			s.move(e.V)
		}
	}
	for _, l := range delta.Labels {
		s.follow(view, delta, l.V)
		s.Touch(l.V)
	}
	for _, p := range delta.Predictions {
		if _, known := labelChange(delta, p.V); !known {
			s.follow(view, delta, p.V)
		}
		s.Touch(p.V)
	}
	for _, m := range delta.Members {
		s.Touch(m.V)
	}
	for _, change := range votes {
		s.move(change.V)
	}
	s.spread(view, sums)
	return s.recent
}

// appeared returns 1 for an edge that is new, -1 for one that is gone, else 0.
func appeared(e graphstore.EdgeChange) int {
	switch {
	case e.Before == 0 && e.After != 0:
		return 1
	case e.Before != 0 && e.After == 0:
		return -1
	}
	return 0
}

// countEdge counts a neighbour of v that calibrates, at either end of an edge's life.
func (s *State) countEdge(v Vertex, class event.Class, sign int) {
	if class != event.NoClass {
		s.counts[int(v)*s.classes+int(class)] += uint32(sign)
	}
}

// follow tells the neighbours of v that it has become, or is no longer, in L, or that
// its class there changed.
func (s *State) follow(view graphstore.View, delta *graphstore.Delta, v Vertex) {
	before, after := classBefore(view, delta, v), calibrates(view, v)
	if before != event.NoClass {
		s.countModel(versionBefore(view, delta, v), -1)
	}
	if after != event.NoClass {
		s.countModel(view.Version(v), 1)
	}
	if before == after {
		return
	}
	switch {
	case before == event.NoClass:
		s.labels = insert(s.labels, v)
	case after == event.NoClass:
		s.labels = remove(s.labels, v)
	}
	for _, u := range view.Neighbors(v) {
		s.countEdge(u, before, -1)
		s.countEdge(u, after, 1)
		s.move(u)
	}
}

// move notes that g, c1 or the degree of v changed, which its neighbours read.
func (s *State) move(v Vertex) {
	if !s.marked[v] {
		s.marked[v] = true
		s.moved = append(s.moved, v)
	}
}

// spread marks all that reads what moved.
func (s *State) spread(view graphstore.View, sums *neighborhood.Sums) {
	for _, v := range s.moved {
		s.marked[v] = false
		s.Touch(v)
		if !s.tells(view, sums, v, s.options.Hubs.Move) {
			continue
		}
		for _, u := range view.Neighbors(v) {
			s.Touch(u)
		}
	}
	s.moved = s.moved[:0]
}

// Touch marks v to be computed anew when it is read next, which may be from now on.
func (s *State) Touch(v Vertex) {
	s.dirty[v] = true
	s.List(v)
	if !s.now[v] {
		s.now[v] = true
		s.recent = append(s.recent, v)
	}
}

// List has the next Ready count v among the renewed, whatever its posterior.
func (s *State) List(v Vertex) {
	if !s.listed[v] {
		s.listed[v] = true
		s.touched = append(s.touched, v)
	}
}

func labelChange(delta *graphstore.Delta, v Vertex) (graphstore.LabelChange, bool) {
	return changeOf(delta.Labels, v, func(c graphstore.LabelChange) Vertex { return c.V })
}

func predictionChange(delta *graphstore.Delta, v Vertex) (graphstore.PredictionChange, bool) {
	return changeOf(delta.Predictions, v, func(c graphstore.PredictionChange) Vertex { return c.V })
}

// changeOf looks v up in changes that are sorted by vertex.
func changeOf[T any](changes []T, v Vertex, vertex func(T) Vertex) (change T, found bool) {
	i, found := slices.BinarySearchFunc(changes, v, func(c T, v Vertex) int { return cmp.Compare(vertex(c), v) })
	if found {
		change = changes[i]
	}
	return change, found
}

// before returns the label of v before delta, and whether it had a prediction.
func before(view graphstore.View, delta *graphstore.Delta, v Vertex) (graphstore.Label, bool) {
	label, predicted := view.Label(v), view.Prediction(v) != nil
	if l, changed := labelChange(delta, v); changed {
		label = l.Before
	}
	if p, changed := predictionChange(delta, v); changed {
		predicted = p.Before != nil
	}
	return label, predicted
}

// classBefore returns the class of v if it was in L before delta, else NoClass.
func classBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) event.Class {
	if l, predicted := before(view, delta, v); predicted && l.Role == event.Calibrate {
		return l.Class
	}
	return event.NoClass
}

// versionBefore returns the model version of the prediction of v before delta.
func versionBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) uint32 {
	if p, changed := predictionChange(delta, v); changed {
		return p.VersionBefore
	}
	return view.Version(v)
}
