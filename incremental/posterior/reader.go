package posterior

import (
	"math"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
)

// Reader computes posteriors and views of single vertices. It holds scratch memory of
// one goroutine.
type Reader struct {
	in     *inputs
	epoch  *Epoch
	scores []float64 // K
}

// Reader returns a reader of the present epoch, which there must be.
func (s *State) Reader(view graphstore.View, sums *neighborhood.Sums) *Reader {
	return &Reader{
		in: newInputs(view, sums, &s.around, s.epoch.Prior, s.options.Echo), epoch: s.epoch,
		scores: make([]float64, s.classes),
	}
}

// Views writes the Views x K views of v to dst, and reports whether it has a prediction.
func (r *Reader) Views(dst []float64, v Vertex) bool {
	if !r.in.read(v) {
		return false
	}
	r.in.views(dst)
	return true
}

// posterior writes pi(v) to dst, and reports whether v has a prediction.
func (r *Reader) posterior(dst []float64, v Vertex) bool {
	if !r.in.read(v) {
		return false
	}
	r.in.score(r.scores, &r.epoch.Coefficients)
	softmax(dst, r.scores)
	return true
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
