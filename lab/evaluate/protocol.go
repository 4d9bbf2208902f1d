package evaluate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// The protocols by name; groups are written "group:KEY".
const (
	pps         = "pps"     // prior shift: class shares from a Zipf distribution
	cov         = "cov"     // covariate shift: the same shares, of predicted classes
	byDegree    = "degree"  // covariate shift: in proportion to the degree
	surest      = "surest"  // covariate shift: members with the surest predictions
	one         = "one"     // the extreme prior shift: members of one class
	bfs         = "bfs"     // structural shift: breadth-first balls
	rw          = "rw"      // structural shift: random walks with restart
	members     = "members" // the tracked communities of the data
	groupPrefix = "group:"  // and KEY: vertices with the same value of an attribute
)

const (
	walkSteps    = 10  // of a random walk
	walkTeleport = 0.1 // chance to jump back to its root at each step
	// times the size, before a root without hidden vertices around it is given up
	walksMax = 100
	rootsMax = 100 // that are tried for one community
)

// drawn is a community as a protocol draws it: multiplicity by vertex.
type drawn struct {
	name    string
	members map[graphstore.Vertex]uint32
}

type member struct {
	vertex       graphstore.Vertex
	multiplicity uint32
}

// protocol draws the communities of one split.
type protocol func(p *pool, config Config, r *rand.Rand) []drawn

var protocols = map[string]protocol{
	pps:      func(p *pool, c Config, r *rand.Rand) []drawn { return p.zipf(c, r, p.byClass) },
	cov:      func(p *pool, c Config, r *rand.Rand) []drawn { return p.zipf(c, r, p.byGuess()) },
	byDegree: (*pool).popular,
	surest:   (*pool).surest,
	one:      (*pool).pure,
	bfs:      func(p *pool, c Config, r *rand.Rand) []drawn { return p.around(c, r, p.ball) },
	rw:       func(p *pool, c Config, r *rand.Rand) []drawn { return p.around(c, r, p.walks) },
	members:  func(p *pool, _ Config, _ *rand.Rand) []drawn { return p.communities() },
}

func newProtocol(name string) (protocol, error) {
	if attribute, is := strings.CutPrefix(name, groupPrefix); is && attribute != "" {
		return func(p *pool, _ Config, _ *rand.Rand) []drawn { return p.groups(attribute) }, nil
	}
	if known, is := protocols[name]; is {
		return known, nil
	}
	return nil, fmt.Errorf(
		"protocols: %q is not one of pps, cov, degree, surest, one, bfs, rw, members and "+
			"group:ATTRIBUTE",
		name)
}

// pool is the hidden labelled vertices of one split.
type pool struct {
	view    graphstore.View
	hidden  []bool                // by vertex
	byClass [][]graphstore.Vertex // sorted
	seen    []uint32              // by vertex: the ball that saw it last
	ballAt  uint32                // number of the current ball
}

func newPool(d *dataset, vertices []graphstore.Vertex) *pool {
	p := &pool{
		view: d.view, hidden: make([]bool, d.view.Vertices()),
		seen: make([]uint32, d.view.Vertices()), byClass: make([][]graphstore.Vertex, d.classes),
	}
	for _, v := range slices.Sorted(slices.Values(vertices)) {
		p.hidden[v] = true
		class := d.view.Label(v).Class
		p.byClass[class] = append(p.byClass[class], v)
	}
	return p
}

// zipf draws communities from vertices that are sorted into classes by something. The shares
// of the classes are Zipf-distributed, 1/rank over a random order of the classes with vertices,
// each class uniformly and without replacement as far as it goes round.
func (p *pool) zipf(config Config, r *rand.Rand, byClass [][]graphstore.Vertex) []drawn {
	classes := make([]int, 0, len(byClass))
	var total float64
	for class, vertices := range byClass {
		if len(vertices) > 0 {
			classes = append(classes, class)
			total += 1 / float64(len(classes))
		}
	}
	var out []drawn
	shares := make([]float64, len(byClass))
	for i := range config.PerClass * len(classes) {
		clear(shares)
		for rank, at := range r.Perm(len(classes)) {
			shares[classes[at]] = 1 / float64(rank+1) / total
		}
		one := drawn{name: strconv.Itoa(i), members: map[graphstore.Vertex]uint32{}}
		for class, n := range apportion(shares, config.Size) {
			fromClass(one.members, byClass[class], n, r)
		}
		out = append(out, one)
	}
	return out
}

// byGuess sorts the hidden vertices with a prediction by the class that it finds the most likely.
func (p *pool) byGuess() [][]graphstore.Vertex {
	out := make([][]graphstore.Vertex, len(p.byClass))
	for v, hidden := range p.hidden {
		if units := p.view.Prediction(graphstore.Vertex(v)); hidden && units != nil {
			class := neighborhood.HardClass(units)
			out[class] = append(out[class], graphstore.Vertex(v))
		}
	}
	return out
}

// popular draws PerClass communities a class, each of Size hidden vertices in proportion
// to one more than their degree, without replacement.
func (p *pool) popular(config Config, r *rand.Rand) (out []drawn) {
	hidden := slices.Sorted(slices.Values(slices.Concat(p.byClass...)))
	for i := range config.PerClass * len(p.byClass) {
		all := slices.Clone(hidden)
		sortByDegree(p.view, all, r)
		one := drawn{strconv.Itoa(i), map[graphstore.Vertex]uint32{}}
		for _, v := range all[:min(config.Size, len(all))] {
			one.members[v] = 1
		}
		out = append(out, one)
	}
	return out
}

// surest draws PerClass communities a class, each of the Size vertices with the surest
// predictions among a random half of the hidden ones.
func (p *pool) surest(config Config, r *rand.Rand) (out []drawn) {
	hidden := slices.Sorted(slices.Values(slices.Concat(p.byClass...)))
	hidden = slices.DeleteFunc(hidden, func(v graphstore.Vertex) bool {
		return p.view.Prediction(v) == nil
	})
	for i := range config.PerClass * len(p.byClass) {
		var half []graphstore.Vertex
		for _, at := range r.Perm(len(hidden))[:len(hidden)/2] {
			half = append(half, hidden[at])
		}
		slices.SortStableFunc(half, func(a, b graphstore.Vertex) int {
			return cmp.Compare(slices.Max(p.view.Prediction(b)), slices.Max(p.view.Prediction(a)))
		})
		one := drawn{strconv.Itoa(i), map[graphstore.Vertex]uint32{}}
		for _, v := range half[:min(config.Size, len(half))] {
			one.members[v] = 1
		}
		out = append(out, one)
	}
	return out
}

// sortByDegree sorts by u^(1/degree), u uniform, the largest first: the first n are a sample
// without replacement in proportion to the degree (Efraimidis and Spirakis 2006).
func sortByDegree(view graphstore.View, vertices []graphstore.Vertex, r *rand.Rand) {
	key := map[graphstore.Vertex]float64{}
	for _, v := range vertices {
		key[v] = math.Log(1-r.Float64()) / (view.Degree(v) + 1)
	}
	slices.SortFunc(vertices, func(a, b graphstore.Vertex) int {
		return cmp.Or(cmp.Compare(key[b], key[a]), cmp.Compare(a, b))
	})
}

// pure draws PerClass communities of every class that have members of no other.
func (p *pool) pure(config Config, r *rand.Rand) (out []drawn) {
	for class, vertices := range p.byClass {
		for i := range config.PerClass {
			one := drawn{strconv.Itoa(class*config.PerClass + i), map[graphstore.Vertex]uint32{}}
			fromClass(one.members, vertices, min(config.Size, len(vertices)), r)
			out = append(out, one)
		}
	}
	return out
}

// fromClass adds n vertices of a class; when it has fewer, all of them as often as needed.
func fromClass(
	members map[graphstore.Vertex]uint32, vertices []graphstore.Vertex, n int, r *rand.Rand,
) {
	for n > 0 {
		order := r.Perm(len(vertices))
		for _, i := range order[:min(n, len(order))] {
			members[vertices[i]]++
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
		return cmp.Compare(shares[b]*float64(n)-float64(out[b]),
			shares[a]*float64(n)-float64(out[a]))
	})
	for i := range left {
		out[order[i%len(order)]]++
	}
	return out
}

// around draws PerClass communities around random roots of every class. A root
// with too few hidden vertices around it is replaced.
func (p *pool) around(config Config, r *rand.Rand,
	draw func(root graphstore.Vertex, config Config, r *rand.Rand) map[graphstore.Vertex]uint32,
) []drawn {
	var out []drawn
	for class, vertices := range p.byClass {
		for i := range config.PerClass {
			for tries := 0; tries < rootsMax && len(vertices) > 0; tries++ {
				members := draw(vertices[r.IntN(len(vertices))], config, r)
				if len(members) >= config.MembersMin {
					out = append(out, drawn{strconv.Itoa(class*config.PerClass + i), members})
					break
				}
			}
		}
	}
	return out
}

// ball takes the hidden vertices nearest to the root, breadth first. A component
// with fewer gives a smaller community.
func (p *pool) ball(
	root graphstore.Vertex,
	config Config,
	_ *rand.Rand,
) map[graphstore.Vertex]uint32 {
	members := map[graphstore.Vertex]uint32{}
	p.ballAt++
	p.seen[root] = p.ballAt
	for queue := []graphstore.Vertex{
		root,
	}; len(queue) > 0 && len(members) < config.Size; queue = queue[1:] {
		if p.hidden[queue[0]] {
			members[queue[0]] = 1
		}
		for _, u := range p.view.Neighbors(queue[0]) {
			if p.seen[u] != p.ballAt {
				p.seen[u] = p.ballAt
				queue = append(queue, u)
			}
		}
	}
	return members
}

// walks collects the hidden vertices that random walks from the root end at, with repeats.
func (p *pool) walks(
	root graphstore.Vertex,
	config Config,
	r *rand.Rand,
) map[graphstore.Vertex]uint32 {
	members := map[graphstore.Vertex]uint32{}
	for count, walk := 0, 0; count < config.Size && walk < walksMax*config.Size; walk++ {
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
			members[at]++
			count++
		}
	}
	return members
}

// groups takes one community for each value of an attribute.
func (p *pool) groups(attribute string) []drawn {
	byValue := map[event.Value]drawn{}
	for _, vertices := range p.byClass {
		for _, v := range vertices {
			value := p.view.Attribute(v, attribute)
			if value.Kind == event.NullValue {
				continue
			}
			if byValue[value].members == nil {
				byValue[value] = drawn{valueName(value), map[graphstore.Vertex]uint32{}}
			}
			byValue[value].members[v] = 1
		}
	}
	return slices.SortedFunc(maps.Values(byValue),
		func(a, b drawn) int { return strings.Compare(a.name, b.name) })
}

func valueName(v event.Value) string {
	switch v.Kind {
	case event.NumberValue:
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	case event.BoolValue:
		return strconv.FormatBool(v.Number != 0)
	default:
		return strconv.Quote(v.Text) // apart from the number or boolean of the same text
	}
}

// communities takes the hidden members of every community of the data.
func (p *pool) communities() (out []drawn) {
	for c := range graphstore.Community(p.view.Communities()) {
		one := drawn{p.view.CommunityName(c), map[graphstore.Vertex]uint32{}}
		p.view.ForMembers(c, func(v graphstore.Vertex, multiplicity uint32) {
			if p.hidden[v] {
				one.members[v] = multiplicity
			}
		})
		out = append(out, one)
	}
	return out
}
