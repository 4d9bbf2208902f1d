package posterior

import (
	"math"
	"slices"
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
	second          []int64 // K (K + 1)/2: of m² r r', row by row of the lower triangle
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

// Own is what Crowd.Own returns, as of the last Ready. Second has K x K, of which the lower triangle is set.
type Own struct {
	Labels, Squares            float64
	First, FirstSquare, Second []float64
}

// Own returns the sums over the calibration labels of the members, with second moments or without, nil if they are
// too large to be kept.
func (c *Crowd) Own(moments bool) *Own {
	o := c.own
	if o.squares >= crowdMost {
		return nil
	}
	out := &Own{Labels: float64(o.labels), Squares: float64(o.squares), First: floats(o.first)}
	if !moments {
		return out
	}
	k, at := len(o.first), 0
	out.FirstSquare, out.Second = floats(o.firstSquare), make([]float64, k*k)
	for i := range k {
		copy(out.Second[i*k:], floats(o.second[at:at+i+1]))
		at += i + 1
	}
	return out
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
	o := &own{first: make([]int64, k), firstSquare: make([]int64, k), second: make([]int64, k*(k+1)/2)}
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
	at := 0
	for i := range pi {
		r := residual(i)
		unit := int64(math.Floor(r*crowdUnit + 0.5))
		o.first[i] += once * unit
		o.firstSquare[i] += square * unit
		for j := range i + 1 {
			o.second[at] += square * int64(math.Floor(float64(r*residual(j))*crowdUnit+0.5))
			at++
		}
	}
}

// equal reports whether two are the same.
func (o *own) equal(p *own) bool {
	return o.labels == p.labels && o.squares == p.squares && slices.Equal(o.first, p.first) &&
		slices.Equal(o.firstSquare, p.firstSquare) && slices.Equal(o.second, p.second)
}
