package communities

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"gqlstream/graphstore"
)

const (
	// gainMin is the least gain of modularity of a move, as a share of the total strength.
	// It is above the rounding of a gain, so that no cycle of moves can gain for ever.
	gainMin = 1e-12
	// visitsMax bounds the visits of a level, by vertices. Levels end by themselves after
	// about ten; one that is stopped leaves a valid partition that could be improved.
	visitsMax = 100
	// resolutionMax is above the resolution where every vertex is alone, in any graph of use.
	resolutionMax = 1e9
)

// Search holds the best partition found so far. One goroutine may use it at a time.
type Search struct {
	graph      *network
	resolution float64
	random     *rand.Rand
	of         []uint32 // community of each vertex
	count      int      // of communities
}

// NewSearch copies the graph of a view and begins with every vertex as a community of its own. The
// seed decides the order of visits, and by it which of partitions that are equally good is found.
// It fails on a graph without edges and on a resolution that is not above 0.
func NewSearch(view graphstore.View, resolution float64, seed uint64) (*Search, error) {
	switch {
	case !(resolution > 0 && resolution <= resolutionMax):
		return nil, fmt.Errorf("communities: the resolution is %v, want a number above 0, up to %g",
			resolution, resolutionMax)
	case view.Edges() == 0:
		return nil, errors.New("communities: the files have no edges")
	}
	graph, random := newNetwork(view), rand.New(rand.NewPCG(seed, 0))
	return &Search{graph, resolution, random, numbers(view.Vertices()), view.Vertices()}, nil
}

// Pass searches all levels once, beginning with the partition found so far, and
// returns by how much the modularity rose.
func (s *Search) Pass() (gain float64) {
	before := s.Modularity(s.resolution)
	s.graph.pass(s.of, s.resolution/s.graph.total, s.random)
	s.count = renumber(s.of)
	return s.Modularity(s.resolution) - before
}

// Count returns how many communities there are; an isolated vertex is one.
func (s *Search) Count() int { return s.count }

// Communities returns the vertices of each community in increasing order. Communities
// are in the order of their first vertex.
func (s *Search) Communities() [][]graphstore.Vertex {
	lists := make([][]graphstore.Vertex, s.count)
	for v, c := range s.of {
		lists[c] = append(lists[c], graphstore.Vertex(v))
	}
	return lists
}

// Modularity returns Q of the partition. At a resolution of 1 it is the usual modularity, a
// measure to compare partitions of several resolutions.
func (s *Search) Modularity(resolution float64) (q float64) {
	g := s.graph
	inside := make([]float64, s.count)
	strength := make([]float64, s.count)
	for v, c := range s.of {
		strength[c] += g.strength[v]
		for i := g.starts[v]; i < g.starts[v+1]; i++ {
			if s.of[g.ends[i]] == c {
				inside[c] += g.weights[i]
			}
		}
	}
	for c := range inside {
		share := strength[c] / g.total
		q += inside[c]/g.total - float64(resolution*float64(share*share))
	}
	return q
}

// network is a weighted undirected graph. Its vertices are those of the store, or parts of the
// communities of a level below. The entries of v are those from starts[v] to starts[v+1].
type network struct {
	starts   []int
	ends     []uint32
	weights  []float64 // parallel to ends
	strength []float64 // sum of the weights at v, and twice those inside v
	total    float64   // sum of strength
}

// newNetwork copies the graph of a view, because parts need the same form as vertices.
func newNetwork(view graphstore.View) *network {
	n, entries := view.Vertices(), 2*view.Edges()
	g := &network{
		make([]int, 1, n+1),
		make([]uint32, 0, entries),
		make([]float64, 0, entries),
		make([]float64, n),
		0,
	}
	for v := range graphstore.Vertex(n) {
		for u, weight := range view.EdgesOf(v) {
			g.ends, g.weights = append(g.ends, uint32(u)), append(g.weights, weight)
			g.strength[v] += weight
		}
		g.starts = append(g.starts, len(g.ends))
		g.total += g.strength[v]
	}
	return g
}

// pass improves the partition of, with communities numbered from 0 without gaps, at this level and
// all levels above. scale is the resolution over the total strength.
func (g *network) pass(of []uint32, scale float64, random *rand.Rand) {
	m := &mover{
		network:  g,
		scale:    scale,
		sums:     make([]float64, len(of)),
		weightTo: make([]float64, len(of)),
	}
	m.move(of, random)
	parts := m.refine(of, random)
	n := renumber(parts)
	if n == len(of) {
		return
	}
	upper := make([]uint32, n)
	renumber(of)
	for v, part := range parts {
		upper[part] = of[v]
	}
	g.merge(parts, n).pass(upper, scale, random)
	for v, part := range parts {
		of[v] = upper[part]
	}
}

// merge returns the graph of the n parts of g as vertices. The edges inside a part
// only count in its strength, because nothing else reads them.
func (g *network) merge(parts []uint32, n int) *network {
	merged := &network{make([]int, 1, n+1), nil, nil, make([]float64, n), g.total}
	m := &mover{network: g, weightTo: make([]float64, n)}
	members := make([][]uint32, n)
	for v, part := range parts {
		members[part] = append(members[part], uint32(v))
	}
	for part, list := range members {
		for _, v := range list {
			merged.strength[part] += g.strength[v]
			m.weigh(v, parts)
		}
		for _, to := range m.near {
			if to != uint32(part) {
				merged.ends, merged.weights = append(merged.ends,
					to), append(merged.weights, m.weightTo[to])
			}
		}
		m.forget()
		merged.starts = append(merged.starts, len(merged.ends))
	}
	return merged
}

// mover moves the vertices of one level between communities, or between parts.
type mover struct {
	*network
	scale    float64   // resolution over the total strength
	sums     []float64 // strength of each community
	weightTo []float64 // weight from the vertex in hand to each community
	near     []uint32  // the communities with an entry in weightTo
	free     []uint32  // the communities that nobody is in
}

// weigh adds the weights from v to the communities of its neighbours.
func (m *mover) weigh(v uint32, of []uint32) {
	for i := m.starts[v]; i < m.starts[v+1]; i++ {
		c := of[m.ends[i]]
		if m.weightTo[c] == 0 {
			m.near = append(m.near, c)
		}
		m.weightTo[c] += m.weights[i]
	}
}

// forget clears the sums of weigh.
func (m *mover) forget() {
	for _, c := range m.near {
		m.weightTo[c] = 0
	}
	m.near = m.near[:0]
}

// gain is by how much the modularity rises, times half the total strength, when a
// vertex of strength k that is in no community enters c.
func (m *mover) gain(k float64, c uint32) float64 {
	return m.weightTo[c] - float64(m.scale*float64(k*m.sums[c]))
}

// move visits every vertex in a random order and moves it to the community that it
// fits best; its neighbours in other communities are then visited again. A queue of
// those makes it fast: after the first round only vertices near a move are visited.
func (m *mover) move(of []uint32, random *rand.Rand) {
	n := len(of)
	for v, c := range of {
		m.sums[c] += m.strength[v]
	}
	m.free = numbers(n)[slices.Max(of)+1:]
	queue, queued := numbers(n), slices.Repeat([]bool{true}, n)
	random.Shuffle(n, func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	for at, waiting := 0, n; waiting > 0 && at < visitsMax*n; at++ { // the queue is a ring
		v := queue[at%n]
		waiting--
		queued[v] = false
		if !m.moveToBest(v, of) {
			continue
		}
		for i := m.starts[v]; i < m.starts[v+1]; i++ {
			if u := m.ends[i]; !queued[u] && of[u] != of[v] {
				queued[u] = true
				queue[(at+1+waiting)%n] = u
				waiting++
			}
		}
	}
}

// moveToBest moves v to the community that it fits best, which may be one of its own,
// and reports whether it moved. Between equals the present one wins, then the first met.
func (m *mover) moveToBest(v uint32, of []uint32) (moved bool) {
	from := of[v]
	k := m.strength[v]
	least := gainMin * m.total
	m.weigh(v, of)
	m.sums[from] -= k
	gain := m.gain(k, from) + least
	for _, c := range m.near {
		if g := m.gain(k, c); g > gain {
			of[v], gain = c, g
		}
	}
	if gain < -least { // then others are in from, so that a number is free
		of[v], m.free = m.free[len(m.free)-1], m.free[:len(m.free)-1]
	} else if of[v] != from && m.sums[from] == 0 {
		m.free = append(m.free, from)
	}
	m.sums[of[v]] += k
	m.forget()
	return of[v] != from
}

// refine splits every community of the partition into parts and returns the part of
// each vertex: a vertex begins alone and may once join a part of its own community, if
// both have enough weight to the rest of it. The best part is taken, where the paper
// draws one at random by its gain: that is simpler, and as good on the tests' graphs.
func (m *mover) refine(of []uint32, random *rand.Rand) (parts []uint32) {
	n, whole := len(of), m.sums
	parts, m.sums = numbers(n), slices.Clone(m.strength)
	alone := slices.Repeat([]bool{true}, n)
	cut := make([]float64, n) // cut: a part's weight to the rest of its community
	for v, c := range of {
		for i := m.starts[v]; i < m.starts[v+1]; i++ {
			if of[m.ends[i]] == c {
				cut[v] += m.weights[i]
			}
		}
	}
	connected := func(part, c uint32) bool {
		return cut[part] >= float64(m.scale*float64(m.sums[part]*(whole[c]-m.sums[part])))
	}
	for _, i := range random.Perm(n) {
		v, c := uint32(i), of[i]
		if !alone[v] || !connected(v, c) {
			continue
		}
		m.weigh(v, parts)
		best, gain := v, gainMin*m.total
		for _, part := range m.near {
			if g := m.gain(m.strength[v], part); of[part] == c && g > gain && connected(part, c) {
				best, gain = part, g
			}
		}
		if best != v {
			parts[v] = best
			alone[best] = false
			m.sums[v] = 0
			m.sums[best] += m.strength[v]
			cut[best] += cut[v] - 2*m.weightTo[best]
		}
		m.forget()
	}
	return parts
}

// numbers returns 0, 1, ... n-1.
func numbers(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}

// renumber replaces the numbers of a list, which are below its length, by 0, 1, ... in order of
// first appearance, and returns their number.
func renumber(list []uint32) (n int) {
	fresh := make([]uint32, len(list)) // the new number plus one
	for i, old := range list {
		if fresh[old] == 0 {
			n++
			fresh[old] = uint32(n)
		}
		list[i] = fresh[old] - 1
	}
	return n
}
