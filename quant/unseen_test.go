package quant_test

import (
	"testing"

	"gqlstream/quant"
)

// Members without a prediction are another draw: where they are as many as those with one, the
// variance of a share must be greater by half of that of one member, over the number of those with
// a prediction.
func TestMembersWithoutAPredictionAreNoise(t *testing.T) {
	for seed := range uint64(6) {
		k := 2 + int(seed)
		s := syntheticStatistics(k, 400, 300, seed)
		s.Labelled, s.Anchored, s.Members = 0, make([]float64, k), s.Profiled
		variances := func() (list []float64, e quant.Estimate) {
			e, err := quant.Quantify(s, quant.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			for _, se := range e.SE {
				list = append(list, se*se)
			}
			return list, e
		}
		before, _ := variances()
		s.Members = 2 * s.Profiled
		after, e := variances()
		for i, q := range e.Prevalence {
			got, want := after[i]-before[i], 0.5*q*(1-q)/s.Profiled
			if got < 0.9*want || got > 2*want { // members may count several times
				t.Errorf(
					"seed %d, share %d of %v: the variance grows by %g, want %g", seed, i, q, got,
					want,
				)
			}
		}
	}
}
