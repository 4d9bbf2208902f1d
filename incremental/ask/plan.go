package ask

import (
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// candidate is a member of one of the communities in question that has no label of
// another role.
type candidate struct {
	vertex graphstore.Vertex
	p      []float64 // prediction; zero where there is none
	before graphstore.Audit
	in     []*place
	key    uint64  // random, for the order in a cell
	pi     float64 // of the present division
}

// place is a candidate in one community.
type place struct {
	*candidate
	group   int
	times   float64 // multiplicity
	stratum int
	want    float64 // share of the group's labels
}

// group is a community of the draw.
type group struct {
	name    string
	members []*place
	total   float64
	strata  []stratum
}

// plan divides labels among the members of communities.
type plan struct {
	question   Question
	view       graphstore.View
	names      event.ClassSet
	classes    int
	candidates []*candidate
	groups     []group
	examples   [][]example // by predicted class
	solver     quant.Solver
}

// newPlan lists the members of the communities and their strata.
func newPlan(view graphstore.View, names event.ClassSet, q Question) (*plan, error) {
	k := names.K()
	p := &plan{question: q, view: view, names: names, classes: k, examples: examples(view, k)}
	index := map[graphstore.Vertex]*candidate{}
	for i, name := range q.Communities {
		id, known := view.FindCommunity(name)
		if !known {
			return nil, fmt.Errorf(
				"ask: no community %q; %s",
				name,
				event.Nearest(name, view.CommunityNames()),
			)
		}
		if slices.Contains(q.Communities[:i], name) {
			return nil, fmt.Errorf("ask: community %q is named twice", name)
		}
		p.groups = append(p.groups, group{name: name})
		view.ForMembers(id, func(v graphstore.Vertex, times uint32) {
			if view.Label(v).Class != event.NoClass {
				return // known
			}
			c := index[v]
			if c == nil {
				c = &candidate{
					vertex: v,
					p:      probabilities(view.Prediction(v), k),
					before: view.Audit(v),
				}
				index[v] = c
				p.candidates = append(p.candidates, c)
			}
			m := &place{candidate: c, group: i, times: float64(times)}
			c.in = append(c.in, m)
			p.groups[i].members = append(p.groups[i].members, m)
			p.groups[i].total += float64(times)
		})
		if len(p.groups[i].members) == 0 {
			return nil, fmt.Errorf("ask: all members of community %q are labelled", name)
		}
		p.stratify(i)
	}
	return p, nil
}

// probabilities returns the probabilities of a prediction; zero where there is none.
func probabilities(units []uint32, classes int) []float64 {
	p := make([]float64, classes)
	for k, unit := range units {
		p[k] = float64(unit) / event.One
	}
	return p
}

// spend divides labels, including the present ones, so that every group wants the same number.
func (p *plan) spend(labels float64) {
	want := make([]float64, len(p.candidates))
	for i, c := range p.candidates {
		for _, m := range c.in {
			want[i] = max(want[i], m.want)
		}
	}
	for i, pi := range shares(want, min(labels, float64(len(want)))) {
		p.candidates[i].pi = pi
	}
}

const countSteps = 20 // halvings of a number of labels

// divideForWidth divides as many labels as every group needs for a half-width: a candidate has the
// largest probability that one of its groups wants.
func (p *plan) divideForWidth(width float64) {
	for g := range p.groups {
		members := p.groups[g].members
		low, high := float64(stats.AuditsMin), float64(len(members))
		for range countSteps {
			middle := (low + high) / 2
			if p.halfWidth(g, middle) > width {
				low = middle
			} else {
				high = middle
			}
		}
		for i, pi := range p.probabilities(g, math.Ceil(high)) {
			members[i].pi = max(members[i].pi, pi)
		}
	}
}

// halfWidth returns half the width of the group's widest interval if it gets this many labels.
func (p *plan) halfWidth(g int, labels float64) float64 {
	pi := p.probabilities(g, labels)
	return slices.Max(p.widths(g, func(i int) float64 { return pi[i] }))
}

// probabilities returns pi of the members of a group if it gets this many labels.
func (p *plan) probabilities(g int, labels float64) []float64 {
	members := p.groups[g].members
	want := make([]float64, len(members))
	for i, m := range members {
		want[i] = m.want
	}
	return shares(want, min(labels, float64(len(members))))
}

// shares divides labels in proportion to the wanted numbers, at most one each.
func shares(want []float64, labels float64) []float64 {
	pi := make([]float64, len(want))
	for sure := true; sure; {
		left, sum := labels, 0.0
		for i, x := range want {
			if pi[i] == 1 {
				left--
			} else {
				sum += x
			}
		}
		sure = false
		for i, x := range want {
			if pi[i] < 1 && left > 0 {
				pi[i] = min(x*left/max(sum, math.SmallestNonzeroFloat64), 1)
				sure = sure || pi[i] == 1
			}
		}
	}
	for i := range pi {
		pi[i] = max(pi[i], float64(event.PiMin)/event.One)
	}
	return pi
}

// offer returns the labels that the group gets by the present division, and the resulting widths.
func (p *plan) offer(g int) Offer {
	group := &p.groups[g]
	labels := 0.0
	for _, m := range group.members {
		labels += m.pi
	}
	widths := p.widths(g, func(i int) float64 { return group.members[i].pi })
	return Offer{group.name, int(math.Round(labels)), slices.Max(widths)}
}
