package posterior

import (
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Hubs says which vertices are hubs. One edge at a hub moves what all its neighbours read
// of it by next to nothing, but would have all their posteriors computed anew. Therefore
// neighbours are told only when g or c1/d of the hub has moved by more than Move in a class
// since they were told last. Then every h(v) is within twice Move of what it is for the
// graph, and every c2(v) within twice Move for each neighbour of v: v may have read the hub
// when it had moved one way, and it may have moved the other way since. Zero is the defaults.
type Hubs struct {
	Degree int     // from which on a vertex is a hub
	Move   float64 // as the built-in classifier diffusion has it
}

var hubsDefault = Hubs{Degree: 256, Move: 1. / 256}

// outgoing writes what v tells its neighbours to dst: g(v), then c1(v)/d(v).
func (s *State) outgoing(dst []float64, view graphstore.View, sums *neighborhood.Sums, v Vertex) {
	clear(dst)
	if votes := sums.Votes(v); votes.Count > 0 {
		mean(dst[:s.classes], votes.Sum, float64(votes.Count))
	} else if units := view.Prediction(v); units != nil {
		mean(dst[:s.classes], units, 1)
	}
	degree := float64(len(view.Neighbors(v)))
	for i, count := range s.counts[int(v)*s.classes:][:s.classes] {
		dst[s.classes+i] = float64(count) / degree
	}
}

// tells reports whether what v tells its neighbours has moved by more than the neighbours
// may miss, and if so remembers what they are told now.
func (s *State) tells(view graphstore.View, sums *neighborhood.Sums, v Vertex, missed float64) bool {
	if len(view.Neighbors(v)) < s.options.Hubs.Degree {
		delete(s.told, v)
		return true
	}
	told, known := s.told[v]
	s.telling = append(s.telling[:0], make([]float64, 2*s.classes)...)
	s.outgoing(s.telling, view, sums, v)
	if !known {
		told = make([]float64, 2*s.classes)
		s.told[v] = told
	} else if apart(told, s.telling) <= missed {
		return false
	}
	copy(told, s.telling)
	return true
}

func apart(a, b []float64) (most float64) {
	for i, x := range a {
		most = max(most, math.Abs(x-b[i]))
	}
	return most
}

// tellAll remembers what all hubs tell, of posteriors that are computed from it.
func (s *State) tellAll(view graphstore.View, sums *neighborhood.Sums) {
	s.told = map[Vertex][]float64{}
	for v := range Vertex(view.Vertices()) {
		s.tells(view, sums, v, 0)
	}
}

// Flush computes all posteriors that are read for the graph as it is, whatever hubs have
// told: what Restore computes. A log that is read on from here gives the same bits as one
// that is read on after a restart.
func (s *State) Flush(view graphstore.View, sums *neighborhood.Sums) {
	for v := range Vertex(view.Vertices()) { // in order, and the map is not
		if s.told[v] == nil || !s.tells(view, sums, v, 0) {
			continue
		}
		for _, u := range view.Neighbors(v) {
			s.Touch(u)
		}
	}
	s.computeTouched(view, sums)
}

// computeTouched computes the posteriors that are read of what was touched.
func (s *State) computeTouched(view graphstore.View, sums *neighborhood.Sums) {
	if s.epoch == nil {
		return
	}
	reader, labels := s.Reader(view, sums), false
	for _, v := range s.touched {
		label := calibrates(view, v) != event.NoClass
		if !s.dirty[v] || !label && !s.inside.reads(view, v) {
			continue // it is computed when it becomes a label or a member
		}
		s.has[v] = reader.posterior(s.pi[int(v)*s.classes:][:s.classes], v)
		s.dirty[v] = false
		labels = labels || label
	}
	if labels {
		s.within = s.scatter(view)
	}
}

// slack returns by how much, in logarithms, the odds of two classes in the posterior of v
// may be off because of what hubs have not told: 0 if no neighbour is a hub.
func (s *State) slack(view graphstore.View, in *inputs, v Vertex) float64 {
	neighbours := view.Neighbors(v)
	hub := slices.ContainsFunc(neighbours, func(u Vertex) bool { return s.told[u] != nil })
	if !hub || !in.read(v) {
		return 0
	}
	missed := 2 * s.options.Hubs.Move
	theta, missed2 := s.epoch.Theta, missed*float64(len(neighbours))
	labels := total(in.one) + total(in.two)
	far := 1 / (1 + max(labels-float64(s.classes)*missed2, 0))
	most := 0.0
	for i, p := range in.prior {
		next := math.Log((in.next[i] + 2*missed) / max(in.next[i]-2*missed, probabilityMin/2))
		two := func(m float64) float64 {
			return math.Log((in.two[i] + missed2 + m*p) / (max(in.two[i]-missed2, 0) + m*p))
		}
		off := (math.Abs(theta[viewNext])+math.Abs(theta[viewFar+2])*far)*next +
			math.Abs(theta[viewLabels+1])*two(mixingMost) + math.Abs(theta[viewLabels+3])*two(mixingLeast)
		for j, x := range [...]float64{in.own[i], in.near[i], in.next[i]} {
			off += math.Abs(theta[viewFar+j]) * (far - 1/(1+labels+float64(s.classes)*missed2)) * math.Abs(math.Log(x/p))
		}
		most = max(most, off)
	}
	return 2 * most
}
