package auto

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// answerOf returns an answer of these shares, each with the variance v.
func answerOf(shares []float64, v float64) *stats.Answer {
	a := stats.NewAnswer(len(shares))
	copy(a.Share, shares)
	copy(a.Free, shares)
	for i := range shares {
		a.V[i] = v
	}
	return a
}

// Where auto errs as it says, the combination must be no worse than the better of both, but for
// a quarter where the labels are four times as uncertain; where auto is off by six errors of the
// difference, hardly worse than the labels. The flag must be raised in at most 2.5 % of the first
// and, from 3.5 errors on, in 80 %.
func TestAuditLabelsHardlyMakeAGoodEstimateWorse(t *testing.T) {
	const trials = 4000
	for _, ratio := range []float64{0.5, 1, 2, 4} { // error of the labels over that of auto
		for _, off := range []float64{0, 3.5, 6} {
			r := rand.New(rand.NewPCG(uint64(10*ratio), uint64(off)))
			se := []float64{0.02, 0.02 * ratio}
			miss := off * math.Hypot(se[0], se[1])
			auto, labels, both, flagged := 0.0, 0.0, 0.0, 0.0
			for range trials {
				a, x := 0.5+miss+se[0]*r.NormFloat64(), 0.5+se[1]*r.NormFloat64()
				v, vx := se[0]*se[0], se[1]*se[1]
				mixed := answerOf([]float64{a, 1 - a}, v)
				combine(mixed, answerOf([]float64{x, 1 - x}, vx))
				q := mixed.Share
				auto += math.Abs(a-0.5) / trials
				labels += math.Abs(x-0.5) / trials
				both += math.Abs(q[0]-0.5) / trials
				if slices.Max(mixed.AuditErrors) > solve.Bonferroni(stats.AuditConfidence, 2) {
					flagged += 1. / trials
				}
			}
			t.Logf(
				"labels %v times as uncertain, auto off by %v: auto %.4f, labels %.4f, both "+
					"%.4f, flagged %.3f",
				ratio,
				off,
				auto,
				labels,
				both,
				flagged,
			)
			switch {
			case off == 0 && (both > 1.25*min(auto, labels) || flagged > 0.025):
				t.Errorf(
					"%v times: error %.4f, auto has %.4f; flagged %.3f", ratio, both, auto, flagged,
				)
			case off > 3 && flagged < 0.8, off > 5 && both > 1.1*labels:
				t.Errorf(
					"%v times: error %.4f, the labels alone %.4f; flagged %.3f", ratio, both,
					labels, flagged,
				)
			}
		}
	}
}
