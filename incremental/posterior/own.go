package posterior

import (
	"math"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// own holds sums over the calibration labels of the members of one community of many, each with its multiplicity m:
// of its residual r = y - pi. They are integers, as those of Crowd are.
type own struct {
	labels, squares int64   // sums of m and m²
	first           []int64 // K: of m r
	firstSquare     []int64 // K: of m² r
	second          []int64 // K x K, lower triangle: of m² r r'
}

// ownLabel is one of these labels, as it was counted.
type ownLabel struct {
	*own
	multiplicity int64
	class        event.Class
}

// owned are these labels by vertex, of all crowds.
type owned struct {
	sync.Mutex // Keep may be called for several communities side by side
	of         map[Vertex][]ownLabel
}

// Own returns the sums over the calibration labels of the members as of the last Ready, the squares with K x K second
// moments, of which the lower triangle is set; not ok if they are too large to be kept.
func (c *Crowd) Own() (labels, squares float64, first, firstSquare, second []float64, ok bool) {
	o := c.own
	return float64(o.labels), float64(o.squares), floats(o.first), floats(o.firstSquare), floats(o.second), o.squares < crowdMost
}

func floats(sums []int64) (list []float64) {
	for _, x := range sums {
		list = append(list, float64(x)/crowdUnit)
	}
	return list
}

// keepOwn returns the sums over the labels of the members of a community, which are counted once.
func (s *State) keepOwn(id graphstore.Community, view graphstore.View) *own {
	if c := s.inside.crowds[id]; c != nil {
		return c.own
	}
	k := s.classes
	o := &own{first: make([]int64, k), firstSquare: make([]int64, k), second: make([]int64, k*k)}
	s.owned.Lock()
	defer s.owned.Unlock()
	view.ForMembers(id, func(v Vertex, multiplicity uint32) {
		if class := calibrates(view, v); class != event.NoClass && s.Posterior(v) != nil {
			s.count(v, ownLabel{o, int64(multiplicity), class})
		}
	})
	return o
}

// count counts a label.
func (s *State) count(v Vertex, l ownLabel) {
	if s.owned.of == nil {
		s.owned.of = map[Vertex][]ownLabel{}
	}
	s.owned.of[v] = append(s.owned.of[v], l)
	l.add(s.Posterior(v), 1)
}

// dropOwn takes the label of v, of which this is still the posterior that was counted, off the sums that it is in.
func (s *State) dropOwn(v Vertex) {
	for _, l := range s.owned.of[v] {
		l.add(s.Posterior(v), -1)
	}
	delete(s.owned.of, v)
}

// addOwn counts the label of v, which calibrates, in the crowds that v is a member of.
func (s *State) addOwn(view graphstore.View, v Vertex) {
	if s.Posterior(v) == nil {
		return
	}
	class := view.Label(v).Class
	for _, id := range s.inside.everyone {
		if c := s.inside.crowds[id]; c != nil {
			s.count(v, ownLabel{c.own, 1, class})
		}
	}
	for _, m := range view.MemberOf(v) {
		if c := s.inside.crowds[m.Community]; c != nil {
			s.count(v, ownLabel{c.own, int64(m.Multiplicity), class})
		}
	}
}

// forgetCrowds drops all sums over members.
func (s *State) forgetCrowds() {
	clear(s.inside.crowds)
	clear(s.owned.of)
}

// add adds the residual of a label of this posterior to the sums, or takes it off them.
func (l ownLabel) add(pi []float64, sign int64) {
	residual := func(i int) float64 {
		if event.Class(i) == l.class {
			return 1 - pi[i]
		}
		return -pi[i]
	}
	o, once, square := l.own, sign*l.multiplicity, sign*l.multiplicity*l.multiplicity
	o.labels, o.squares = o.labels+once, o.squares+square
	for i := range pi {
		r := residual(i)
		unit := int64(math.Floor(r*crowdUnit + 0.5))
		o.first[i] += once * unit
		o.firstSquare[i] += square * unit
		for j := range i + 1 {
			o.second[i*len(pi)+j] += square * int64(math.Floor(float64(r*residual(j))*crowdUnit+0.5))
		}
	}
}
