package diffusion

import (
	"encoding/binary"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// sums are the sums that estimates read: over all vertices, and over the sources of communities
// with many members. They are counted completely at the first read after all of y and R changed.
// After that, changes of edges, values and members update the terms of their vertices, and a push
// adds its effect over all neighbours at once: for each of these communities one number a
// neighbour, m w/d, for any number of functions.
//
// Their last bits depend on the time of the complete count, so a checkpoint causes another one
// (Dual.ForgetSums).
type sums struct {
	current   bool
	residuals []float64 // L: sum of R over all vertices
	degrees   []float64 // L: sum of d over the vertices that the function has reached

	crowds []graphstore.Community // communities with summed sources, ascending
	each   []estimate             // of these
	places []uint32               // by community: 1 + place in crowds
	sets   [][]share              // the different sets of communities that vertices are sources of
	named  map[string]uint32      // place in sets by its binary form
	set    []uint32               // n: place in sets

	name    []byte    // scratch of setOf
	shares  []share   // the same
	weights []float64 // by place in crowds: sum of m w/d over the neighbours of a push
	met     []uint32  // places that these are not zero at
	moving  []Vertex  // scratch of Dual.Follow
}

// sumsVertices is a number of vertices. On smaller graphs without communities of many members the
// sums are counted completely at each emission, which is cheaper than an update at each push.
const sumsVertices = 1 << 17

// share is the multiplicity of a source in the community at a place of crowds.
type share struct {
	place uint32
	m     float64
}

// recount counts everything again.
func (s *sums) recount(g *Dual, view graphstore.View, crowds []graphstore.Community) {
	*s = sums{
		current: len(crowds) > 0 || len(g.rows) > sumsVertices, residuals: make([]float64, g.l),
		degrees: make([]float64, g.l), moving: s.moving,
		crowds: slices.Clone(crowds), each: newEstimates(g.l, len(crowds)),
		places: make([]uint32, view.Communities()),
		sets:   make([][]share, 1), named: map[string]uint32{"": 0},
		weights: make([]float64, len(crowds)),
	}
	for i, id := range crowds {
		s.places[id] = uint32(i) + 1
	}
	s.grow(len(g.rows))
	for v := range Vertex(len(g.rows)) {
		if len(crowds) > 0 {
			s.set[v] = s.setOf(view, v)
		}
		s.count(g, v, 1)
	}
}

func (s *sums) grow(n int) {
	if len(s.crowds) > 0 {
		s.set = lengthen(s.set, n)
	}
}

// of returns the communities that v is a source of.
func (s *sums) of(v Vertex) []share {
	if len(s.crowds) == 0 {
		return nil
	}
	return s.sets[s.set[v]]
}

// setOf returns the place in sets of the communities that v is a source of now.
func (s *sums) setOf(view graphstore.View, v Vertex) uint32 {
	if view.Label(v).Class != event.NoClass {
		return 0
	}
	s.shares, s.name = s.shares[:0], s.name[:0]
	for _, m := range view.MemberOf(v) {
		if int(m.Community) < len(s.places) && s.places[m.Community] > 0 {
			s.shares = append(s.shares, share{s.places[m.Community] - 1, float64(m.Multiplicity)})
			s.name = binary.LittleEndian.AppendUint32(
				binary.LittleEndian.AppendUint32(s.name, uint32(m.Community)),
				m.Multiplicity,
			)
		}
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
		g.add(&s.each[c.place], v, sign*c.m)
	}
}

// follow has vertices count as sources of other communities where delta says that they are.
func (s *sums) follow(g *Dual, view graphstore.View, delta *graphstore.Delta) {
	s.grow(len(g.rows))
	if len(s.crowds) == 0 {
		return
	}
	move := func(v Vertex) {
		if now := s.setOf(view, v); now != s.set[v] {
			for _, c := range s.of(v) {
				g.add(&s.each[c.place], v, -c.m)
			}
			s.set[v] = now
			for _, c := range s.of(v) {
				g.add(&s.each[c.place], v, c.m)
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
		s.moving = append(s.moving, delta.Ends...)
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
			if s.weights[c.place] == 0 {
				s.met = append(s.met, c.place)
			}
			s.weights[c.place] += float64(c.m * w / degrees[i])
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
			s.each[c.place].near[f] += float64(c.m * (step[i] - float64(near*r[f])))
		}
		before := y[f]
		y[f] += step[i]
		if r[f] = 0; (before == 0) != (y[f] == 0) {
			s.reach(g, v, f)
		}
	}
}

// reach counts that function f has reached v, or that it has not any longer.
func (s *sums) reach(g *Dual, v Vertex, f int32) {
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
		e := &s.each[c.place]
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
	for _, place := range s.met {
		share, near := nearShare/g.alpha*s.weights[place], s.each[place].near
		for i, f := range which {
			near[f] += float64(share * step[i])
		}
		s.weights[place] = 0
	}
	s.met = s.met[:0]
}
