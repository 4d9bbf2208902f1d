package tally

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/quant/stats"
)

// Members returns the total multiplicity of the community.
func (t *Tallies) Members(id CommunityID) float64 { return float64(t.each[id].members) }

// Vertices returns the number of different members of the community.
func (t *Tallies) Vertices(id CommunityID, view graphstore.View) int {
	vertices, _ := view.Members(id)
	return len(vertices)
}

// Known counts the different members of a community that have a label or a prediction. Sum and
// Squares are of their multiplicities.
type Known struct {
	People       int
	Sum, Squares float64
}

// Effective returns how many members of equal multiplicity would weigh as evenly: (sum m)²/(sum
// m²). If it is 4 or more, nobody weighs more than half.
func (k Known) Effective() float64 {
	if k.Squares == 0 {
		return 0
	}
	return k.Sum * k.Sum / k.Squares
}

// Known returns the count of the community's members that have a label or a prediction.
func (t *Tallies) Known(id CommunityID) Known {
	c := t.each[id]
	sum := c.labelled
	for _, n := range c.versions {
		sum += n
	}
	return Known{
		People: int(c.known), Sum: float64(sum),
		Squares: c.knownSquares.Float() / squareScale,
	}
}

// KernelSum returns M, the total multiplicity of the kernel's sources.
func (t *Tallies) KernelSum(id CommunityID) float64 {
	return float64(t.each[id].members - t.each[id].labelled)
}

// Turnover counts the differences between the profiled members of the community and those of
// its last record, for quant.SEChange.
func (t *Tallies) Turnover(id CommunityID) stats.Turnover {
	c := t.each[id]
	p := c.progress
	return stats.Turnover{Stayed: max(0, c.squared()-p.Joined), Joined: p.Joined, Left: p.Left}
}

// Mass reads the kernel mass a(v) of one community, at least 0.
type Mass func(v Vertex) float64

// Statistics returns the statistics of one community, the caller's to keep, with the masses of
// its kernel at all calibration rows. exact adds the pass over them that exact variances need; it
// reads view, sums and masses when called, which must be as in the last Update.
func (t *Tallies) Statistics(
	id CommunityID, view graphstore.View, sums *neighborhood.Sums, mass Mass, exact bool,
) *stats.Statistics {
	s := t.statistics(id, t.weighAll(view, sums, mass, t.keep.ClassMasses))
	if exact && !t.keep.Means {
		s.Rows = func(visit func(stats.Row)) { t.visitRows(view, sums, mass, visit) }
	}
	return s
}

// statistics returns the statistics of one community, given the masses of its kernel by kind of
// cells.
func (t *Tallies) statistics(id CommunityID, m [families]masses) *stats.Statistics {
	c := t.each[id]
	s := &stats.Statistics{
		K: t.classes, Members: float64(c.members), Profiled: c.predicted(),
		Squares: c.squared(), KernelSum: t.KernelSum(id), Anchored: make([]float64, t.classes),
		ClassN:  slices.Clone(t.counts()[whole].A1),
		ClassA1: m[whole].A1, ClassA2: m[whole].A2, Audit: c.audits(),
	}
	for i, n := range c.anchored {
		s.Anchored[i] = float64(n) / pairs.Whole
		s.Labelled += s.Anchored[i]
	}
	for kind, cells := range cellsOf(s) {
		if t.keep.has(family(kind)) {
			*cells = t.read(c, family(kind), m[kind])
		}
	}
	if !t.keep.Means {
		s.OwnVariance = variance(c, s.Soft.P)
	}
	if t.keep.HalfLife > 0 {
		s.ClassG2A = m[whole].G2A
		t.scaleToEffective(s)
	}
	return s
}

// cellsOf returns the fields of the statistics for the cells of each kind.
func cellsOf(s *stats.Statistics) [whole]**stats.Cells {
	return [whole]**stats.Cells{&s.Soft, &s.SoftPair, &s.Hard, &s.HardPair}
}

// read returns one kind's cells with the mean for P and the sums for N, as a matrix of cells by
// classes. Masses that nobody reads are zero.
func (t *Tallies) read(c *community, kind family, m masses) *stats.Cells {
	z := kind.cells(t.classes)
	cells := &stats.Cells{Z: z, P: make([]float64, z)}
	if c.profiled > 0 {
		for i := range cells.P {
			cells.P[i] = c.p[kind][i].Float() / c.predicted()
		}
	}
	if t.keep.Means {
		return cells
	}
	if m.A1 == nil {
		m = t.newMasses(z * t.classes)
	}
	counts := t.counts()[kind]
	cells.N, cells.A1, cells.A2, cells.G2A = slices.Clone(counts.A1), m.A1, m.A2, m.G2A
	if t.keep.HalfLife > 0 {
		cells.G2 = slices.Clone(counts.A2)
	}
	return cells
}

// variance returns the K variances of the own predictions of the members, given their mean p.
func variance(c *community, p []float64) []float64 {
	v := make([]float64, len(p))
	if c.profiled == 0 {
		return v
	}
	for i, x := range p {
		v[i] = c.ownSquare[i].Float()/c.predicted() - float64(x*x)
	}
	return v
}

func (t *Tallies) visitRows(
	view graphstore.View, sums *neighborhood.Sums, mass Mass, visit func(stats.Row),
) {
	own, neighbors := make([]float64, t.classes), make([]float64, 0, t.classes)
	weight := t.LabelWeights(view)
	for _, v := range t.rows {
		g := weight(v)
		if g == 0 {
			continue
		}
		then := t.then(view, sums, v)
		ownMean(own, then.own)
		neighbors = then.neighborMean(neighbors[:0])
		visit(
			stats.Row{
				Class:     int(view.Label(v).Class),
				A:         mass(v),
				G:         g,
				Own:       own,
				Neighbors: neighbors,
			},
		)
	}
}

// then returns the profile that the label of a calibration row is paired with.
func (t *Tallies) then(view graphstore.View, sums *neighborhood.Sums, v Vertex) profile {
	return profile{own: t.pairs.Prediction(view, v), votes: t.pairs.Votes(sums, v)}
}

// LabelGains reads the factor g of a calibration row's age, and returns the scale by which the
// factors sum to the effective number of labels. Without a half-life both are one.
func (t *Tallies) LabelGains(view graphstore.View) (gain func(Vertex) float64, scale float64) {
	return func(v Vertex) float64 { return t.gain(view, v) }, t.scale()
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
