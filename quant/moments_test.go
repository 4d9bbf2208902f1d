package quant_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/quant"
)

// withMoments returns s with the second moments that its callbacks give, over the
// cells of pairs or over those of the own prediction.
func withMoments(s *quant.Statistics, pair bool) *quant.Statistics {
	k, z := s.K, s.K
	if pair {
		z *= k
	}
	m := &quant.Moments{
		Z: z, N: make([]float64, k*z*z), A1: make([]float64, k*z*z), A2: make([]float64, k*z*z),
	}
	outer := func(dst []float64, weight float64, own, neighbors []float64) {
		phi := own
		if pair {
			phi = make([]float64, 0, z)
			for _, x := range own {
				for _, y := range neighbors {
					phi = append(phi, x*y)
				}
			}
		}
		for a, x := range phi {
			for b, y := range phi {
				dst[a*z+b] += weight * x * y
			}
		}
	}
	s.Rows(func(r quant.Row) {
		at := r.Class * z * z
		outer(m.N[at:], 1, r.Own, r.Neighbors)
		outer(m.A1[at:], r.A, r.Own, r.Neighbors)
		outer(m.A2[at:], r.A*r.A, r.Own, r.Neighbors)
	})
	out := *s
	out.Rows, out.Moments = nil, m
	return &out
}

// Second moments must give the estimates, errors and effective labels that visits to
// every label give, to rounding.
func TestMomentsEqualVisits(t *testing.T) {
	for seed := range uint64(60 / stride) {
		k := 2 + int(seed%4)
		s := syntheticStatistics(k, 60*k, 40, seed)
		for _, m := range quant.Methods() {
			for _, pair := range []bool{true, false} {
				if soft, _, _ := m.Needs(); soft && !pair {
					continue
				}
				o := quant.Options{Method: m, Lambda: .7}
				want, got := estimate(t, s, o), estimate(t, withMoments(s, pair), o)
				if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-7, 1e-9)); diff != "" {
					t.Fatalf("seed %d %s: visits (-), moments (+):\n%s", seed, m, diff)
				}
			}
		}
	}
}

// A standard error from moments is one even where profiles hardly differ.
func TestMomentsOfEqualProfilesAreSane(t *testing.T) {
	s := syntheticStatistics(3, 100, 20, 1)
	m := withMoments(s, true)
	for i := range m.Moments.A2 {
		m.Moments.A2[i], m.Moments.A1[i] = 0, 0
	}
	for _, method := range quant.Methods() {
		for _, x := range estimate(t, m, quant.Options{Method: method, Lambda: .7}).SE {
			if math.IsNaN(x) || x < 0 {
				t.Errorf("%s: standard error %v", method, x)
			}
		}
	}
}
