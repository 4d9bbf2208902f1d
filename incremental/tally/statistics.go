package tally

import (
	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// rebuildMembers counts the members of one community from nothing; its Sources
// then list the whole kernel.
func (t *Tallies) rebuildMembers(id CommunityID, view graphstore.View, sums *neighborhood.Sums) {
	empty := state{label: graphstore.Label{Class: event.NoClass}}
	view.ForMembers(id, func(v Vertex, multiplicity uint32) {
		s := stateOf(view, sums, v)
		t.recount(shift{v: v, community: id, after: multiplicity}, &empty, &s, 1)
	})
}

// Members returns the total multiplicity of the community.
func (t *Tallies) Members(id CommunityID) float64 { return float64(t.each[id].members) }

// Vertices returns the number of different members of the community.
func (t *Tallies) Vertices(id CommunityID, view graphstore.View) int {
	if view.Everyone(id) {
		return int(t.each[id].members)
	}
	vertices, _ := view.Members(id)
	return len(vertices)
}

// KernelSum returns M, the total multiplicity of the kernel's sources.
func (t *Tallies) KernelSum(id CommunityID) float64 {
	return float64(t.each[id].members - t.each[id].labelled)
}

// Statistics returns the statistics of one community, the caller's to keep.
// exact adds the pass over calibration rows that exact variances need; it reads view
// and sums when called, which must be as in the last Update.
func (t *Tallies) Statistics(id CommunityID, view graphstore.View, sums *neighborhood.Sums, exact bool) *quant.Statistics {
	c := t.each[id]
	s := t.base(id)
	s.ClassA1, s.ClassA2 = scaled(c.a1[whole], 1/c.scale), scaled(c.a2[whole], 1/(c.scale*c.scale))
	if t.decay != nil {
		t.age(s, c)
	}
	t.readCells(s, c)
	if exact && !t.keep.Means {
		s.Rows = func(visit func(quant.Row)) { t.visitRows(c, view, sums, visit) }
	}
	return s
}

// readCells reads all kinds of cells that are kept, with A1 and A2 from the sums, or P alone.
func (t *Tallies) readCells(s *quant.Statistics, c *community) {
	for kind, cells := range cellsOf(s) {
		if t.keep.has(family(kind)) {
			*cells = t.read(c, family(kind))
		}
	}
	if !t.keep.Means {
		s.OwnCovariance = covariance(c, s.Soft.P)
	}
}

// cellsOf returns the fields of the statistics for the cells of each kind.
func cellsOf(s *quant.Statistics) [whole]**quant.Cells {
	return [whole]**quant.Cells{&s.Soft, &s.SoftPair, &s.Hard, &s.HardPair}
}

// base returns the statistics that do not depend on kernels.
func (t *Tallies) base(id CommunityID) *quant.Statistics {
	c := t.each[id]
	counts := appendCounts(appendCounts(make([]float64, 0, 2*t.classes), c.anchored), t.classN)
	return &quant.Statistics{
		K:       t.classes,
		Members: float64(c.members), Labelled: float64(c.labelled),
		Profiled: float64(c.profiled), Squares: c.squared(), KernelSum: t.KernelSum(id),
		Anchored: counts[:t.classes:t.classes], ClassN: counts[t.classes:],
	}
}

// read copies one family's sums as quant wants them: means for P, row-major
// matrices of cells by classes.
func (t *Tallies) read(c *community, kind family) *quant.Cells {
	k, z := t.classes, kind.cells(t.classes)
	cells := &quant.Cells{Z: z, P: make([]float64, z)}
	if c.profiled > 0 {
		for i := range cells.P {
			cells.P[i] = c.p[kind][i].Float() / float64(c.profiled)
		}
	}
	if t.keep.Means {
		return cells
	}
	block, unit := make([]float64, 3*z*k), 1/c.scale
	for _, matrix := range []struct {
		dst  *[]float64
		src  []Sum
		unit float64
	}{{&cells.N, t.n[kind], 1}, {&cells.A1, c.a1[kind], unit}, {&cells.A2, c.a2[kind], unit * unit}} {
		*matrix.dst = block[: z*k : z*k]
		block = block[z*k:]
		for i := range k {
			for j := range z {
				(*matrix.dst)[j*k+i] = matrix.src[i*z+j].Float() * matrix.unit
			}
		}
	}
	if t.decay != nil {
		t.ageCells(cells, c, kind)
	}
	return cells
}

// covariance returns the K x K covariance of the own predictions of the members, whose mean is p.
func covariance(c *community, p []float64) []float64 {
	k := len(p)
	cov := make([]float64, k*k)
	if c.profiled == 0 {
		return cov
	}
	for i := range k {
		for j := range k {
			cov[i*k+j] = c.ownSquare[i*k+j].Float()/float64(c.profiled) - float64(p[i]*p[j])
		}
	}
	return cov
}

func (t *Tallies) visitRows(c *community, view graphstore.View, sums *neighborhood.Sums, visit func(quant.Row)) {
	own, neighbors := make([]float64, t.classes), make([]float64, 0, t.classes)
	scale := 0.0
	if t.decay != nil {
		scale = t.decay.scale()
	}
	for _, v := range t.rows.order {
		s := stateOf(view, sums, v)
		g := float64(scale * t.gains(s.time).one)
		if t.decay != nil && g == 0 {
			continue
		}
		ownMean(own, s.profile.own)
		neighbors = s.profile.neighborMean(neighbors[:0])
		a := c.a[t.rows.slot[v]] / c.scale
		visit(quant.Row{Class: int(s.label.Class), A: a, G: g, Own: own, Neighbors: neighbors})
	}
}

// LabelGains reads the factor g of a calibration row's age, and returns by what the factors are
// scaled so that they sum to the effective number of labels. Without a half-life both are one.
func (t *Tallies) LabelGains(view graphstore.View) (gain func(Vertex) float64, scale float64) {
	if t.decay == nil {
		return func(Vertex) float64 { return 1 }, 1
	}
	return func(v Vertex) float64 { return t.gains(view.LabelTime(v)).one }, t.decay.scale()
}

// LabelWeights returns the weight of a calibration row by its age: one without a half-life.
func (t *Tallies) LabelWeights(view graphstore.View) func(Vertex) float64 {
	gain, scale := t.LabelGains(view)
	return func(v Vertex) float64 { return float64(scale * gain(v)) }
}

// ModelVersion returns the model version that most of the profiled members have (the lowest index
// on ties), or none if there is no such member, and whether there are others.
func (t *Tallies) ModelVersion(id CommunityID, none uint32) (version uint32, mixed bool) {
	var most, seen uint64
	version = none
	for i, count := range t.each[id].versions {
		if count > most {
			most, version = count, uint32(i)
		}
		seen += count
	}
	return version, seen > most
}

func appendCounts(dst []float64, src []uint64) []float64 {
	for _, x := range src {
		dst = append(dst, float64(x))
	}
	return dst
}
