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

// Votes are the predictions of the neighbours of one vertex, counted. Each counts with the mass of
// its evidence; see graphstore.View.MassUnits.
type Votes struct {
	Mass uint64   // of the neighbours that have a prediction, in units of 1/graphstore.MassWhole
	Sum  []uint64 // K: sum of their predictions times their masses, in units of the mass and 2^-30
	Hard []uint64 // K: the mass that says each class; nil unless hard votes are kept
}

// Sums holds the votes of every vertex. One goroutine owns it.
type Sums struct {
	classes int
	at      event.Time // as of when evidence has its mass
	width   int        // of a row: 1 + K, and K more where hard votes are kept
	// a row for each vertex: the mass of the votes, K sums of predictions and, if stored, K hard
	// votes
	votes   []uint64
	changed []Vertex
	before  []uint64 // rows of those in changed, before the last Update
	seen    []uint32 // n: 1 + index into changed, 0 when the vertex is unchanged
	step    []uint64 // a row: scratch of replace
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
	s.step = make([]uint64, s.width)
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
	votes := Votes{Mass: row[0], Sum: row[1 : 1+k : 1+k]}
	if len(row) > 1+k {
		votes.Hard = row[1+k:]
	}
	return votes
}

// Update updates the sums from the graph before delta to the graph of view and returns the vertices
// with changed votes, once each, in no particular order. The result is valid until the next Update.
// Net changes of nothing (an edge replaced by another to an equal prediction) may be listed.
func (s *Sums) Update(view graphstore.View, delta *graphstore.Delta) []Vertex {
	s.resetChanges(view)

	// First the edges, with the votes as they were; then the votes, over the edges as they are:
	// together exactly the new sums.
	for _, e := range delta.Edges {
		if sign := Appeared(e); sign != 0 {
			s.vote(e.U, s.voteBefore(view, delta, e.V), sign)
			s.vote(e.V, s.voteBefore(view, delta, e.U), sign)
		}
	}
	for _, p := range delta.Predictions {
		s.replaceVote(view, delta, p.V)
	}
	for _, e := range delta.Evidence {
		if predictionChange(delta, e.V) == nil {
			s.replaceVote(view, delta, e.V)
		}
	}
	return s.changed
}

// Age computes the mass of all evidence for another time, and returns the vertices with changed
// votes, as Update does.
func (s *Sums) Age(view graphstore.View, at event.Time) []Vertex {
	s.resetChanges(view)
	then := s.at
	s.at = at
	for v := range Vertex(view.Vertices()) {
		units := view.Prediction(v)
		if units == nil {
			continue
		}
		evidence := view.Evidence(v)
		before := vote{units, view.MassUnits(evidence, then)}
		after := vote{units, view.MassUnits(evidence, at)}
		if before.mass != after.mass {
			s.replace(view, v, before, after)
		}
	}
	return s.changed
}

// At returns the time of the masses of evidence.
func (s *Sums) At() event.Time { return s.at }

// resetChanges clears the changes of the last Update.
func (s *Sums) resetChanges(view graphstore.View) {
	s.grow(view.Vertices())
	for _, v := range s.changed {
		s.seen[v] = 0
	}
	s.changed, s.before = s.changed[:0], s.before[:0]
}

// vote is the prediction of a vertex and its mass, as neighbours count it; none without units.
type vote struct {
	units []uint32
	mass  uint16
}

// voteOf returns the vote of v.
func (s *Sums) voteOf(view graphstore.View, v Vertex) vote {
	units := view.Prediction(v)
	if units == nil {
		return vote{}
	}
	return vote{units, view.MassUnits(view.Evidence(v), s.at)}
}

// voteBefore returns the vote of v before delta.
func (s *Sums) voteBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) vote {
	units, _ := PredictionBefore(view, delta, v)
	if units == nil {
		return vote{}
	}
	return vote{units, view.MassUnits(EvidenceBefore(view, delta, v), s.at)}
}

// replaceVote replaces the vote that v had before delta.
func (s *Sums) replaceVote(view graphstore.View, delta *graphstore.Delta, v Vertex) {
	before, after := s.voteBefore(view, delta, v), s.voteOf(view, v)
	if before.mass != after.mass || !slices.Equal(before.units, after.units) {
		s.replace(view, v, before, after)
	}
}

// replace has the neighbours of v count another vote of it.
func (s *Sums) replace(view graphstore.View, v Vertex, before, after vote) {
	clear(s.step)
	s.add(s.step, before, -1)
	s.add(s.step, after, 1)
	for _, u := range view.Neighbors(v) {
		s.remember(u)
		row := s.row(s.votes, int(u))
		for i, x := range s.step {
			row[i] += x
		}
	}
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

// vote counts one neighbour's vote at v, once (sign 1) or back (sign -1).
func (s *Sums) vote(v Vertex, of vote, sign int) {
	if of.units != nil {
		s.remember(v)
		s.add(s.row(s.votes, int(v)), of, sign)
	}
}

// remember keeps the votes of v as they were before their first change.
func (s *Sums) remember(v Vertex) {
	if s.seen[v] == 0 {
		s.before = append(s.before, s.row(s.votes, int(v))...)
		s.changed = append(s.changed, v)
		s.seen[v] = uint32(len(s.changed))
	}
}

// add counts a vote, which may be missing, in a row, once (sign 1) or back (sign -1).
func (s *Sums) add(row []uint64, of vote, sign int) {
	if of.units == nil {
		return
	}
	mass := uint64(sign) * uint64(of.mass) // -1 subtracts
	row[0] += mass
	for j, unit := range of.units {
		row[1+j] += mass * uint64(unit)
	}
	if len(row) > 1+s.classes {
		row[1+s.classes+int(HardClass(of.units))] += mass
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
	if v.Mass == 0 {
		return event.NoClass, false
	}
	return HardClass(v.Hard), true
}

// Recount returns the sums of the graph of view counted with the masses of a time. It is the twin
// that tests hold the incremental sums against, and the start after a restore.
func Recount(view graphstore.View, classes int, keepHard bool, at event.Time) *Sums {
	s := New(classes, keepHard)
	s.at = at
	s.grow(view.Vertices())
	parallel.Ranges(view.Vertices(), func(from, to int) {
		for v := Vertex(from); v < Vertex(to); v++ {
			for _, u := range view.Neighbors(v) {
				s.add(s.row(s.votes, int(v)), s.voteOf(view, u), 1)
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
	if p := predictionChange(delta, v); p != nil {
		return p.Before, p.VersionBefore
	}
	return view.Prediction(v), view.Version(v)
}

// predictionChange returns the change of the prediction of v, nil if there is none.
func predictionChange(delta *graphstore.Delta, v Vertex) *graphstore.PredictionChange {
	return changeOf(delta.Predictions, v, func(c graphstore.PredictionChange) Vertex { return c.V })
}

// EvidenceBefore returns the evidence behind the prediction of v before delta.
func EvidenceBefore(view graphstore.View, delta *graphstore.Delta, v Vertex) graphstore.Evidence {
	e := changeOf(delta.Evidence, v, func(c graphstore.EvidenceChange) Vertex { return c.V })
	if e != nil {
		return e.Before
	}
	return view.Evidence(v)
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
