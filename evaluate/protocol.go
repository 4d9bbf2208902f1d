package evaluate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// The protocols by name; groups are written "group:KEY".
const (
	PPS         = "pps" // prior shift: class shares from a Zipf distribution
	BFS         = "bfs" // structural shift: breadth-first balls
	RW          = "rw"  // structural shift: random walks with restart
	groupPrefix = "group:"
)

const (
	walkSteps      = 10  // of a random walk before it starts again
	walkTeleport   = 0.1 // chance to jump back to its root at each step
	walksMax       = 200 // times the size, before a root without hidden vertices around it is given up
	groupSizeLeast = 10  // smaller groups are left out
)

type members = map[graphstore.Vertex]uint32

// protocol draws the communities of one split.
type protocol func(p *pool, config Config, r *rand.Rand) []members

func newProtocol(name string) (protocol, error) {
	switch {
	case name == PPS:
		return (*pool).priorShift, nil
	case name == BFS:
		return func(p *pool, c Config, r *rand.Rand) []members { return p.around(c, r, p.ball) }, nil
	case name == RW:
		return func(p *pool, c Config, r *rand.Rand) []members { return p.around(c, r, p.walks) }, nil
	case strings.HasPrefix(name, groupPrefix) && len(name) > len(groupPrefix):
		attribute := name[len(groupPrefix):]
		return func(p *pool, _ Config, _ *rand.Rand) []members { return p.groups(attribute) }, nil
	}
	return nil, fmt.Errorf("protocol %q: there are pps, bfs, rw and group:ATTRIBUTE", name)
}

// pool is the hidden labelled vertices of one split.
type pool struct {
	view    graphstore.View
	hidden  []bool                // by vertex
	byClass [][]graphstore.Vertex // sorted
}

func newPool(d *dataset, vertices []graphstore.Vertex) *pool {
	p := &pool{view: d.view, hidden: make([]bool, d.view.Vertices()), byClass: make([][]graphstore.Vertex, d.classes)}
	vertices = slices.Sorted(slices.Values(vertices))
	for _, v := range vertices {
		p.hidden[v] = true
		class := d.view.Label(v).Class
		p.byClass[class] = append(p.byClass[class], v)
	}
	return p
}

// priorShift draws communities whose class shares are Zipf-distributed, 1/rank
// over a random order of the classes, each class uniformly and without
// replacement as far as it goes round.
func (p *pool) priorShift(config Config, r *rand.Rand) []members {
	k := len(p.byClass)
	var total float64
	for rank := range k {
		total += 1 / float64(rank+1)
	}
	var out []members
	for range config.PerClass * k {
		drawn := members{}
		shares := make([]float64, k)
		for rank, class := range r.Perm(k) {
			shares[class] = 1 / float64(rank+1) / total
		}
		for class, n := range apportion(shares, config.Size) {
			p.fromClass(drawn, class, n, r)
		}
		if len(drawn) > 0 {
			out = append(out, drawn)
		}
	}
	return out
}

// fromClass adds n vertices of a class; when it has fewer, all of them as often
// as needed.
func (p *pool) fromClass(drawn members, class, n int, r *rand.Rand) {
	vertices := p.byClass[class]
	if len(vertices) == 0 {
		return
	}
	for n > 0 {
		order := r.Perm(len(vertices))
		for _, i := range order[:min(n, len(order))] {
			drawn[vertices[i]]++
		}
		n -= min(n, len(order))
	}
}

// apportion splits n into integers in the proportions of shares, which sum to
// one, by largest remainders.
func apportion(shares []float64, n int) []int {
	out := make([]int, len(shares))
	order := make([]int, len(shares))
	left := n
	for i, s := range shares {
		out[i] = int(s * float64(n))
		order[i] = i
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		ra, rb := shares[a]*float64(n)-float64(out[a]), shares[b]*float64(n)-float64(out[b])
		switch {
		case ra > rb:
			return -1
		case ra < rb:
			return 1
		}
		return 0
	})
	for i := range left {
		out[order[i%len(order)]]++
	}
	return out
}

// around draws PerClass communities around random roots of every class.
func (p *pool) around(config Config, r *rand.Rand,
	draw func(root graphstore.Vertex, size int, r *rand.Rand) members,
) []members {
	var out []members
	for _, vertices := range p.byClass {
		if len(vertices) == 0 {
			continue
		}
		for range config.PerClass {
			if drawn := draw(vertices[r.IntN(len(vertices))], config.Size, r); len(drawn) > 0 {
				out = append(out, drawn)
			}
		}
	}
	return out
}

// ball takes the hidden vertices nearest to the root, breadth first. A component
// with fewer gives a smaller community.
func (p *pool) ball(root graphstore.Vertex, size int, _ *rand.Rand) members {
	drawn := members{}
	seen := map[graphstore.Vertex]bool{root: true}
	for queue := []graphstore.Vertex{root}; len(queue) > 0 && len(drawn) < size; queue = queue[1:] {
		if p.hidden[queue[0]] {
			drawn[queue[0]] = 1
		}
		for _, u := range p.view.Neighbors(queue[0]) {
			if !seen[u] {
				seen[u] = true
				queue = append(queue, u)
			}
		}
	}
	return drawn
}

// walks collects the hidden vertices that random walks from the root end at, with
// repeats.
func (p *pool) walks(root graphstore.Vertex, size int, r *rand.Rand) members {
	drawn := members{}
	for count, walk := 0, 0; count < size && walk < walksMax*size; walk++ {
		at := root
		for range walkSteps {
			neighbors := p.view.Neighbors(at)
			if len(neighbors) == 0 || r.Float64() < walkTeleport {
				at = root
				continue
			}
			at = neighbors[r.IntN(len(neighbors))]
		}
		if p.hidden[at] {
			drawn[at]++
			count++
		}
	}
	return drawn
}

// groups takes one community for each value of an attribute that enough hidden
// vertices have.
func (p *pool) groups(attribute string) []members {
	byValue := map[event.Value]members{}
	var order []event.Value
	for _, vertices := range p.byClass {
		for _, v := range vertices {
			value := p.view.Attribute(v, attribute)
			if value.Kind == event.NullValue {
				continue
			}
			if byValue[value] == nil {
				byValue[value] = members{}
				order = append(order, value)
			}
			byValue[value][v] = 1
		}
	}
	var out []members
	for _, value := range order {
		if len(byValue[value]) >= groupSizeLeast {
			out = append(out, byValue[value])
		}
	}
	return out
}
