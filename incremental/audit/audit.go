package audit

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Scales of the sums, which bring the largest sensible weights below the bound of a term.
const (
	weightScale  = 0x1p-16 // of w, which stays exact to 2^-64
	squaredScale = 0x1p-24 // of w² and c
)

// Tallies holds the sums of all communities. One goroutine owns it.
type Tallies struct {
	classes int
	each    map[graphstore.Community]*sums
	counted map[graphstore.Vertex]entry // what each audited vertex has added
}

// entry is an audited vertex as it was counted.
type entry struct {
	audit       graphstore.Audit
	units       []uint32 // nil: no prediction
	communities []graphstore.Membership
}

// sums belong to one community: of w², then those of quant.AuditSums with w and with c, then
// those of c times y p' and p p'.
type sums struct {
	labels uint64
	of     []tally.Sum
}

// New returns the tallies of a graph as it stands.
func New(classes int, view graphstore.View) *Tallies {
	t := &Tallies{
		classes: classes, each: map[graphstore.Community]*sums{}, counted: map[graphstore.Vertex]entry{},
	}
	everyone := everyoneOf(view)
	for _, v := range view.Audits() {
		t.recount(view, v, everyone, func(graphstore.Community) {})
	}
	return t
}

// Update follows a change of the graph, and calls moved for every community whose sums it
// may have changed. A community may be named more than once.
func (t *Tallies) Update(view graphstore.View, delta *graphstore.Delta, moved func(graphstore.Community)) {
	var touched []graphstore.Vertex
	for _, a := range delta.Audits {
		touched = append(touched, a.V)
	}
	touch := func(v graphstore.Vertex) {
		if _, counted := t.counted[v]; counted {
			touched = append(touched, v)
		}
	}
	for i := 0; len(t.counted) > 0 && i < len(delta.Predictions); i++ {
		touch(delta.Predictions[i].V)
	}
	for i := 0; len(t.counted) > 0 && i < len(delta.Members); i++ {
		touch(delta.Members[i].V)
	}
	if len(touched) == 0 {
		return
	}
	slices.Sort(touched)
	everyone := everyoneOf(view)
	for _, v := range slices.Compact(touched) {
		t.recount(view, v, everyone, moved)
	}
}

// everyoneOf lists the communities of every vertex, which the memberships leave out.
func everyoneOf(view graphstore.View) (list []graphstore.Membership) {
	for c := range graphstore.Community(view.Communities()) {
		if view.Everyone(c) {
			list = append(list, graphstore.Membership{Community: c, Multiplicity: 1})
		}
	}
	return list
}

// recount takes out what a vertex has added and adds what it is now.
func (t *Tallies) recount(
	view graphstore.View, v graphstore.Vertex, everyone []graphstore.Membership, moved func(graphstore.Community),
) {
	before, counted := t.counted[v]
	if counted {
		t.add(&before, -1, moved)
		delete(t.counted, v)
	}
	after := entry{audit: view.Audit(v)}
	if after.audit.Class == event.NoClass {
		return
	}
	after.units = slices.Clone(view.Prediction(v))
	after.communities = slices.Concat(everyone, view.MemberOf(v))
	t.add(&after, 1, moved)
	t.counted[v] = after
}

// add adds an entry to the sums of its communities (sign 1) or takes it back (sign -1).
func (t *Tallies) add(e *entry, sign int, moved func(graphstore.Community)) {
	for _, m := range e.communities {
		s := t.each[m.Community]
		if s == nil {
			s = &sums{of: make([]tally.Sum, 3+4*t.classes+2*t.classes*t.classes)}
			t.each[m.Community] = s
		}
		s.add(e, t.classes, m.Multiplicity, sign)
		if s.labels == 0 {
			delete(t.each, m.Community) // a recount has none either
		}
		moved(m.Community)
	}
}

func (s *sums) add(e *entry, k int, multiplicity uint32, sign int) {
	pi := float64(e.audit.Pi) / event.One
	w := float64(multiplicity) / pi
	c := float64(w*w*squaredScale) * (1 - pi)
	s.labels += uint64(sign) // two's complement: -1 subtracts
	put := func(at int, x float64) { s.of[at].Add(x, sign) }
	put(0, float64(w*w*squaredScale))
	class, outer := int(e.audit.Class), 3+4*k
	for i, weight := range []float64{w * weightScale, c} {
		at := 1 + i*(1+2*k)
		put(at, weight)
		put(at+1+class, weight)
		for j, unit := range e.units {
			put(at+1+k+j, float64(weight*(float64(unit)/event.One)))
		}
	}
	for i, unit := range e.units {
		p := float64(c * (float64(unit) / event.One))
		put(outer+class*k+i, p)
		for j, other := range e.units {
			put(outer+k*k+i*k+j, float64(p*(float64(other)/event.One)))
		}
	}
}

// Read returns the sums of a community as quantifiers want them, nil where it has no
// audited member.
func (t *Tallies) Read(c graphstore.Community) *quant.Audit {
	s := t.each[c]
	if s == nil {
		return nil
	}
	from, k := 0, t.classes
	read := func(n int, scale float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = s.of[from].Float() / scale
			from++
		}
		return out
	}
	moments := func(scale float64) quant.AuditSums {
		return quant.AuditSums{Sum: read(1, scale)[0], Y: read(k, scale), P: read(k, scale)}
	}
	return &quant.Audit{
		Labels: int(s.labels), SquaredW: read(1, squaredScale)[0], Weights: moments(weightScale), Noise: moments(squaredScale),
		NoiseYP: read(k*k, squaredScale), NoisePP: read(k*k, squaredScale),
	}
}
