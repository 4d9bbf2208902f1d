package posterior

import (
	"maps"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

const (
	// hubDegree is the least number of neighbours for which a prediction's common effect on all of
	// them is counted.
	hubDegree = 8
	// hubSlope bounds how far a posterior moves with the mean prediction of its neighbours.
	hubSlope = 2
)

// noteHub records that the prediction of a vertex with many neighbours has changed.
func (s *State) noteHub(view graphstore.View, p graphstore.PredictionChange) {
	if len(view.Neighbors(p.V)) < hubDegree || p.Before == nil || p.After == nil {
		return
	}
	apart := 0.0
	for i, x := range p.After {
		apart += math.Abs(float64(x)-float64(p.Before[i])) / 2
	}
	s.hubs[p.V] += apart / event.One
}

// Hubs calls visit for every community and every vertex with many neighbours that moved it since
// the last call, with the equivalent number of replaced members: their posteriors move together
// with its prediction. computed are the vertices with moved posteriors, and moves the sizes of
// these movements. A prediction moves the mean of d neighbours' predictions by 1/d of its own
// movement.
func (s *State) Hubs(
	view graphstore.View, computed []Vertex, moves []float64,
	visit func(c graphstore.Community, members float64),
) {
	if len(s.hubs) == 0 {
		return
	}
	by := make(map[Vertex]float64, len(computed))
	for i, v := range computed {
		by[v] = moves[i]
	}
	together := map[graphstore.Community]float64{}
	for _, v := range slices.Sorted(maps.Keys(s.hubs)) {
		clear(together)
		for _, u := range view.Neighbors(v) {
			moved := min(by[u], hubSlope*s.hubs[v]/float64(len(view.Neighbors(u))))
			if moved == 0 {
				continue
			}
			for _, m := range view.MemberOf(u) {
				together[m.Community] += moved * float64(m.Multiplicity)
			}
		}
		for _, c := range slices.Sorted(maps.Keys(together)) {
			visit(c, together[c])
		}
	}
	clear(s.hubs)
}
