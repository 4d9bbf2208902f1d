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
			Mass: uint64(
				neighbors,
			), Hard: []uint64{uint64(math.Round(sum)), uint64(neighbors) - uint64(math.Round(sum))},
			Sum: []uint64{uint64(sum * event.One), uint64((float64(neighbors) - sum) * event.One)},
		},
	}}
}

// A member counts as another one by the square of the share of its profile that moves.
func TestMembersCountByTheirMovedPart(t *testing.T) {
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
		"nothing":               {pair, member(0.7, 10, 6), member(0.7, 10, 6), 0},
		"a flip":                {pair, member(1, 10, 6), member(0, 10, 6), 1},
		"a tenth of the own":    {pair, member(0.7, 10, 6), member(0.6, 10, 6), 0.01},
		"one of ten neighbours": {pair, member(0.7, 10, 6), member(0.7, 10, 7), 0.01},
		"one neighbour more": {
			pair, member(0.7, 10, 6), member(0.7, 11, 7),
			math.Pow(7./11-0.6, 2),
		},
		"both, at most their sum":   {pair, member(0.7, 10, 6), member(0.5, 10, 3), 0.25},
		"neighbours, not looked at": {soft, member(0.7, 10, 6), member(0.7, 10, 1), 0},
		"another model":             {pair, member(0.7, 10, 6), reversion, 1},
		"no prediction before":      {pair, unknown, member(0.7, 10, 6), 1},
		"another hard class": {
			Families{Hard: true},
			member(0.51, 10, 6),
			member(0.49, 10, 6), 1,
		},
		"another hard majority": {
			Families{HardPair: true},
			member(0.7, 10, 6),
			member(0.7, 10, 4), 1,
		},
		"the same hard classes": {
			Families{HardPair: true},
			member(0.7, 10, 6),
			member(0.6, 10, 7), 0.01,
		},
	} {
		got := c.keep.turned(c.before, c.after)
		if math.Abs(got-c.want) > 1./turnedParts || c.want == 0 && got != 0 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// However many classes there are, only the moved part counts.
func TestManyClassesTurnAlike(t *testing.T) {
	const k = 200
	even := func(sum uint64) *state {
		s := &state{
			profile: profile{
				own:   make([]uint32, k),
				votes: neighborhood.Votes{Mass: 2, Sum: make([]uint64, k)},
			},
		}
		for i := range k {
			s.profile.own[i], s.profile.votes.Sum[i] = event.One/k, 2*event.One/k
		}
		s.profile.votes.Sum[k-1] += sum // of the neighbours' means, a half of it in each
		s.profile.votes.Sum[0] += 2*event.One/k - sum
		return s
	}
	pair := Families{SoftPair: true}
	if got := pair.turned(even(0), even(0)); got != 0 {
		t.Errorf("nothing turned %v", got)
	}
	if got := pair.turned(even(0), even(2*event.One/k)); got == 0 || got > 0.001 {
		t.Errorf("a 200th turned %v", got)
	}
}

// Members that came and went count in full, members that changed by the part that moved.
func TestTurnoverCountsSquaredMultiplicities(t *testing.T) {
	var p Progress
	p.turn(0, 9, 1./turnedParts)
	p.turn(4, 4, 0.5)
	if p.Joined != 11 || p.Left != 2 {
		t.Errorf("%v joined and %v left, want 11 and 2", p.Joined, p.Left)
	}
}
