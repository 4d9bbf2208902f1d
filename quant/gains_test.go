package quant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// massesAsGains returns statistics with the kernel masses of s as the weights of the labels, and no
// mass.
func massesAsGains(s *stats.Statistics) *stats.Statistics {
	out := *s
	cells := func(c *stats.Cells) *stats.Cells {
		if c == nil {
			return nil
		}
		none := make([]float64, len(c.N))
		return &stats.Cells{Z: c.Z, P: c.P, N: c.A1, G2: c.A2, A1: none, A2: none, G2A: none}
	}
	out.Soft, out.SoftPair, out.Hard, out.HardPair = cells(s.Soft), cells(s.SoftPair), cells(
		s.Hard,
	), cells(s.HardPair)
	none := make([]float64, s.K)
	out.ClassN, out.ClassG2 = s.ClassA1, s.ClassA2
	out.ClassA1, out.ClassA2, out.ClassG2A = none, none, none
	if s.Rows != nil {
		out.Rows = func(visit func(stats.Row)) {
			s.Rows(func(r stats.Row) {
				if r.G, r.A = r.A, 0; r.G > 0 {
					visit(r)
				}
			})
		}
	}
	return &out
}

// A weight of a label must have the effect of a kernel mass with lambda 1: on the answers, their
// errors and n_eff, with exact and stand-in variances.
func TestGainsAreWeights(t *testing.T) {
	for seed := range uint64(60 / stride) {
		k := 2 + int(seed%4)
		s := syntheticStatistics(k, 60*k, 40, seed)
		if seed%2 == 0 {
			s.Rows = nil
		}
		for _, m := range []quant.Method{quant.Diff, quant.SIS} {
			want := estimate(t, s, quant.Options{Method: m, Preset: stats.Reference, Lambda: 1})
			got := estimate(t, massesAsGains(s), quant.Options{Method: m, Preset: stats.Reference})
			different := cmpopts.IgnoreFields(
				quant.Estimate{},
				"Flags",
				"Lambda",
			) // fields that depend on the kernel
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 1e-8),
				different); diff != "" {
				t.Fatalf("seed %d %s: masses (-), weights (+):\n%s", seed, m, diff)
			}
		}
	}
}
