package alerts

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Jumps, each of ten spreads, and a beginning in which everything moves at once must not
// make a series deaf: its spread stays within a third of what it is without them.
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

// A spread may be told by a few windows of many: where nothing happened most of the time, the errors
// of the records, as far as they have proved right, bound it.
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

// The height of one movement is passed by itself as often as the sums of a CUSUM pass it, but for the
// number of spans that are looked at.
func TestHeightOfOneMovement(t *testing.T) {
	r := Rule{Drift: driftDefault}
	for _, z := range []float64{4, 5, 6, 7.99, 8.01, 12} {
		rate := math.Erfc(z / math.Sqrt2)
		x := 2*driftDefault*(r.height(z)+cusumEdge) + math.Log(float64(len(spanEvaluations)+2))
		sums := math.Log(4*driftDefault*driftDefault) - x // Siegmund, for large heights
		if math.Abs(sums-math.Log(rate)) > 0.05*math.Abs(math.Log(rate)) {
			t.Errorf("%v spreads: log rate %v, of a CUSUM of that height %v", z, math.Log(rate), sums)
		}
	}
}
