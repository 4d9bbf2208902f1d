package posterior

import (
	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// Crowd keeps sums over the open members of one community of many, so that an estimate need not read
// them all. They are integers: after any history they equal those counted from nothing.
type Crowd struct {
	factors [2][]float64 // K: what posteriors are multiplied by, fixed when all members were read

	all, squares int64      // sum of the multiplicities, and of their squares
	sums         [3][]int64 // K: of pi, and of pi times each of the factors, normalised
	turned       int64      // how far responsibilities under the second factors moved since, in all; who comes or goes moves by 1

	row, taken [3][]int64 // K: of one member

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
	c := &Crowd{factors: factors, own: s.keepOwn(id, view)}
	for i := range c.sums {
		c.sums[i], c.row[i], c.taken[i] = make([]int64, s.classes), make([]int64, s.classes), make([]int64, s.classes)
	}
	view.ForMembers(id, func(v Vertex, multiplicity uint32) {
		if open(view, v) {
			c.take(0, nil)
			c.give(int64(multiplicity), s.Posterior(v))
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
	return means, all, float64(c.squares), float64(c.turned) / crowdUnit
}

// computeMember computes pi(v) anew, and the sums of the crowds that v is in with it.
func (s *State) computeMember(reader *Reader, view graphstore.View, v Vertex) {
	crowds := s.inside.crowdsOf(view, v)
	for _, c := range crowds {
		c.take(c.multiplicity, s.Posterior(v))
	}
	s.dropOwn(v)
	s.has[v] = reader.posterior(s.pi[int(v)*s.classes:][:s.classes], v)
	for _, c := range crowds {
		c.give(c.multiplicity, s.Posterior(v))
	}
	if calibrates(view, v) != event.NoClass {
		s.addOwn(view, v)
	}
}

// take takes a member of this posterior, nil for none, off the sums.
func (c *Crowd) take(multiplicity int64, pi []float64) {
	c.add(-multiplicity, multiplicity, pi)
	c.taken, c.row = c.row, c.taken
}

// give adds a member of this posterior, nil for none: another one in the place of that taken last.
func (c *Crowd) give(multiplicity int64, pi []float64) {
	c.add(multiplicity, multiplicity, pi)
	for i, x := range c.row[2] {
		c.turned += max(multiplicity, 1) * max(x-c.taken[2][i], c.taken[2][i]-x)
	}
}

// add counts a member with a sign, and leaves what it says in row.
func (c *Crowd) add(signed, multiplicity int64, pi []float64) {
	if pi == nil || signed == 0 {
		for _, row := range c.row {
			clear(row)
		}
		return
	}
	c.all, c.squares = c.all+signed, c.squares+signed*multiplicity
	for k, p := range pi {
		c.row[0][k] = int64(p*crowdUnit + 0.5)
		c.sums[0][k] += signed * c.row[0][k]
	}
	for i, factor := range c.factors {
		total, row := 0.0, c.row[i+1]
		for k, p := range pi {
			total += float64(p * factor[k])
		}
		for k, p := range pi {
			row[k] = int64(p*factor[k]/total*crowdUnit + 0.5)
			c.sums[i+1][k] += signed * row[k]
		}
	}
}

// crowded is a crowd that a vertex is an open member of.
type crowded struct {
	*Crowd
	multiplicity int64
}

// crowdsOf lists the crowds that v is an open member of now. It is valid until the next call.
func (n *inside) crowdsOf(view graphstore.View, v Vertex) []crowded {
	n.crowded = n.crowded[:0]
	if !open(view, v) {
		return nil
	}
	for _, id := range n.everyone {
		if c := n.crowds[id]; c != nil {
			n.crowded = append(n.crowded, crowded{c, 1})
		}
	}
	for _, m := range view.MemberOf(v) {
		if c := n.crowds[m.Community]; c != nil {
			n.crowded = append(n.crowded, crowded{c, int64(m.Multiplicity)})
		}
	}
	return n.crowded
}

// move has crowds follow v, of this posterior, whose open communities were others or whose multiplicities
// there, as the changes of its members say.
func (n *inside) move(view graphstore.View, v Vertex, was []graphstore.Community, changes []graphstore.MemberChange, pi []float64) {
	if pi == nil {
		return
	}
	for _, id := range was {
		if c := n.crowds[id]; c != nil {
			c.take(n.multiplicityBefore(view, id, v, changes), pi)
			c.give(0, nil)
		}
	}
	for _, c := range n.crowdsOf(view, v) {
		c.take(0, nil)
		c.give(c.multiplicity, pi)
	}
}

// multiplicityBefore returns that of a member as it was before these changes.
func (n *inside) multiplicityBefore(view graphstore.View, id graphstore.Community, v Vertex, changes []graphstore.MemberChange) int64 {
	for _, c := range changes {
		if c.Community == id {
			return int64(c.Before)
		}
	}
	for _, m := range view.MemberOf(v) {
		if m.Community == id {
			return int64(m.Multiplicity)
		}
	}
	return 1 // of everyone
}
