package pairs

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

const (
	// Unit is one in the sums over vertices two steps away: integers, so that the order of the
	// neighbours does not show.
	Unit = 1 << 16
	// NeighboursMost is the largest number of neighbours for which these sums fit. A vertex with
	// more has none.
	NeighboursMost = 1<<16 - 1
)

// AddNext sums over the neighbours of v: to means, the mean prediction of the neighbours of each,
// and to walks, the labels among these over their number, without the label of v itself. Both have
// length K and are in units of 1/Unit. It returns the number of neighbours that have a mean: all of
// them if v has a prediction, and 0 where they are too many.
func (p *Pairs) AddNext(
	means, walks []uint32, view graphstore.View, sums *neighborhood.Sums, v Vertex,
) (n uint32) {
	neighbours, own := view.Neighbors(v), p.weights[v]
	if len(neighbours) > NeighboursMost {
		return 0
	}
	for _, u := range neighbours {
		if votes := sums.Votes(u); votes.Mass > 0 {
			n++
			scale := Unit / (float64(votes.Mass) * event.One)
			for i, x := range votes.Sum {
				means[i] += uint32(float64(float64(x)*scale) + 0.5)
			}
		}
		degree := uint64(0)
		for i, labels := range p.Labels(u) {
			if labels == 0 {
				continue
			}
			if event.Class(i) == own.Class {
				labels -= own.Units
			}
			if degree == 0 {
				degree = uint64(len(view.Neighbors(u)))
			}
			walks[i] += uint32(uint64(labels) * Unit / (Whole * degree))
		}
	}
	return n
}
