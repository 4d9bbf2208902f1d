package tally

import (
	"math"
	"math/bits"

	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// turnedWhole is a member that is another one now: it came, or went, or its profile has
// nothing in common with the one before. Parts of a member are counted in 1/turnedWhole.
const turnedWhole = 1 << 12

// Progress counts the changes of a community since it was last estimated.
type Progress struct {
	Moved  bool   `json:"moved"`  // some statistic of it may have changed
	Joined uint64 `json:"joined"` // squared multiplicities of profiled members that came or changed, times turnedWhole
	Left   uint64 `json:"left"`   // of those that went or changed; both end at 2^64-1, which stands for all members
}

// turn counts one member whose squared multiplicities were and are the given ones. One
// that stays counts by as much of it as is another one now.
func (p *Progress) turn(before, after, turned uint64) {
	if before != after {
		turned = turnedWhole
	}
	add(&p.Left, before, turned)
	add(&p.Joined, after, turned)
}

// add is total += square * turned, or the largest number there is.
func add(total *uint64, square, turned uint64) {
	over, product := bits.Mul64(square, turned)
	sum, carry := bits.Add64(*total, product, 0)
	if over > 0 || carry > 0 {
		sum = math.MaxUint64
	}
	*total = sum
}

// turned returns the part of a member that counts as replaced when its profile goes from one
// state to the other, in 1/turnedWhole, rounded up: the square of the distance in
// variation of the two profiles, that is of the share of a profile that moves.
//
// That share moves as if it were drawn anew, so what an estimate reads of the member
// moves by so much of the difference of two members, and its square by the square. A
// prediction that flips counts 1, as a member that goes and one that comes; a neighbour
// more among ten, which moves a tenth of the neighbours' mean, counts at most 1/100.
// Most members change in that way all the time while edges come and go.
func (f Families) turned(before, after *state) uint64 {
	a, b := &before.profile, &after.profile
	if a.own == nil || b.own == nil || before.version != after.version {
		return turnedWhole
	}
	if (f.Hard || f.HardPair) && neighborhood.HardClass(a.own) != neighborhood.HardClass(b.own) {
		return turnedWhole
	}
	moved := 0.0
	for j, unit := range a.own {
		moved += math.Abs(float64(unit)-float64(b.own[j])) / (2 * event.One)
	}
	if f.HardPair {
		was, voted := a.votes.Majority()
		is, votes := b.votes.Majority()
		if was != is || voted != votes {
			return turnedWhole
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
	return uint64(math.Ceil(moved * moved * turnedWhole))
}

// Turnover counts the differences between the profiled members of the community and those of
// its last estimate, for quant.SEChange.
func (t *Tallies) Turnover(id CommunityID) quant.Turnover {
	c := t.each[id]
	all := c.squared()
	whole := func(parts uint64) float64 {
		if parts == math.MaxUint64 {
			return max(all, math.MaxUint64/turnedWhole)
		}
		return float64(parts) / turnedWhole
	}
	joined := whole(c.progress.Joined)
	return quant.Turnover{Stayed: max(0, all-joined), Joined: joined, Left: whole(c.progress.Left)}
}
