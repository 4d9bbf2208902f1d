package tally

import (
	"math"

	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// turnedParts divides a member: what counts of it as another one is a multiple of one part in
// turnedParts, so that sums of them are exact.
const turnedParts = 1 << 12

// Progress counts the changes of a community since it was last estimated.
type Progress struct {
	Moved  bool    `json:"moved"`  // some statistic of it may have changed
	Joined float64 `json:"joined"` // squared multiplicities of profiled members that came or changed
	Left   float64 `json:"left"`   // of those that went or changed
}

// turn counts one member whose squared multiplicities were and are the given ones. One
// that stays counts by as much of it as is another one now.
func (p *Progress) turn(before, after, turned float64) {
	if before != after {
		turned = 1
	}
	p.Left += float64(before * turned)
	p.Joined += float64(after * turned)
}

// turned returns the part of a member that counts as replaced when its profile goes from one
// state to the other, in parts, rounded up: the square of the distance in
// variation of the two profiles, that is of the share of a profile that moves.
//
// That share moves as if it were drawn anew, so what an estimate reads of the member
// moves by so much of the difference of two members, and its square by the square. A
// prediction that flips counts 1, as a member that goes and one that comes; a neighbour
// more among ten, which moves a tenth of the neighbours' mean, counts at most 1/100.
// Most members change in that way all the time while edges come and go.
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
		var room [2][64]float64
		was, is := a.neighborMean(room[0][:0]), b.neighborMean(room[1][:0])
		for i, n := range was {
			moved += math.Abs(n-is[i]) / 2
		}
	}
	moved = min(moved, 1)
	return math.Ceil(moved*moved*turnedParts) / turnedParts
}

// Turnover counts the differences between the profiled members of the community and those of
// its last estimate, for quant.SEChange.
func (t *Tallies) Turnover(id CommunityID) quant.Turnover {
	c := t.each[id]
	p := c.progress
	return quant.Turnover{Stayed: max(0, c.squared()-p.Joined), Joined: p.Joined, Left: p.Left}
}
