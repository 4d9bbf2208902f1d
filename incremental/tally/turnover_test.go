package tally

import (
	"math"
	"testing"

	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// member is a member's state, with the sum of its neighbours' predictions.
func member(own float64, neighbors int, sum float64) *state {
	units := func(p float64) uint32 { return uint32(p * event.One) }
	return &state{profile: profile{
		own: []uint32{units(own), units(1 - own)},
		votes: neighborhood.Votes{
			Count: uint32(neighbors), Hard: []uint32{uint32(math.Round(sum)), uint32(neighbors) - uint32(math.Round(sum))},
			Sum: []uint64{uint64(sum * event.One), uint64((float64(neighbors) - sum) * event.One)},
		},
	}}
}

// A member counts as another one by the square of the share of its profile that moves.
func TestMembersCountAsOthersByWhatMovesOfThem(t *testing.T) {
	soft, pair := Families{}, Families{SoftPair: true}
	reversion := member(0.7, 10, 6)
	reversion.version = 1
	unknown := member(0.7, 10, 6)
	unknown.profile.own = nil
	for name, c := range map[string]struct {
		keep          Families
		before, after *state
		want          float64
	}{
		"nothing":                   {pair, member(0.7, 10, 6), member(0.7, 10, 6), 0},
		"a flip":                    {pair, member(1, 10, 6), member(0, 10, 6), 1},
		"a tenth of the own":        {pair, member(0.7, 10, 6), member(0.6, 10, 6), 0.01},
		"one of ten neighbours":     {pair, member(0.7, 10, 6), member(0.7, 10, 7), 0.01},
		"one neighbour more":        {pair, member(0.7, 10, 6), member(0.7, 11, 7), math.Pow(7./11-0.6, 2)},
		"both, at most their sum":   {pair, member(0.7, 10, 6), member(0.5, 10, 3), 0.25},
		"neighbours, not looked at": {soft, member(0.7, 10, 6), member(0.7, 10, 1), 0},
		"another model":             {pair, member(0.7, 10, 6), reversion, 1},
		"no prediction before":      {pair, unknown, member(0.7, 10, 6), 1},
		"another hard class":        {Families{Hard: true}, member(0.51, 10, 6), member(0.49, 10, 6), 1},
		"another hard majority":     {Families{HardPair: true}, member(0.7, 10, 6), member(0.7, 10, 4), 1},
		"the same hard classes":     {Families{HardPair: true}, member(0.7, 10, 6), member(0.6, 10, 7), 0.01},
	} {
		got := c.keep.turned(c.before, c.after)
		if want := c.want * turnedWhole; math.Abs(float64(got)-want) > 1 || c.want == 0 && got != 0 {
			t.Errorf("%s: %d of %d, want %.1f", name, got, uint64(turnedWhole), want)
		}
	}
}

// However many classes there are, only what moves counts.
func TestManyClassesTurnAlike(t *testing.T) {
	const k = 200
	even := func(sum uint64) *state {
		s := &state{profile: profile{own: make([]uint32, k), votes: neighborhood.Votes{Count: 2, Sum: make([]uint64, k)}}}
		for i := range k {
			s.profile.own[i], s.profile.votes.Sum[i] = event.One/k, 2*event.One/k
		}
		s.profile.votes.Sum[k-1] += sum // of the neighbours' means, a half of it in each
		s.profile.votes.Sum[0] += 2*event.One/k - sum
		return s
	}
	pair := Families{SoftPair: true}
	if got := pair.turned(even(0), even(0)); got != 0 {
		t.Errorf("nothing turned %d", got)
	}
	if got := pair.turned(even(0), even(2*event.One/k)); got == 0 || got > turnedWhole/1000 {
		t.Errorf("a 200th turned %d of %d", got, uint64(turnedWhole))
	}
}

func TestTurnoverStopsAtItsLargest(t *testing.T) {
	var p Progress
	p.turn(0, math.MaxUint64, 1)
	p.turn(4, 4, turnedWhole/2)
	p.turn(1<<62, 1<<62, turnedWhole)
	if want := uint64(math.MaxUint64); p.Joined != want || p.Left != want {
		t.Errorf("%d joined and %d left, want %d", p.Joined, p.Left, want)
	}
	p = Progress{}
	p.turn(0, 9, 1)
	p.turn(4, 4, turnedWhole/2)
	if p.Joined != 11*turnedWhole || p.Left != 2*turnedWhole {
		t.Errorf("%d joined and %d left of %d", p.Joined, p.Left, uint64(turnedWhole))
	}
}
