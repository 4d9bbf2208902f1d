package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gqlstream/ingest/event"
)

// A vertex is 2^level times as active as one of level 0, and a level's share of
// the vertices falls by 2^-activityTail a level: activity, and so the degree, has
// a power-law tail of exponent activityTail (as a distribution function).
const (
	levels       = 12
	activityTail = 1.5
)

// partnersKept is the number of latest contacts that a vertex remembers. The
// classifier looks at them, as a graph network looks at neighbours.
const partnersKept = 4

// languages are the values of the attribute of that name; a group has one that
// nine in ten of its members use.
var languages = []string{"en", "es", "pt", "de", "fr", "ja", "tr", "ar"}

// contactTries bounds how often a vertex looks for a contact it does not have yet;
// then it goes without.
const contactTries = 8

// person is a vertex of the network.
type person struct {
	group    uint32
	class    uint16
	level    uint8
	labelled bool   // its opinion of some time was reported
	index    uint32 // in its bucket
	partners [partnersKept]uint32
	met      uint32 // contacts so far
}

// network holds the vertices and their edges. Vertices lie in buckets by group,
// class and level, so that a contact of a given group and class is found by
// activity in a few additions, and a change of mind is a move between buckets.
type network struct {
	classes  int
	vertices []person
	buckets  [][]uint32       // (group*classes + class)*levels + level
	weight   []int64          // by group*classes + class: sum of activity
	count    []int            // likewise: vertices
	byLevel  [levels][]uint32 // everyone
	sizes    []float64        // cumulative shares of the groups
	names    []string         // of the groups
	edges    edgeSet
}

func newNetwork(config Config, rng *rand.Rand) network {
	n := network{
		classes:  config.Classes,
		vertices: make([]person, 0, config.Vertices),
		buckets:  make([][]uint32, config.Communities*config.Classes*levels),
		weight:   make([]int64, config.Communities*config.Classes),
		count:    make([]int, config.Communities*config.Classes),
	}
	total := 0.0
	for g := range config.Communities {
		total += (0.75 + 0.5*rng.Float64()) / math.Sqrt(float64(g+1))
		n.sizes = append(n.sizes, total)
		n.names = append(n.names,
			fmt.Sprintf("group-%0*d", len(fmt.Sprint(config.Communities-1)), g))
	}
	return n
}

// newGroup draws a group by size.
func (n *network) newGroup(rng *rand.Rand) uint32 {
	g, _ := slices.BinarySearch(n.sizes, rng.Float64()*n.sizes[len(n.sizes)-1])
	return uint32(min(g, len(n.sizes)-1))
}

func (n *network) cell(group uint32, class uint16) int { return int(group)*n.classes + int(class) }

// put enters v into the bucket of its group, class and level.
func (n *network) put(v uint32) {
	p := &n.vertices[v]
	cell := n.cell(p.group, p.class)
	bucket := &n.buckets[cell*levels+int(p.level)]
	p.index = uint32(len(*bucket))
	*bucket = append(*bucket, v)
	n.weight[cell] += 1 << p.level
	n.count[cell]++
}

// take removes v from its bucket.
func (n *network) take(v uint32) {
	p := &n.vertices[v]
	cell := n.cell(p.group, p.class)
	bucket := &n.buckets[cell*levels+int(p.level)]
	last := (*bucket)[len(*bucket)-1]
	(*bucket)[p.index] = last
	n.vertices[last].index = p.index
	*bucket = (*bucket)[:len(*bucket)-1]
	n.weight[cell] -= 1 << p.level
	n.count[cell]--
}

// active draws a vertex of the network by activity.
func (n *network) active(rng *rand.Rand) uint32 {
	total := int64(0)
	for l := range n.byLevel {
		total += int64(len(n.byLevel[l])) << l
	}
	return byActivity(n.byLevel[:], rng.Int64N(total))
}

// byActivity returns the vertex at place r of the buckets; each vertex of level l takes 2^l places.
func byActivity(buckets [][]uint32, r int64) uint32 {
	for l, bucket := range buckets {
		if width := int64(len(bucket)) << l; r < width {
			return bucket[r>>l]
		} else {
			r -= width
		}
	}
	panic("simulate: bucket weights are out of step")
}

// anyone draws a vertex of a group and class, each with the same chance. There must be one.
func (n *network) anyone(cell int, rng *rand.Rand) uint32 {
	r := rng.IntN(n.count[cell])
	for _, bucket := range n.buckets[cell*levels : (cell+1)*levels] {
		if r < len(bucket) {
			return bucket[r]
		}
		r -= len(bucket)
	}
	panic("simulate: bucket counts are out of step")
}

// contact draws a vertex that u meets: of its own group, or of any by activity; and of its own
// opinion, or of any.
func (s *Network) contact(u uint32) uint32 {
	n, rng := &s.network, s.rng
	group, class := n.vertices[u].group, n.vertices[u].class
	if rng.Float64() >= s.config.GroupHomophily {
		group = n.vertices[n.active(rng)].group
	}
	if rng.Float64() >= s.config.OpinionHomophily || n.weight[n.cell(group, class)] == 0 {
		class = n.classByActivity(group, rng)
	}
	cell := n.cell(group, class)
	return byActivity(n.buckets[cell*levels:(cell+1)*levels], rng.Int64N(n.weight[cell]))
}

// classByActivity draws a class by its activity in a group that is not empty.
func (n *network) classByActivity(group uint32, rng *rand.Rand) uint16 {
	weights := n.weight[int(group)*n.classes : (int(group)+1)*n.classes]
	total := int64(0)
	for _, w := range weights {
		total += w
	}
	r := rng.Int64N(total)
	for k, w := range weights {
		if r < w {
			return uint16(k)
		}
		r -= w
	}
	panic("simulate: class weights are out of step")
}

// arrive adds a vertex: its attributes, its membership, and, once the network
// stands, its first contacts.
func (s *Network) arrive() {
	n, rng := &s.network, s.rng
	v := uint32(len(n.vertices))
	p := person{group: n.newGroup(rng)}
	p.level = uint8(min(levels-1, int(-math.Log2(1-rng.Float64())/activityTail)))
	p.class = s.opinion.draw(p.group, s.elapsed(), rng)
	asked := rng.Float64() < s.config.LabelShare
	n.vertices = append(n.vertices, p)
	n.byLevel[p.level] = append(n.byLevel[p.level], v)
	n.put(v)
	s.emitVertex(v)
	s.emitMember(v, 1)
	if asked {
		s.queue.add(v, dueLabel, s.delay(s.config.LabelDelay))
	}
	s.queue.add(v, duePrediction, s.delay(s.config.PredictionDelay))
	if s.tick > 0 {
		for range int(s.config.EdgesPerVertex) {
			s.connect(v)
		}
	}
}

// change makes or drops an edge, to bring the number of edges to its target, or moves a vertex to
// another community.
func (s *Network) change() {
	n := &s.network
	switch target := s.config.EdgesPerVertex * float64(len(n.vertices)); {
	case s.tick > 0 && s.rng.Float64() < s.config.MoveShare:
		s.move(uint32(s.rng.IntN(len(n.vertices))))
	case float64(n.edges.size) >= target:
		edge := n.edges.takeAny(s.rng)
		s.emitEdge(uint32(edge>>32), uint32(edge&math.MaxUint32), true)
	default:
		s.connect(n.active(s.rng))
	}
}

// connect makes an edge from u to somebody it does not know yet.
func (s *Network) connect(u uint32) {
	n := &s.network
	for range contactTries {
		v := s.contact(u)
		if edge := edgeOf(u, v); u != v && n.edges.add(edge) {
			n.vertices[u].meet(v)
			n.vertices[v].meet(u)
			s.emitEdge(u, v, false)
			return
		}
	}
}

func (p *person) meet(v uint32) {
	p.partners[p.met%partnersKept] = v
	p.met++
}

// move takes v to another community; it keeps its opinion and its edges.
func (s *Network) move(v uint32) {
	n := &s.network
	group := n.newGroup(s.rng)
	if group == n.vertices[v].group {
		return
	}
	s.emitMember(v, 0)
	n.take(v)
	n.vertices[v].group = group
	n.put(v)
	s.emitMember(v, 1)
}

func (s *Network) emitVertex(v uint32) {
	language := languages[int(s.network.vertices[v].group)%len(languages)]
	if s.rng.Uint32()%10 == 0 {
		language = languages[s.rng.IntN(len(languages))]
	}
	verified := event.Value{Kind: event.BoolValue}
	if s.rng.Uint32()%20 == 0 {
		verified.Number = 1
	}
	s.position++
	s.batch.Vertices = append(s.batch.Vertices, event.Vertex{
		Vertex: event.NumberID(uint64(v)), Time: s.now, Position: s.position,
		Attributes: []event.Attribute{
			{Key: "language", Value: event.Value{Kind: event.StringValue, Text: language}},
			{Key: "verified", Value: verified},
		},
	})
}

func (s *Network) emitMember(v uint32, multiplicity uint32) {
	s.position++
	s.batch.Members = append(s.batch.Members, event.Member{
		Community: s.network.names[s.network.vertices[v].group], Vertex: event.NumberID(uint64(v)),
		Multiplicity: multiplicity, Time: s.now, Position: s.position,
	})
}
