package alerts

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Jumps, each of ten spreads, and a beginning in which everything moves at once must not
// make a series insensitive: its spread stays within a third of its spread without them.
func TestJumpsDoNotWidenTheSpread(t *testing.T) {
	const sd = 0.01
	for _, rare := range []float64{0, 0.02, 0.04} {
		for seed := range uint64(20) {
			rng, s := rand.New(rand.NewPCG(seed, 5)), &spread{}
			for i := range 300 {
				moved := sd * rng.NormFloat64()
				if i < 3 || rng.Float64() < rare && i%7 == 0 {
					moved = 10 * sd
				}
				s.learn(moved, sd*sd, 1, cusumMemory)
			}
			if got := s.scale(0) / sd; math.Abs(got-1) > 0.34 {
				t.Errorf("seed %d: with %v jumps the spread is %.2f of what it is", seed, rare, got)
			}
		}
	}
}

// A spread may be told by a few windows of many: where nothing happened most of the time, the
// errors of the records, as far as they have proved right, bound it.
func TestSpreadOfASeriesThatHardlyMoves(t *testing.T) {
	rng, s := rand.New(rand.NewPCG(1, 5)), &spread{}
	for range 2000 {
		moved, variance := 0.0, 0.0
		if rng.Float64() < 0.01 {
			variance = 1e-4
			moved = 0.005 * rng.NormFloat64()
		}
		s.learn(moved, variance, 1, cusumMemory)
	}
	if got := s.scale(1e-4); got < 0.001 || got > 0.006 {
		t.Errorf("the spread is %v where movements have one of .005", got)
	}
}
