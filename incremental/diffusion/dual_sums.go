package diffusion

import (
	"encoding/binary"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// sums are the sums that estimates read: over all vertices, and over the sources of every
// community. They are counted completely at the first read after all of y and R changed. After
// that, changes of edges, values and members update the terms of their vertices, and a push adds
// its effect over all neighbours at once: for each community one number a neighbour, m w/d, for any
// number of functions.
//
// Their last bits depend on the time of the complete count, so a checkpoint causes another one
// (Dual.ForgetSums).
type sums struct {
	current   bool
	residuals []float64 // L: sum of R over all vertices
	degrees   []float64 // L: sum of d over the vertices that the function has reached

	each  []estimate        // by community, over its sources
	sets  [][]share         // the different sets of communities that vertices are sources of
	named map[string]uint32 // place in sets by its binary form
	set   []uint32          // n: place in sets

	name    []byte                 // scratch of setOf
	shares  []share                // the same
	weights []float64              // by community: sum of m w/d over the neighbours of a push
	met     []graphstore.Community // of which these are not zero
	moving  []Vertex               // scratch of Dual.Follow
}

// share is the multiplicity of a source in a community.
type share struct {
	community graphstore.Community
	m         float64
}

// recount counts everything from nothing.
func (s *sums) recount(g *Dual, view graphstore.View) {
	*s = sums{
		current: true, residuals: make([]float64, g.l), degrees: make([]float64, g.l),
		moving: s.moving,
		sets:   make([][]share, 1), named: map[string]uint32{"": 0},
	}
	s.extend(g, view)
	for v := range Vertex(len(g.rows)) {
		s.set[v] = s.setOf(view, v)
		s.count(g, v, 1)
	}
}

// extend gives new vertices and communities sums of nothing.
func (s *sums) extend(g *Dual, view graphstore.View) {
	s.set = lengthen(s.set, len(g.rows))
	if more := view.Communities() - len(s.each); more > 0 {
		s.each = append(s.each, newEstimates(g.l, more)...)
		s.weights = lengthen(s.weights, len(s.each))
	}
}

// of returns the communities that v is a source of.
func (s *sums) of(v Vertex) []share { return s.sets[s.set[v]] }

// setOf returns the place in sets of the communities that v is a source of now.
func (s *sums) setOf(view graphstore.View, v Vertex) uint32 {
	if view.Label(v).Class != event.NoClass {
		return 0
	}
	s.shares, s.name = s.shares[:0], s.name[:0]
	for _, m := range view.MemberOf(v) {
		s.shares = append(s.shares, share{m.Community, float64(m.Multiplicity)})
		s.name = binary.LittleEndian.AppendUint32(s.name, uint32(m.Community))
		s.name = binary.LittleEndian.AppendUint32(s.name, m.Multiplicity)
	}
	at, known := s.named[string(s.name)]
	if !known {
		at = uint32(len(s.sets))
		s.named[string(s.name)], s.sets = at, append(s.sets, slices.Clone(s.shares))
	}
	return at
}

// count adds the terms of v to all sums, or subtracts them with the sign -1.
func (s *sums) count(g *Dual, v Vertex, sign float64) {
	y := g.Values(v)
	d, r := g.residuals(v)
	for i, x := range r {
		s.residuals[i] += float64(sign * x)
		if y[i] != 0 {
			s.degrees[i] += float64(sign * d)
		}
	}
	for _, c := range s.of(v) {
		g.add(&s.each[c.community], v, sign*c.m)
	}
}

// moveSources has vertices count as sources of other communities where delta says that they are.
func (s *sums) moveSources(g *Dual, view graphstore.View, delta *graphstore.Delta) {
	s.extend(g, view)
	move := func(v Vertex) {
		if now := s.setOf(view, v); now != s.set[v] {
			for _, c := range s.of(v) {
				g.add(&s.each[c.community], v, -c.m)
			}
			s.set[v] = now
			for _, c := range s.of(v) {
				g.add(&s.each[c.community], v, c.m)
			}
		}
	}
	for i := range delta.Members {
		move(delta.Members[i].V)
	}
	for i := range delta.Labels {
		move(delta.Labels[i].V)
	}
}

// moved lists the vertices with a changed R or d, each once.
func (s *sums) moved(delta *graphstore.Delta, values []ValueChange) []Vertex {
	s.moving = s.moving[:0]
	for i := range values {
		if n := len(s.moving); n == 0 || s.moving[n-1] != values[i].V {
			s.moving = append(s.moving, values[i].V)
		}
	}
	if delta != nil {
		s.moving = append(s.moving, delta.Endpoints...)
	}
	slices.Sort(s.moving)
	s.moving = slices.Compact(s.moving)
	return s.moving
}

// meet notes the neighbours of a pushed vertex and the weights of their edges, all 1 if nil.
func (s *sums) meet(neighbors []Vertex, weights, degrees []float64) {
	w := 1.0
	for i, u := range neighbors {
		at := s.set[u]
		if at == 0 {
			continue
		}
		if weights != nil {
			w = weights[i]
		}
		for _, c := range s.sets[at] {
			if s.weights[c.community] == 0 {
				s.met = append(s.met, c.community)
			}
			s.weights[c.community] += float64(c.m * w / degrees[i])
		}
	}
}

// leave has a push at v add step to y, and take all of R, of these functions.
func (s *sums) leave(g *Dual, v Vertex, step []float64, which []int32) {
	d, r := g.residuals(v)
	y, near, of := g.Values(v), nearShare/(g.alpha*d), s.of(v)
	for i, f := range which {
		s.residuals[f] -= r[f]
		for _, c := range of {
			s.each[c.community].near[f] += float64(c.m * (step[i] - float64(near*r[f])))
		}
		before := y[f]
		y[f] += step[i]
		if r[f] = 0; (before == 0) != (y[f] == 0) {
			s.countReached(g, v, f)
		}
	}
}

// countReached counts that function f has reached v, or that it has not any longer.
func (s *sums) countReached(g *Dual, v Vertex, f int32) {
	d, _ := g.residuals(v)
	sign, others := 1.0, 0
	for i, y := range g.Values(v) {
		switch {
		case y == 0 && int32(i) == f:
			sign = -1
		case y != 0 && int32(i) != f:
			others++
		}
	}
	s.degrees[f] += float64(sign * d)
	for _, c := range s.of(v) {
		e := &s.each[c.community]
		e.some[f] += float64(sign * c.m)
		if others == 0 {
			e.sources += float64(sign * c.m)
		}
	}
}

// arrive adds the effect of a push on the neighbours, given the total weight of their edges.
func (s *sums) arrive(g *Dual, step []float64, which []int32, weight float64) {
	for i, f := range which {
		s.residuals[f] += float64(step[i] * weight)
	}
	for _, id := range s.met {
		share, near := nearShare/g.alpha*s.weights[id], s.each[id].near
		for i, f := range which {
			near[f] += float64(share * step[i])
		}
		s.weights[id] = 0
	}
	s.met = s.met[:0]
}
