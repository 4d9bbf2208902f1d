package audit

import (
	"fmt"
	"maps"
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

// sums belong to one community.
type sums struct {
	labels  uint64
	weights moments
	noise   moments
	squared tally.Sum   // of w²
	yp, pp  []tally.Sum // K x K, of c
}

// moments are the sums of a weight, alone, by class, and times the prediction.
type moments struct {
	sum  tally.Sum
	y, p []tally.Sum // K
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
	if len(t.counted) > 0 {
		for i := range delta.Predictions {
			touched = t.touch(touched, delta.Predictions[i].V)
		}
		for _, m := range delta.Members {
			touched = t.touch(touched, m.V)
		}
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

// touch appends a vertex that is counted.
func (t *Tallies) touch(list []graphstore.Vertex, v graphstore.Vertex) []graphstore.Vertex {
	if _, counted := t.counted[v]; counted {
		return append(list, v)
	}
	return list
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
			s = newSums(t.classes)
			t.each[m.Community] = s
		}
		s.add(e, m.Multiplicity, sign)
		if s.labels == 0 {
			delete(t.each, m.Community) // a recount has none either
		}
		moved(m.Community)
	}
}

func newSums(k int) *sums {
	of := func() moments { return moments{y: make([]tally.Sum, k), p: make([]tally.Sum, k)} }
	return &sums{weights: of(), noise: of(), yp: make([]tally.Sum, k*k), pp: make([]tally.Sum, k*k)}
}

func (s *sums) add(e *entry, multiplicity uint32, sign int) {
	pi := float64(e.audit.Pi) / event.One
	w := float64(multiplicity) / pi
	c := float64(w*w*squaredScale) * (1 - pi)
	s.labels += uint64(sign) // two's complement: -1 subtracts
	put(&s.squared, float64(w*w*squaredScale), sign)
	s.weights.add(e, w*weightScale, sign)
	s.noise.add(e, c, sign)
	k, class := len(s.weights.y), int(e.audit.Class)
	for i, unit := range e.units {
		p := float64(c * (float64(unit) / event.One))
		put(&s.yp[class*k+i], p, sign)
		for j, other := range e.units {
			put(&s.pp[i*k+j], float64(p*(float64(other)/event.One)), sign)
		}
	}
}

func (m *moments) add(e *entry, weight float64, sign int) {
	put(&m.sum, weight, sign)
	put(&m.y[e.audit.Class], weight, sign)
	for i, unit := range e.units {
		put(&m.p[i], float64(weight*(float64(unit)/event.One)), sign)
	}
}

// put adds a term or takes it back.
func put(s *tally.Sum, x float64, sign int) {
	if sign > 0 {
		s.Add(x)
	} else {
		s.Sub(x)
	}
}

// Read returns the sums of a community as quantifiers want them, nil where it has no
// audited member.
func (t *Tallies) Read(c graphstore.Community) *quant.Audit {
	s := t.each[c]
	if s == nil {
		return nil
	}
	return &quant.Audit{
		Labels: int(s.labels), SquaredW: s.squared.Float() / squaredScale,
		Weights: s.weights.read(weightScale), Noise: s.noise.read(squaredScale),
		NoiseYP: floats(s.yp, squaredScale), NoisePP: floats(s.pp, squaredScale),
	}
}

func (m *moments) read(scale float64) quant.AuditSums {
	return quant.AuditSums{Sum: m.sum.Float() / scale, Y: floats(m.y, scale), P: floats(m.p, scale)}
}

func floats(sums []tally.Sum, scale float64) []float64 {
	out := make([]float64, len(sums))
	for i, s := range sums {
		out[i] = s.Float() / scale
	}
	return out
}

// Check counts everything from nothing and names the first community whose sums are not
// equal bit for bit.
func (t *Tallies) Check(view graphstore.View) error {
	twin := New(t.classes, view)
	for _, c := range slices.Sorted(maps.Keys(twin.each)) {
		if t.each[c] == nil || !t.each[c].equal(twin.each[c]) {
			return fmt.Errorf("audit: community %s has %+v, a recount gives %+v", view.CommunityName(c), t.each[c], twin.each[c])
		}
	}
	if len(t.each) != len(twin.each) || len(t.counted) != len(twin.counted) {
		return fmt.Errorf("audit: %d communities and %d vertices, a recount gives %d and %d",
			len(t.each), len(t.counted), len(twin.each), len(twin.counted))
	}
	return nil
}

func (s *sums) equal(x *sums) bool {
	return s.labels == x.labels && s.squared == x.squared && s.weights.equal(&x.weights) &&
		s.noise.equal(&x.noise) && slices.Equal(s.yp, x.yp) && slices.Equal(s.pp, x.pp)
}

func (m *moments) equal(x *moments) bool {
	return m.sum == x.sum && slices.Equal(m.y, x.y) && slices.Equal(m.p, x.p)
}
