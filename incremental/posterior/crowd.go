package posterior

import (
	"math"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// Crowd keeps sums over the open members of one community of many, so that an estimate need not read
// them all. They are integers: after any history they equal those counted from nothing.
type Crowd struct {
	factors [2][]float64 // K: what posteriors are multiplied by, fixed when all members were read

	all, squares int64      // sum of the multiplicities, and of their squares
	sums         [3][]int64 // K: of pi, and of pi times each of the factors, normalised
	turned       float64    // how far responsibilities under the second factors moved since, in all; who comes or goes moves by 1

	was, is []int64 // K: scratch

	own *own // of the members' calibration labels
}

// crowdUnit is one in the units of the sums, which so many members fit in: crowdMost of them.
const (
	crowdUnit = 1 << 32
	crowdMost = 1 << 30
)

// Crowd returns the sums of a community, nil if there are none.
func (s *State) Crowd(id graphstore.Community) *Crowd {
	if c := s.inside.crowds[id]; c != nil && c.all > 0 && c.all < crowdMost {
		return c
	}
	return nil
}

// Keep counts the members of a community under these factors, and keeps the sums until an epoch begins, a
// Flush, or another call. It may be called for several communities side by side.
func (s *State) Keep(id graphstore.Community, view graphstore.View, factors [2][]float64) {
	c := &Crowd{factors: factors, was: make([]int64, s.classes), is: make([]int64, s.classes), own: s.keepOwn(id, view)}
	for i := range c.sums {
		c.sums[i] = make([]int64, s.classes)
	}
	view.ForMembers(id, func(v Vertex, multiplicity uint32) {
		if open(view, v) {
			c.change(0, int64(multiplicity), nil, s.Posterior(v))
		}
	})
	c.turned = 0
	s.inside.crowds[id] = c
}

// Means returns the mean posterior and the mean responsibilities under both factors, each K, the sum of the
// multiplicities and of their squares, and how far responsibilities moved in all since Keep.
func (c *Crowd) Means() (means [3][]float64, all, squares, turned float64) {
	all = float64(c.all)
	for i, sum := range c.sums {
		for _, x := range sum {
			means[i] = append(means[i], float64(x)/crowdUnit/all)
		}
	}
	return means, all, float64(c.squares), c.turned / crowdUnit
}

// computeMember computes pi(v) anew, and the sums of the crowds that v is in with it.
func (s *State) computeMember(reader *Reader, view graphstore.View, v Vertex) {
	n := &s.inside
	n.here = n.of(n.here[:0], view, v)
	s.has[v] = reader.posterior(s.pi[int(v)*s.classes:][:s.classes], v)
	for _, m := range n.here {
		n.change(m, 1, 1, s.before, s.Posterior(v))
	}
	if calibrates(view, v) != event.NoClass {
		s.addOwn(view, v)
	}
}

// change counts a member as it is in the place of it as it was, each with its multiplicity and its posterior; 0 and nil
// are none.
func (c *Crowd) change(was, is int64, before, after []float64) {
	if len(before) == 0 {
		was = 0
	}
	if len(after) == 0 {
		is = 0
	}
	c.all, c.squares = c.all+is-was, c.squares+is*is-was*was
	c.count(c.was, before, -was)
	c.count(c.is, after, is)
	for k, x := range c.is {
		moved := max(x-c.was[k], c.was[k]-x)
		c.turned += float64(float64(max(is, 1)) * float64(moved)) // the product can be larger than an int64
	}
}

// count adds a posterior, nil for none, so many times to the sums, and writes its responsibilities under the second factors to
// dst.
func (c *Crowd) count(dst []int64, pi []float64, times int64) {
	if len(pi) == 0 {
		clear(dst)
		return
	}
	likely, tempered := c.factors[0][:len(pi)], c.factors[1][:len(pi)]
	likelyUnit, temperedUnit := crowdUnit/inner(pi, likely), crowdUnit/inner(pi, tempered)
	for k, p := range pi {
		responsibility := int64(float64(float64(p*tempered[k])*temperedUnit) + 0.5)
		c.sums[0][k] += times * int64(float64(p*crowdUnit)+0.5)
		c.sums[1][k] += times * int64(float64(float64(p*likely[k])*likelyUnit)+0.5)
		c.sums[2][k] += times * responsibility
		dst[k] = responsibility
	}
}

// change counts a member of a crowd, if there is one, so many times its multiplicity in place of so many.
func (n *inside) change(m membership, was, is int64, before, after []float64) {
	if c := n.crowds[m.Community]; c != nil {
		c.change(was*int64(m.Multiplicity), is*int64(m.Multiplicity), before, after)
	}
}

// move takes a vertex of this posterior off the crowds that it was an open member of, and adds it to those that it is in now.
func (n *inside) move(was, is []membership, pi []float64) {
	if pi == nil {
		return
	}
	for _, m := range was {
		n.change(m, 1, 0, pi, nil)
	}
	for _, m := range is {
		n.change(m, 0, 1, nil, pi)
	}
}

// own holds sums over the calibration labels of the members of one community of many, each with its multiplicity m:
// of its residual r = y - pi. They are integers, as those of Crowd are.
type own struct {
	labels, squares int64   // sums of m and m²
	first           []int64 // K: of m r
	firstSquare     []int64 // K: of m² r
	second          []int64 // K: of m² r²
}

// ownLabel is a label with the multiplicity and the class that it was counted with.
type ownLabel struct {
	*own
	multiplicity int64
	class        event.Class
}

// owned holds the labels of all crowds by vertex.
type owned struct {
	sync.Mutex // Keep may be called for several communities side by side
	of         map[Vertex][]ownLabel
}

// Own returns the sums over the calibration labels of the members as of the last Ready; not ok if they are too large to
// be kept.
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
	o := &own{first: make([]int64, k), firstSquare: make([]int64, k), second: make([]int64, k)}
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

// dropOwn takes the label of v off the sums that it is in. Its posterior must still be the one that was counted.
func (s *State) dropOwn(v Vertex) {
	labels, counted := s.owned.of[v]
	if !counted {
		return
	}
	for _, l := range labels {
		l.add(s.Posterior(v), -1)
	}
	delete(s.owned.of, v)
}

// addOwn counts the label of v, which calibrates, in the crowds that v is a member of.
func (s *State) addOwn(view graphstore.View, v Vertex) {
	if s.Posterior(v) == nil {
		return
	}
	for _, m := range view.MemberOf(v) {
		if c := s.inside.crowds[m.Community]; c != nil {
			s.count(v, ownLabel{c.own, int64(m.Multiplicity), view.Label(v).Class})
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
	o, once, square := l.own, sign*l.multiplicity, sign*l.multiplicity*l.multiplicity
	o.labels, o.squares = o.labels+once, o.squares+square
	for i, p := range pi {
		r := -p
		if event.Class(i) == l.class {
			r = 1 - p
		}
		unit := int64(math.Floor(r*crowdUnit + 0.5))
		o.first[i] += once * unit
		o.firstSquare[i] += square * unit
		o.second[i] += square * int64(math.Floor(float64(r*r)*crowdUnit+0.5))
	}
}
