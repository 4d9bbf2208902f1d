package neighborhood

import (
	"cmp"
	"fmt"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/parallel"
	"gqlstream/ingest/event"
)

// Vertex is the store's dense vertex index.
type Vertex = graphstore.Vertex

// Votes are the predictions of the neighbours of one vertex, counted.
type Votes struct {
	Count uint32   // neighbours that have a prediction
	Sum   []uint64 // K: sum of their units of 2^-30
	Hard  []uint64 // K: how many say each class; nil unless hard votes are kept
}

// Sums holds the votes of every vertex. One goroutine owns it.
type Sums struct {
	classes int
	width   int // of a row: 1 + K, and K more where hard votes are kept
	// a row for each vertex: how many vote, K sums of what they say and, if kept, K hard votes
	votes   []uint64
	changed []Vertex
	before  []uint64 // rows of those in changed, before the last Update
	seen    []uint32 // n: 1 + index into changed, 0 when the vertex is unchanged
}

// New returns the sums of an empty graph with K classes. Hard votes cost 8K
// bytes a vertex and are kept only on request. It panics if K < 1.
func New(classes int, keepHard bool) *Sums {
	if classes < 1 {
		panic(fmt.Sprintf("neighborhood: %d classes, want at least 1", classes))
	}
	s := &Sums{classes: classes, width: 1 + classes}
	if keepHard {
		s.width += classes
	}
	return s
}

// Votes returns the votes of the neighbours of v. The slices are the sums' own and
// valid until the next Update.
func (s *Sums) Votes(v Vertex) Votes { return s.read(s.row(s.votes, int(v))) }

// row returns one of some rows.
func (s *Sums) row(of []uint64, at int) []uint64 {
	return of[at*s.width:][:s.width:s.width]
}

func (s *Sums) read(row []uint64) Votes {
	k := s.classes
	votes := Votes{Count: uint32(row[0]), Sum: row[1 : 1+k : 1+k]}
	if len(row) > 1+k {
		votes.Hard = row[1+k:]
	}
	return votes
}

// Update brings the sums from the graph before delta to the graph of view and
// returns the vertices whose votes changed, once each and in no order that says anything.
// The result is valid until the next Update. Net changes of nothing (an edge
// replaced by another to an equal prediction) may be listed.
func (s *Sums) Update(view graphstore.View, delta *graphstore.Delta) []Vertex {
	s.grow(view.Vertices())
	for _, v := range s.changed {
		s.seen[v] = 0
	}
	s.changed, s.before = s.changed[:0], s.before[:0]

	// First the edges, with the predictions as they were; then the predictions,
	// over the edges as they are: together exactly the new sums.
	for _, e := range delta.Edges {
		if sign := Appeared(e); sign != 0 {
			ofU, _ := PredictionBefore(view, delta, e.U)
			ofV, _ := PredictionBefore(view, delta, e.V)
			s.vote(e.U, ofV, sign)
			s.vote(e.V, ofU, sign)
		}
	}
	for _, p := range delta.Predictions {
		if slices.Equal(p.Before, p.After) {
			continue // only the model version changed
		}
		for _, u := range view.Neighbors(p.V) {
			s.vote(u, p.Before, -1)
			s.vote(u, p.After, 1)
		}
	}
	return s.changed
}

// Before returns the votes of v before the last Update.
func (s *Sums) Before(v Vertex) Votes {
	if at := s.seen[v]; at > 0 {
		return s.read(s.row(s.before, int(at-1)))
	}
	return s.Votes(v)
}

func (s *Sums) grow(n int) {
	if have := len(s.seen); n > have {
		s.seen = append(s.seen, make([]uint32, n-have)...)
		s.votes = append(s.votes, make([]uint64, (n-have)*s.width)...)
	}
}

// vote is add for a prediction that may be missing; it remembers the votes of v before their first
// change.
func (s *Sums) vote(v Vertex, units []uint32, sign int) {
	if units == nil {
		return
	}
	if s.seen[v] == 0 {
		s.before = append(s.before, s.row(s.votes, int(v))...)
		s.changed = append(s.changed, v)
		s.seen[v] = uint32(len(s.changed))
	}
	s.add(v, units, sign)
}

// add counts one neighbour's prediction at v, once (sign 1) or back (sign -1).
func (s *Sums) add(v Vertex, units []uint32, sign int) {
	row, once := s.row(s.votes, int(v)), uint64(sign) // two's complement: -1 subtracts
	row[0] += once
	for j, unit := range units {
		row[1+j] += once * uint64(unit)
	}
	if len(row) > 1+s.classes {
		row[1+s.classes+int(HardClass(units))] += once
	}
}

// HardClass returns the class with the most units, the lowest on ties.
func HardClass[T uint32 | uint64](units []T) event.Class {
	best, most := 0, T(0)
	for j, unit := range units {
		if unit > most {
			best, most = j, unit
		}
	}
	return event.Class(best)
}

// Majority returns the class with the most votes, the lowest on ties, and
// whether there was any vote.
func (v Votes) Majority() (event.Class, bool) {
	if v.Count == 0 {
		return event.NoClass, false
	}
	return HardClass(v.Hard), true
}

// Recount returns the sums of the graph of view counted from nothing: the twin
// that tests hold the incremental sums against, and the start after a restore.
func Recount(view graphstore.View, classes int, keepHard bool) *Sums {
	s := New(classes, keepHard)
	s.grow(view.Vertices())
	parallel.Ranges(view.Vertices(), func(from, to int) {
		for v := Vertex(from); v < Vertex(to); v++ {
			for _, u := range view.Neighbors(v) {
				if units := view.Prediction(u); units != nil {
					s.add(v, units, 1)
				}
			}
		}
	})
	return s
}

// PredictionBefore returns the prediction of v before delta, and its model version.
func PredictionBefore(
	view graphstore.View,
	delta *graphstore.Delta,
	v Vertex,
) (units []uint32, version uint32) {
	p := changeOf(delta.Predictions, v, func(c graphstore.PredictionChange) Vertex { return c.V })
	if p != nil {
		return p.Before, p.VersionBefore
	}
	return view.Prediction(v), view.Version(v)
}

// LabelBefore returns the label of v before delta.
func LabelBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) graphstore.Label {
	if l := LabelChange(delta, v); l != nil {
		return l.Before
	}
	return view.Label(v)
}

// LabelChange returns the change of the label of v, nil if there is none.
func LabelChange(delta *graphstore.Delta, v Vertex) *graphstore.LabelChange {
	return changeOf(delta.Labels, v, func(c graphstore.LabelChange) Vertex { return c.V })
}

// changeOf looks v up in changes that are sorted by vertex.
func changeOf[T any](changes []T, v Vertex, vertex func(T) Vertex) *T {
	i, found := slices.BinarySearchFunc(
		changes,
		v,
		func(c T, v Vertex) int { return cmp.Compare(vertex(c), v) },
	)
	if !found {
		return nil
	}
	return &changes[i]
}

// Appeared returns 1 for an edge that is new, -1 for one that is gone, else 0.
func Appeared(e graphstore.EdgeChange) int {
	switch {
	case e.Before == 0 && e.After != 0:
		return 1
	case e.Before != 0 && e.After == 0:
		return -1
	}
	return 0
}
