package tally

import (
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Masses are sums over the calibration rows at the masses of a kernel, by class and cell.
type Masses struct {
	N, A1, A2 []float64 // of g phi, g a phi and g² a² phi
	N2, G2A   []float64 // of g² phi and g² a phi; none without a half-life
}

// Spread holds the kernel masses of a community by class when it was last solved for. It keeps sums:
// the masses of a hundred thousand labels in ten thousand communities would be eight gigabytes.
type Spread struct {
	Position event.Position
	Time     event.Time
	Churn    float64 // multiplicity of the sources that joined or left since
	Stale    bool    // the labels, or the masses of their classes, are a tenth others; as last read
	Masses
}

// Spread returns the spread of a community, nil before its first Refresh. It is read-only.
func (t *Tallies) Spread(id CommunityID) *Spread { return t.each[id].spread }

// SetSpread overwrites it, as at a restart; the tallies keep it. It reports whether s
// is one of these tallies.
func (t *Tallies) SetSpread(id CommunityID, s *Spread) bool {
	k, aged := t.classes, 0
	if t.decay != nil {
		aged = k
	}
	if s != nil && (len(s.N) != k || len(s.A1) != k || len(s.A2) != k || len(s.N2) != aged || len(s.G2A) != aged) {
		return false
	}
	t.each[id].spread = s
	return true
}

// Refresh counts the second moments of one community from the masses of a kernel that
// was solved for the present graph. It may run for several communities side by side.
func (t *Tallies) Refresh(id CommunityID, view graphstore.View, mass Mass, at event.Position, now event.Time) {
	t.each[id].spread = &Spread{Position: at, Time: now, Masses: t.weigh(view, nil, mass, whole)}
}

// weigh counts the masses of a kernel over the calibration rows by cell. Whole classes take no sums.
func (t *Tallies) weigh(view graphstore.View, sums *neighborhood.Sums, mass Mass, kind family) (m Masses) {
	l := t.classes * kind.cells(t.classes)
	block := make([]float64, 3*l)
	m.N, m.A1, m.A2 = block[:l:l], block[l:2*l:2*l], block[2*l:]
	if t.decay != nil {
		m.N2, m.G2A = make([]float64, l), make([]float64, l)
	}
	cells := make([]float64, kind.cells(t.classes))
	for _, v := range t.rows {
		p := profile{own: view.Prediction(v)}
		if kind != whole {
			p.votes = sums.Votes(v)
		}
		m.add(int(view.Label(v).Class)*len(cells), p.phi(cells, kind), mass(v), t.gains(view.LabelTime(v)))
	}
	return m
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
func (t *Tallies) Sketchable() bool { return t.keep.Means && t.decay == nil }

// RefreshSketched takes the second moments of one community from the first ones, which a dual gives, and for each class the
// sum of (a - mean of a)² over its labels.
func (t *Tallies) RefreshSketched(id CommunityID, view graphstore.View, dual *diffusion.Dual, apart []float64, at event.Position, now event.Time) {
	block, k := make([]float64, 2*t.classes), t.classes
	a1, _ := t.firstMoments(id, view, dual)
	s := &Spread{Position: at, Time: now, Masses: Masses{N: block[:k:k], A1: a1, A2: block[k:]}}
	for i, a := range a1 {
		if n := float64(t.classN[i]); n > 0 {
			s.N[i], s.A2[i] = n, a*a/n+apart[i]
		}
	}
	t.each[id].spread = s
}

// add counts one label of mass a whose cells begin at the given place.
func (m *Masses) add(at int, cells []float64, a float64, g gains) {
	for i, phi := range cells {
		m.N[at+i] += float64(g.one * phi)
		m.A1[at+i] += float64(g.one * float64(a*phi))
		m.A2[at+i] += float64(g.square * float64(a*a*phi))
	}
	if m.N2 == nil {
		return
	}
	for i, phi := range cells {
		m.N2[at+i] += float64(g.square * phi)
		m.G2A[at+i] += float64(g.square * float64(a*phi))
	}
}

// staleShare is the share of the labels, and of their mass, that must lie elsewhere for the
// spread to be counted anew.
const staleShare = 0.1

// markStale notes in the spread whether it is out of date for masses by class of now.
func (t *Tallies) markStale(s *Spread, a1 []float64) {
	if s == nil || s.Stale {
		return
	}
	var mass, moved, labels, renewed float64
	for i, then := range s.A1 {
		mass, moved = mass+then, moved+math.Abs(a1[i]-then)
		labels, renewed = labels+s.N[i], renewed+math.Abs(t.n[whole][i].Float()-s.N[i])
	}
	s.Stale = moved > staleShare*mass || renewed > staleShare*labels
}

// secondMoments returns A1 with A2, and G2A where labels age. What it keeps of the last
// Refresh is the relative spread of the mass in a class,
//
//	A2 N² / (A1² N2) = A2' N'² / (A1'² N2')      G2A N / (A1 N2) = G2A' N' / (A1' N2'),
//
// N2 the sum of g², which is N without a half-life. Both are one where all labels weigh
// the same for the community, and a landmark that moves changes neither, for it multiplies g
// by one factor. Level and support are those of now. What has never been refreshed is taken as
// if one label had all the mass of its class, the most that A2 can be; and by Cauchy and
// Schwarz G2A² is at most A2 N2. No effective number of labels may exceed the number of labels.
func (t *Tallies) secondMoments(s *Spread, a1 []float64) Masses {
	m := Masses{A1: a1, A2: make([]float64, t.classes)}
	if t.decay != nil {
		m.G2A = make([]float64, t.classes)
	}
	for i, a := range a1 {
		n, n2 := t.n[whole][i].Float(), t.n2[whole][i].Float()
		labels, relative := float64(t.classN[i]), 0.0
		if s != nil && n > 0 && a > 0 {
			relative = s.relativeSpread(i)
		}
		m.A2[i] = a * a
		if relative > 0 {
			m.A2[i] = max(a*a/labels, min(a*a, a*a/n*(n2/n)*relative))
		}
		if t.decay != nil {
			m.G2A[i] = s.mixed(i, a, math.Sqrt(m.A2[i]*n2), n, n2)
		}
	}
	return m
}

// mixed returns G2A of one class, which is at most this.
func (s *Spread) mixed(i int, a1, most, n, n2 float64) float64 {
	if s == nil || !(n > 0) || !(s.A1[i] > 0) || !(s.N2[i] > 0) {
		return most
	}
	relative := s.G2A[i] / s.N2[i] * (s.N[i] / s.A1[i])
	return min(most, a1*n2/n*relative)
}

// relativeSpread returns A2 N² / (A1² N2) of a class, 0 where there is no mass.
func (s *Spread) relativeSpread(i int) float64 {
	n, a1 := s.N[i], s.A1[i]
	if !(a1 > 0) || math.IsInf(n/a1, 1) {
		return 0
	}
	relative := s.A2[i] / a1 * (n / a1)
	if s.N2 != nil && s.N2[i] > 0 {
		relative *= n / s.N2[i]
	}
	return relative
}
