package posterior

import (
	"maps"
	"math/bits"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
)

// contribution is how a vertex counts in the communities that it is an open member of.
type contribution struct {
	cell uint16 // 1 + its cell; 0: it is not counted
	top  uint16 // the class that its prediction is for
	open uint16 // one minus the freshness of its label, in units of 1/pairs.Whole
	mass uint16 // of its prediction, in units of 1/massWhole; see massOf
}

// massWhole is the mass of a recent prediction; see graphstore.View.MassUnits.
const massWhole = graphstore.MassWhole

// weight returns by how much a member of this multiplicity counts, in units of 1/unit.
func (k contribution) weight(multiplicity uint32) uint64 {
	if k.cell == 0 {
		return 0
	}
	return uint64(multiplicity) * uint64(k.mass) * uint64(k.open)
}

// unit is one member in the counts of cells.
const unit = pairs.Whole * massWhole

// Histogram counts the open members of a community in each cell. All counts are integers, of
// members with their multiplicities, so that after any history they equal a recount. A member with
// a label counts with one minus the freshness of the label. Every member counts with the mass of
// its prediction, so members with recent posts represent the others.
type Histogram struct {
	cells []uint64 // B, in units of 1/unit, as the others
	tops  []uint64 // K: by the class that the prediction is for
	all   []uint64 // B, in units of 1/massWhole: with labels or not
	// F: sums of the members' features, in units of 1/(unit featureUnit), two's complement
	features []uint64
	members  uint64 // the multiplicity of all members with a prediction
	squares  [2]uint64
	// B: by how much labels of neighbours alone changed all; nil: not at all. See Learned
	learned []int64
}

// Cells returns the multiplicities by cell, B.
func (h *Histogram) Cells() []float64 { return wholes(h.cells) }

// All returns the multiplicities of all members with a prediction by cell, B.
func (h *Histogram) All() []float64 {
	list := make([]float64, len(h.all))
	for i, n := range h.all {
		list[i] = float64(n) / massWhole
	}
	return list
}

// Tops returns the multiplicities by the class that the prediction is for, K.
func (h *Histogram) Tops() []float64 { return wholes(h.tops) }

// Squares returns the sum of the squared multiplicities.
func (h *Histogram) Squares() float64 {
	return (float64(h.squares[0])*0x1p64 + float64(h.squares[1])) / (unit * unit)
}

// Recent returns the mean mass of the predictions of all members that have one; 1 where nobody has.
func (h *Histogram) Recent() float64 {
	if h.members == 0 {
		return 1
	}
	mass := uint64(0)
	for _, n := range h.all {
		mass += n
	}
	return float64(mass) / massWhole / float64(h.members)
}

// wholes returns counts in units of 1/unit as numbers.
func wholes(counts []uint64) []float64 {
	list := make([]float64, len(counts))
	for i, n := range counts {
		list[i] = float64(n) / unit
	}
	return list
}

// count adds a member with these features and this multiplicity or, with subtract, takes it away.
func (h *Histogram) count(k contribution, features []int16, multiplicity uint32, subtract bool) {
	if k.cell == 0 {
		return
	}
	whole, carry := uint64(multiplicity)*uint64(k.mass), uint64(0)
	m := whole * uint64(k.open)
	high, low := bits.Mul64(m, m)
	if subtract {
		h.squares[1], carry = bits.Sub64(h.squares[1], low, 0)
		h.squares[0], _ = bits.Sub64(h.squares[0], high, carry)
		h.members -= uint64(multiplicity)
		m, whole = -m, -whole // two's complement
	} else {
		h.squares[1], carry = bits.Add64(h.squares[1], low, 0)
		h.squares[0], _ = bits.Add64(h.squares[0], high, carry)
		h.members += uint64(multiplicity)
	}
	h.cells[k.cell-1] += m
	h.tops[k.top] += m
	h.addFeatures(features, m)
	h.all[k.cell-1] += whole
}

// addFeatures adds the features of a member that counts as much.
func (h *Histogram) addFeatures(features []int16, m uint64) {
	for i, x := range features {
		h.features[i] += uint64(int64(x)) * m
	}
}

// equal reports whether two histograms hold the same counts.
func (h *Histogram) equal(o *Histogram) bool {
	return slices.Equal(h.cells, o.cells) && slices.Equal(h.tops, o.tops) &&
		slices.Equal(h.features, o.features) && slices.Equal(h.all, o.all) &&
		h.squares == o.squares && h.members == o.members
}

// newHistogram returns the histogram of a community without members.
func newHistogram(classes, features int) *Histogram {
	b := cellsOf(classes)
	return &Histogram{
		cells: make([]uint64, b),
		tops:  make([]uint64, classes),
		all:   make([]uint64, b),

		features: make([]uint64, features),
	}
}

// Histogram returns that of a community as of the last Ready or Flush. It is read-only.
func (s *State) Histogram(id graphstore.Community) *Histogram { return s.inside.histograms[id] }

// topOf returns the class that the prediction of a vertex is for.
func topOf(view graphstore.View, v Vertex) uint16 {
	return uint16(neighborhood.HardClass(view.Prediction(v)))
}

// countMembers counts the members of all communities again.
func (s *State) countMembers(view graphstore.View) {
	clear(s.inside.learned)
	for id := range s.inside.histograms {
		h := newHistogram(s.classes, len(s.features.list))
		s.inside.histograms[id] = h
		view.ForMembers(graphstore.Community(id), func(v Vertex, multiplicity uint32) {
			h.count(s.contributions[v], s.features.of(v), multiplicity, false)
		})
	}
}

// countAs replaces the contribution of a vertex to its communities. It returns how far its cell has
// moved, 1 if it had none or has none.
func (s *State) countAs(
	view graphstore.View, v Vertex, now contribution, why causes,
) (moved float64) {
	was := s.contributions[v]
	s.contributions[v] = now
	if was == now {
		return 0
	}
	features := s.features.of(v)
	for _, m := range view.MemberOf(v) {
		h := s.inside.histograms[m.Community]
		h.count(was, features, m.Multiplicity, true)
		h.count(now, features, m.Multiplicity, false)
		if why == byLabels && was.cell > 0 && now.cell > 0 {
			h.learn(int(was.cell)-1, int(now.cell)-1, int64(m.Multiplicity)*int64(now.mass))
			s.inside.learned[m.Community] = struct{}{}
		}
	}
	if was.cell == 0 || now.cell == 0 {
		return 1
	}
	return s.epoch.moved(int(was.cell)-1, int(now.cell)-1, s.classes)
}

// learn notes that a member is in another cell because of labels of its neighbours.
func (h *Histogram) learn(from, to int, multiplicity int64) {
	if h.learned == nil {
		h.learned = make([]int64, len(h.all))
	}
	h.learned[from] -= multiplicity
	h.learned[to] += multiplicity
}

// Learned calls visit for each community, in order, with members that changed their cell since the
// last call only because labels of their neighbours came or went. without is All without these
// changes.
func (s *State) Learned(visit func(id graphstore.Community, without []float64)) {
	for _, id := range slices.Sorted(maps.Keys(s.inside.learned)) {
		h := s.inside.histograms[id]
		without := h.All()
		for z, n := range h.learned {
			without[z] = max(0, without[z]-float64(n)/massWhole)
		}
		h.learned = nil
		visit(id, without)
	}
	clear(s.inside.learned)
}

// move removes a vertex from the histograms of its former communities and adds it to those of its
// present ones, with its present open part. Its features are those of before.
func (n *inside) move(
	was, is []membership, k *contribution, features []int16, open, mass uint16,
) {
	for _, m := range was {
		n.histograms[m.Community].count(*k, features, m.Multiplicity, true)
	}
	if k.cell == 0 {
		return // a vertex without a posterior counts nowhere
	}
	k.open, k.mass = open, mass
	for _, m := range is {
		n.histograms[m.Community].count(*k, features, m.Multiplicity, false)
	}
}

// contributionOf returns how a vertex with this posterior is counted; root is scratch memory.
func (s *State) contributionOf(view graphstore.View, v Vertex, pi, root []float64) contribution {
	return contribution{
		cell: uint16(s.epoch.cell(pi, root)) + 1, top: topOf(view, v),
		open: s.openness(view, v), mass: s.massOf(view, v),
	}
}

// massOf returns the mass of the prediction of v, in units of 1/massWhole.
func (s *State) massOf(view graphstore.View, v Vertex) uint16 {
	return view.MassUnits(view.Evidence(v), s.massesAt)
}

// Age counts every member with the mass that its prediction has at a time. It returns whether a
// mass changed.
func (s *State) Age(view graphstore.View, at event.Time) (changed bool) {
	s.massesAt = at
	for v := range s.contributions {
		as := s.contributions[v]
		if as.cell == 0 {
			continue
		}
		if as.mass = s.massOf(view, Vertex(v)); as != s.contributions[v] {
			s.countAs(view, Vertex(v), as, byNews)
			changed = true
		}
	}
	return changed
}

// openness returns one minus the freshness of the label of v, in units of 1/pairs.Whole; 0 without
// a prediction.
func (s *State) openness(view graphstore.View, v Vertex) uint16 {
	if view.Prediction(v) == nil {
		return 0
	}
	return uint16(pairs.Whole - s.pairs.Fresh(view, v))
}
