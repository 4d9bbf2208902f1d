package tally

import (
	"math"
	"slices"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Spread has the variation of the kernel of a community over the labels of each class, for use with
// a dual: the results of the last SketchRounds sketches of each class.
type Spread struct {
	Time event.Time // of the last sketch
	// K x SketchRounds: sum g² (a - mean of a)² over that of g² (mean of a)²; negative before the
	// first sketch
	Uneven []float64
}

// SketchRounds is the number of sketches of a class with different signs. Then the same signs
// return, so that the error of an estimate stays the same, and an estimate does not change where
// nothing changes.
const SketchRounds = 4

// unevenMoved is the part of A2 above which a change by a sketch counts as a change of the
// community.
const unevenMoved = 0.01

// Spread returns the spread of a community, nil before its first sketch. It is read-only.
func (t *Tallies) Spread(id CommunityID) *Spread { return t.each[id].spread }

// SetSpread overwrites it, as at a restart; the tallies keep it. It reports whether s
// is one of these tallies.
func (t *Tallies) SetSpread(id CommunityID, s *Spread) bool {
	t.each[id].spread = s
	return s == nil || len(s.Uneven) == t.classes*SketchRounds
}

// Signs returns the functions of a sketch. Its number selects the class, in turn. Each function is,
// at each label of that class, a random sign times the label's weight g, minus a constant that
// makes the sum over the labels zero for equal masses. Signs also returns the sum of g². There are
// no functions if no label of the class has weight.
func (t *Tallies) Signs(
	view graphstore.View,
	sketch uint64,
	functions int,
) (at []Vertex, f []float64, n2 float64) {
	class := t.sketched(sketch)
	n, n2 := t.labelsOf(class)
	if n == 0 {
		return nil, nil, 0
	}
	var gains []float64
	for _, v := range t.rows {
		if int(view.Label(v).Class) == class {
			at, gains = append(at, v), append(gains, t.gain(view, v))
		}
	}
	f = make([]float64, len(at)*functions)
	sketch %= uint64(t.classes * SketchRounds)
	for i := range functions {
		sum := 0.0
		for j, v := range at {
			x := gains[j] * signOf(v, sketch*uint64(functions)+uint64(i))
			f[j*functions+i] = x
			sum += x
		}
		for j, g := range gains {
			f[j*functions+i] -= float64(g * g * (sum / n2))
		}
	}
	return at, f, n2
}

// sketched returns the class of a sketch.
func (t *Tallies) sketched(sketch uint64) int { return int(sketch % uint64(t.classes)) }

// signOf returns 1 or -1, by a hash (splitmix64) of a vertex and a function.
func signOf(v Vertex, function uint64) float64 {
	x := (uint64(v) ^ function<<32) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return 1 - 2*float64(x>>63)
}

// Sketch adds the result of a sketch for one community: the sums over its sources of the solutions
// for the functions of Signs, and the sum of g² of their labels. The mean mass of the labels is
// that of the first moments, from the dual of classes. Labels that came later are assumed to vary
// as much. The community counts as moved when the first sketch replaces the bound, and when the
// variation changes by more than unevenMoved.
func (t *Tallies) Sketch(
	id CommunityID, view graphstore.View, dual *diffusion.Dual, sums []float64, n2 float64,
	sketch uint64, now event.Time,
) {
	c, class := t.each[id], t.sketched(sketch)
	a1, _ := t.firstMoments(id, dual)
	n, _ := t.labelsOf(class)
	even := a1[class] / n
	if even *= even * n2; !(even > 0) {
		return // none is reached
	}
	if c.spread == nil {
		c.spread = &Spread{Uneven: slices.Repeat([]float64{-1}, t.classes*SketchRounds)}
	}
	uneven := 0.0
	for _, x := range sums {
		uneven += float64(x * x)
	}
	before := c.spread.uneven(class)
	round := int(sketch / uint64(t.classes) % SketchRounds)
	c.spread.Time = now
	c.spread.Uneven[class*SketchRounds+round] = uneven / float64(len(sums)) / even
	if math.IsInf(before, 1) && !c.spread.Bounds(a1) ||
		math.Abs(c.spread.uneven(class)-before) > unevenMoved*(1+before) {
		t.Touch(id)
	}
}

// Bounds reports whether the upper bound replaces the second moment of a class: before its first
// sketch, if the community reaches labels of it by these first moments.
func (s *Spread) Bounds(a1 []float64) bool {
	for i, a := range a1 {
		if a*a > 0 && math.IsInf(s.uneven(i), 1) { // else no sketch can say anything
			return true
		}
	}
	return false
}

// uneven returns the variation of the masses of a class from its sketches, infinite before the
// first one.
func (s *Spread) uneven(class int) float64 {
	if s == nil {
		return math.Inf(1)
	}
	sum, n := 0.0, 0.0
	for _, x := range s.Uneven[class*SketchRounds:][:SketchRounds] {
		if x >= 0 {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return math.Inf(1)
	}
	return sum / n
}

// labelsOf returns the sums of g and of g² over the labels of a class.
func (t *Tallies) labelsOf(class int) (n, n2 float64) {
	counts := t.counts()[whole]
	return counts.A1[class], counts.A2[class]
}

// masses are sums over the calibration rows at the masses of a kernel, by cell and class.
type masses struct {
	A1, A2 []float64 // of g a phi and g² a² phi
	G2A    []float64 // of g² a phi; none without a half-life
}

func (t *Tallies) newMasses(cells int) masses {
	m := masses{A1: make([]float64, cells), A2: make([]float64, cells)}
	if t.keep.HalfLife > 0 {
		m.G2A = make([]float64, cells)
	}
	return m
}

// countRows marks the rows for a recount at the next read, which comes before the next change.
func (t *Tallies) countRows(view graphstore.View, sums *neighborhood.Sums) {
	t.counts = sync.OnceValue(func() [families]masses {
		return t.weighAll(view, sums, func(Vertex) float64 { return 1 }, t.keep.Means)
	})
}

// weighAll counts the masses of a kernel by all kinds of cells, or of whole classes alone.
func (t *Tallies) weighAll(
	view graphstore.View, sums *neighborhood.Sums, mass Mass, classes bool,
) (m [families]masses) {
	for kind := range family(families) {
		if t.keep.has(kind) && (kind == whole || !classes) {
			m[kind] = t.weigh(view, sums, mass, kind)
		}
	}
	return m
}

// weigh counts the masses of a kernel over the calibration rows by cell. Whole classes take no
// sums.
func (t *Tallies) weigh(
	view graphstore.View, sums *neighborhood.Sums, mass Mass, kind family,
) masses {
	cells := make([]float64, kind.cells(t.classes))
	m := t.newMasses(len(cells) * t.classes)
	for _, v := range t.rows {
		p := t.then(view, sums, v)
		class, a, g := int(view.Label(v).Class), mass(v), t.gain(view, v)
		for i, phi := range p.phi(cells, kind) {
			at := i*t.classes + class
			m.A1[at] += float64(g * float64(a*phi))
			m.A2[at] += float64(float64(g*g) * float64(a*a*phi))
			if m.G2A != nil {
				m.G2A[at] += float64(float64(g*g) * float64(a*phi))
			}
		}
	}
	return m
}

// LabelsReached returns the mass of all calibration rows, each weighted by its age.
func (t *Tallies) LabelsReached(view graphstore.View, mass Mass) (sum float64) {
	for _, v := range t.rows {
		sum += float64(t.gain(view, v) * mass(v))
	}
	return sum
}

// Calibrates reports whether a vertex is a calibration row; statistics read its masses.
func (t *Tallies) Calibrates(v Vertex) bool {
	_, is := slices.BinarySearch(t.rows, v)
	return is
}

// secondMoments returns A1 with A2, and G2A where labels age, under the assumption that age and
// mass are independent. A2 is that of labels of equal mass at the present mean, enlarged by the
// variation from sketches. Before the first sketch of a class, A2 has its largest possible value:
// one label has all the mass of the class.
func (t *Tallies) secondMoments(s *Spread, a1 []float64) masses {
	m := t.newMasses(t.classes)
	copy(m.A1, a1)
	for i, a := range a1 {
		n, n2 := t.labelsOf(i)
		if !(n > 0) {
			continue
		}
		if m.G2A != nil {
			m.G2A[i] = a / n * n2
		}
		if even := a / n * (a / n * n2); even > 0 {
			m.A2[i] = max(even, min(a*a, even*(1+s.uneven(i))))
		}
	}
	return m
}
