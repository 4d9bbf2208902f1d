package tally

import (
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// momentsMax bounds the second moments by pairs of cells that exact variances take,
// K Z^2 numbers a community: five classes through pairs of own and neighbours. Above
// it, and where labels age, the diagonal stand-in is used.
const momentsMax = 4096

// Spread describes the kernel mass of a community over the calibration labels when it was last
// solved for. It keeps sums by cell: the masses of a hundred thousand labels in ten thousand
// communities would be eight gigabytes.
type Spread struct {
	Position  event.Position
	Time      event.Time
	Churn     float64   // multiplicity of the sources that joined or left since
	Stale     bool      // the labels, or the masses of their classes, are a tenth others; as last read
	N, A1, A2 []float64 // by cell, at that time
	N2, G2A   []float64 // likewise the sums of g² phi and of g² a phi; none without a half-life
	B1, B2    []float64 // K x Z x Z over the soft side: sums of a phi phi' and a^2 phi phi'; or none
}

// Spread returns the spread of a community, nil before its first Refresh. It is read-only.
func (t *Tallies) Spread(id CommunityID) *Spread { return t.each[id].spread }

// SetSpread overwrites it, as at a restart; the tallies keep it. It reports whether s
// is one of these tallies.
func (t *Tallies) SetSpread(id CommunityID, s *Spread) bool {
	l := t.cellFunctions()
	aged, pairs := 0, len(t.outer)
	if t.keep.ClassMasses {
		pairs = 0
	}
	if t.decay != nil {
		aged = l
	}
	if s != nil && (len(s.N) != l || len(s.A1) != l || len(s.A2) != l || len(s.N2) != aged || len(s.G2A) != aged ||
		len(s.B1) != pairs || len(s.B2) != pairs) {
		return false
	}
	t.each[id].spread = s
	return true
}

// Refresh counts the second moments of one community from the masses of a kernel that
// was solved for the present graph. It may run for several communities side by side.
func (t *Tallies) Refresh(id CommunityID, view graphstore.View, sums *neighborhood.Sums, mass Mass, at event.Position, now event.Time) {
	s := t.weigh(view, sums, mass, len(t.outer) > 0 && !t.keep.ClassMasses)
	s.Position, s.Time = at, now
	t.each[id].spread = s
}

// weigh counts the masses of a kernel over the calibration rows by cell, and by pairs of cells if these are asked for.
func (t *Tallies) weigh(view graphstore.View, sums *neighborhood.Sums, mass Mass, pairs bool) *Spread {
	l := t.cellFunctions()
	block := make([]float64, 3*l)
	s := &Spread{N: block[:l:l], A1: block[l : 2*l : 2*l], A2: block[2*l:]}
	if t.decay != nil {
		s.N2, s.G2A = make([]float64, l), make([]float64, l)
	}
	if pairs {
		s.B1, s.B2 = make([]float64, len(t.outer)), make([]float64, len(t.outer))
	}
	cells := make([]float64, l)
	for _, v := range t.rows {
		class, a, g := int(view.Label(v).Class), mass(v), t.gains(view.LabelTime(v))
		var p profile
		if !t.keep.ClassMasses { // else nobody reads cells
			p = profile{own: view.Prediction(v), votes: sums.Votes(v)}
		}
		for _, side := range t.sides {
			phi := p.phi(cells, side.kind)
			s.add(side.at+class*side.z, phi, a, g)
			if pairs && side.kind == t.soft.kind {
				addOuter(s.B1[class*len(phi)*len(phi):], a, phi)
				addOuter(s.B2[class*len(phi)*len(phi):], a*a, phi)
			}
		}
	}
	return s
}

// LabelsReached returns the mass of all calibration rows, each weighted by its age.
func (t *Tallies) LabelsReached(view graphstore.View, mass Mass) (sum float64) {
	for _, v := range t.rows {
		sum += float64(t.gains(view.LabelTime(v)).one * mass(v))
	}
	return sum
}

// Calibrates reports whether a vertex is a calibration row, whose masses statistics read.
func (t *Tallies) Calibrates(v Vertex) bool {
	_, is := slices.BinarySearch(t.rows, v)
	return is
}

// Sketchable reports whether RefreshSketched gives all that is read of second moments.
func (t *Tallies) Sketchable() bool { return t.keep.Means && t.keep.ClassMasses && t.decay == nil }

// RefreshSketched takes the second moments of one community from the first ones, which a dual gives, and for each class the
// sum of (a - mean of a)² over its labels.
func (t *Tallies) RefreshSketched(id CommunityID, view graphstore.View, dual *diffusion.Dual, apart []float64, at event.Position, now event.Time) {
	block, k := make([]float64, 2*t.classes), t.classes
	a1, _ := t.firstMoments(id, view, dual)
	s := &Spread{Position: at, Time: now, N: block[:k:k], A1: a1, A2: block[k:]}
	for i, a := range a1 {
		if n := float64(t.classN[i]); n > 0 {
			s.N[i], s.A2[i] = n, a*a/n+apart[i]
		}
	}
	t.each[id].spread = s
}

// add counts one label of mass a whose cells begin at the given place.
func (s *Spread) add(at int, cells []float64, a float64, g gains) {
	for i, phi := range cells {
		s.N[at+i] += float64(g.one * phi)
		s.A1[at+i] += float64(g.one * float64(a*phi))
		s.A2[at+i] += float64(g.square * float64(a*a*phi))
	}
	if s.N2 == nil {
		return
	}
	for i, phi := range cells {
		s.N2[at+i] += float64(g.square * phi)
		s.G2A[at+i] += float64(g.square * float64(a*phi))
	}
}

// addOuter adds weight x x' to the first len(x)^2 numbers of dst.
func addOuter(dst []float64, weight float64, x []float64) {
	for i, a := range x {
		row := dst[i*len(x):][:len(x)]
		for j, b := range x {
			row[j] += float64(weight * a * b)
		}
	}
}

// kernelMoments are the sums over the labels, weighted by the kernel of a community, by cell.
type kernelMoments struct {
	a1, a2 []float64
	g2a    []float64 // nil without a half-life
}

// staleShare is the share of the labels, and of their mass, that must lie elsewhere for the
// spread to be counted anew.
const staleShare = 0.1

// markStale notes in the spread whether it is out of date for masses by cell of now.
func (t *Tallies) markStale(s *Spread, a1 []float64) {
	if s == nil || s.Stale {
		return
	}
	var mass, moved, labels, renewed float64
	side := t.sides[0]
	for at, then := range s.A1[:t.classes*side.z] {
		mass, moved = mass+then, moved+math.Abs(a1[at]-then)
		labels, renewed = labels+s.N[at], renewed+math.Abs(t.n[side.kind][at].Float()-s.N[at])
	}
	s.Stale = moved > staleShare*mass || renewed > staleShare*labels
}

// secondMoments returns A1 with A2, and G2A where labels age. What it keeps of the last
// Refresh is the relative spread of the mass in a cell,
//
//	A2 N² / (A1² N2) = A2' N'² / (A1'² N2')      G2A N / (A1 N2) = G2A' N' / (A1' N2'),
//
// N2 the sum of g² phi, which is N without a half-life. Both are one where all labels weigh
// the same for the community, and a landmark that moves changes neither, for it multiplies g
// by one factor. Level and support are those of now. What has never been refreshed is taken as
// if one label had all the mass of its class, the most that A2 can be; and by Cauchy and
// Schwarz G2A² is at most A2 N2.
func (t *Tallies) secondMoments(s *Spread, a1 []float64) kernelMoments {
	m := kernelMoments{a1: a1, a2: make([]float64, len(a1))}
	if t.decay != nil {
		m.g2a = make([]float64, len(a1))
	}
	for _, side := range t.sides {
		for i := range t.classes {
			c := classSpread{s: s, from: side.at + i*side.z, to: side.at + (i+1)*side.z}
			for _, x := range a1[c.from:c.to] {
				c.all += x
			}
			for at := c.from; at < c.to; at++ {
				n := t.n[side.kind][at-side.at].Float()
				n2, labels := n, n
				if t.decay != nil {
					n2, labels = t.decay.n2[side.kind][at-side.at].Float(), float64(t.classN[i])
				}
				m.a2[at] = c.second(at, a1[at], n, n2, labels)
				if t.decay != nil {
					m.g2a[at] = c.mixed(at, a1[at], m.a2[at], n, n2)
				}
			}
		}
	}
	return m
}

// classSpread is the spread of one class, whose cells are from to to.
type classSpread struct {
	s        *Spread // nil before the first Refresh
	from, to int
	all      float64 // the sum of A1 over the cells, now
}

// second returns A2 of one cell. No effective number of labels may exceed the number of labels.
func (c *classSpread) second(at int, a1, n, n2, labels float64) float64 {
	most := a1 * c.all
	if c.s == nil || !(n > 0) || !(a1 > 0) {
		return most
	}
	relative := c.s.relativeSpread(at, at+1)
	if !(relative > 0) { // nothing was there: as in the rest of the class
		relative = c.s.relativeSpread(c.from, c.to)
	}
	if !(relative > 0) {
		return most
	}
	level := a1 * a1 / n
	if c.s.N2 != nil {
		level *= n2 / n
	}
	return max(a1*a1/labels, min(most, level*relative))
}

// mixed returns G2A of one cell.
func (c *classSpread) mixed(at int, a1, a2, n, n2 float64) float64 {
	most := math.Sqrt(a2 * n2)
	if c.s == nil || !(n > 0) || !(c.s.A1[at] > 0) || !(c.s.N2[at] > 0) {
		return most
	}
	relative := c.s.G2A[at] / c.s.N2[at] * (c.s.N[at] / c.s.A1[at])
	return min(most, a1*n2/n*relative)
}

// relativeSpread returns A2 N² / (A1² N2) of some cells together, 0 where there is no mass.
func (s *Spread) relativeSpread(from, to int) float64 {
	var n, n2, a1, a2 float64
	for at := from; at < to; at++ {
		n, a1, a2 = n+s.N[at], a1+s.A1[at], a2+s.A2[at]
		if s.N2 != nil {
			n2 += s.N2[at]
		}
	}
	if !(a1 > 0) || math.IsInf(n/a1, 1) {
		return 0
	}
	relative := a2 / a1 * (n / a1)
	if s.N2 != nil && n2 > 0 {
		relative *= n / n2
	}
	return relative
}

// moments returns the second moments that exact variances need. Those by pairs of cells
// of the last Refresh are brought to the level of A1 and A2 as their cells were: rows
// and columns by the same factor, which keeps them covariances. Masses by class have none.
func (t *Tallies) moments(id CommunityID, a1, a2 []float64) *quant.Moments {
	c, z := t.each[id], t.soft.z
	size := t.classes * z * z
	block := make([]float64, 3*size+2*z)
	m := &quant.Moments{
		Z: z, N: block[:size], A1: block[size : 2*size], A2: block[2*size : 3*size],
	}
	for at := range m.N {
		of, a, b := at/(z*z), at/z%z, at%z
		m.N[at] = t.outer[(of*z+max(a, b))*z+min(a, b)].Float()
	}
	if t.keep.ClassMasses {
		return m
	}
	f1, f2 := block[3*size:][:z], block[3*size+z:]
	for i := range t.classes {
		for j := range z {
			at := i*z + j
			f1[j], f2[j] = rootRatio(a1[at], c.spread.A1[at]), rootRatio(a2[at], c.spread.A2[at])
		}
		for a := range z {
			for b := range z {
				at := (i*z+a)*z + b
				m.A1[at] = f1[a] * f1[b] * c.spread.B1[at]
				m.A2[at] = f2[a] * f2[b] * c.spread.B2[at]
			}
		}
	}
	return m
}

func rootRatio(now, then float64) float64 {
	if !(then > 0) {
		return 0
	}
	return math.Sqrt(now / then)
}
