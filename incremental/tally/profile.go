package tally

import (
	"math"
	"time"

	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// profile is the view of an estimator on one vertex.
type profile struct {
	own   []uint32           // K units, nil when the vertex has no prediction
	votes neighborhood.Votes // of the neighbours
}

// Families selects the kinds of cells that a tally keeps.
type Families struct {
	SoftPair bool // K^2 cells: own prediction times mean of the neighbours'
	Hard     bool // K cells: own class
	HardPair bool // K^2 cells: own class, majority class of the neighbours

	// ClassMasses: no method reads kernel masses by cell, so they are summed by class only, and A1
	// and A2 of cells are zero.
	ClassMasses bool

	// Means: of cells only the mean of the members' predictions is read: the statistics then have
	// no other cells, and no second moments of cells.
	Means bool

	HalfLife time.Duration // of calibration labels, at most HalfLifeMax; 0: they do not age
}

// family is one kind of cells; the soft own prediction (K cells) and the class itself are always
// kept.
type family uint8

const (
	soft family = iota
	softPair
	hard
	hardPair
	whole    // one cell, the class itself
	families = iota
)

func (f Families) has(kind family) bool {
	return [families]bool{true, f.SoftPair, f.Hard, f.HardPair, true}[kind]
}

func (kind family) cells(classes int) int {
	switch kind {
	case softPair, hardPair:
		return classes * classes
	case whole:
		return 1
	}
	return classes
}

// phi writes the profile's cells of the given kind to the beginning of dst, and returns
// them. Values are a fixed function of the profile's integers, so that a term can be taken
// back exactly.
func (p profile) phi(dst []float64, kind family) []float64 {
	k := len(p.own)
	dst = dst[:kind.cells(k)]
	switch kind {
	case soft:
		ownMean(dst, p.own)
	case softPair:
		var mean [64]float64
		neighbors := p.neighborMean(mean[:0])
		for j, unit := range p.own {
			own := float64(unit) / event.One
			for i, n := range neighbors {
				dst[j*k+i] = own * n
			}
		}
	case hard:
		clear(dst)
		dst[neighborhood.HardClass(p.own)] = 1
	case hardPair:
		clear(dst)
		own := neighborhood.HardClass(p.own)
		majority, voted := p.votes.Majority()
		if !voted {
			majority = own
		}
		dst[int(own)*k+int(majority)] = 1
	case whole:
		dst[0] = 1
	}
	return dst
}

// neighborMean appends the mean prediction of the voting neighbours to dst, or
// the own prediction when there is none.
func (p profile) neighborMean(dst []float64) []float64 {
	if p.votes.Mass == 0 {
		for _, unit := range p.own {
			dst = append(dst, float64(unit)/event.One)
		}
		return dst
	}
	scale := 1 / (float64(p.votes.Mass) * event.One)
	for _, sum := range p.votes.Sum {
		dst = append(dst, float64(sum)*scale)
	}
	return dst
}

func ownMean(dst []float64, own []uint32) {
	for j, unit := range own {
		dst[j] = float64(unit) / event.One
	}
}

// turnedParts is the resolution of the replaced part of a member: parts are multiples of
// 1/turnedParts, so that their sums are exact.
const turnedParts = 1 << 12

// Progress counts the changes of a community since its last record.
type Progress struct {
	Moved bool `json:"moved"` // some statistic of it may have changed
	// squared multiplicities of profiled members that came or changed
	Joined float64 `json:"joined"`
	Left   float64 `json:"left"` // of those that went or changed

	// K, of the plain count of the predictions; nil: it did not move. See Tallies.Counted
	Counted []float64 `json:"counted,omitempty"` // by how many members it moved
	Squares []float64 `json:"squares,omitempty"` // sum of the squares of each member's part
	// the part of Counted from members that joined, left, or were predicted for the first time
	Composition []float64 `json:"composition,omitempty"`
}

// turn counts one change of a member, given its squared multiplicity before and after. A member
// that stays counts with its replaced part.
func (p *Progress) turn(before, after, turned float64) {
	if before != after {
		turned = 1
	}
	p.Left += float64(before * turned)
	p.Joined += float64(after * turned)
}

// turned returns the part of a member that counts as replaced when its profile changes, in parts,
// rounded up. It is the square of the total variation distance of the two profiles.
//
// A profile that moves by the distance d contributes d times the difference of two independent
// members, and d² of its variance. So a prediction that flips counts 1, like a member that leaves
// and another that joins. An additional neighbour among ten moves the neighbours' mean by a tenth
// and counts at most 1/100; such small changes happen all the time while edges change.
func (f Families) turned(before, after *state) float64 {
	a, b := &before.profile, &after.profile
	if a.own == nil || b.own == nil || before.version != after.version {
		return 1
	}
	if (f.Hard || f.HardPair) && neighborhood.HardClass(a.own) != neighborhood.HardClass(b.own) {
		return 1
	}
	moved := 0.0
	for j, unit := range a.own {
		moved += math.Abs(float64(unit)-float64(b.own[j])) / (2 * event.One)
	}
	if f.HardPair {
		was, voted := a.votes.Majority()
		is, votes := b.votes.Majority()
		if was != is || voted != votes {
			return 1
		}
	}
	if f.SoftPair { // the distance of two products is at most the sum
		var buffer [2][64]float64
		was, is := a.neighborMean(buffer[0][:0]), b.neighborMean(buffer[1][:0])
		for i, n := range was {
			moved += math.Abs(n-is[i]) / 2
		}
	}
	moved = min(moved, 1)
	return math.Ceil(moved*moved*turnedParts) / turnedParts
}
