package quant_test

import (
	"fmt"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// Solvers and whole estimates with the workspace reused.
func BenchmarkLeastSquares(b *testing.B) {
	for _, k := range []int{2, 10, 50} {
		for _, z := range []int{k, k * k} {
			b.Run(fmt.Sprintf("K=%d/Z=%d", k, z), func(b *testing.B) {
				s := syntheticStatistics(k, 100*k, 1000, 1)
				c, p := problem(s, z)
				shares, q := make([]float64, k), make([]float64, k)
				for i := range shares {
					shares[i] = 1 / float64(k)
				}
				var w quant.Solver
				w.LeastSquares(q, c, p, shares)
				b.ReportAllocs()
				for b.Loop() {
					w.LeastSquares(q, c, p, shares)
				}
			})
		}
	}
}

func BenchmarkMaximumLikelihood(b *testing.B) {
	for _, k := range []int{2, 10, 50} {
		b.Run(fmt.Sprintf("K=%d/Z=%d", k, k*k), func(b *testing.B) {
			s := syntheticStatistics(k, 100*k, 1000, 1)
			c, p := problem(s, k*k)
			shares, q := make([]float64, k), make([]float64, k)
			for i := range shares {
				shares[i] = 1 / float64(k)
			}
			var w quant.Solver
			w.MaximumLikelihood(q, c, p, shares)
			b.ReportAllocs()
			for b.Loop() {
				w.MaximumLikelihood(q, c, p, shares)
			}
		})
	}
}

// The design's goal: solve, interval and flags at K = 10, NACC, in 200 us.
func BenchmarkEstimate(b *testing.B) {
	for _, k := range []int{2, 10, 50} {
		s := syntheticStatistics(k, 100*k, 1000, 1)
		s.Rows = nil
		for _, m := range []quant.Method{
			quant.PACC, quant.NACC, quant.SISNACC, quant.Diff,
			quant.ML, quant.Auto,
		} {
			b.Run(fmt.Sprintf("K=%d/%s", k, m), func(b *testing.B) { benchmark(b, s, m) })
		}
	}
}

// The same with the exact variances: a pass over 1000 labels and 1000 members for
// every lambda.
func BenchmarkEstimateExact(b *testing.B) {
	s := syntheticStatistics(10, 1000, 1000, 1)
	for _, m := range []quant.Method{quant.SISNACC, quant.Auto} {
		b.Run("K=10/"+string(m), func(b *testing.B) { benchmark(b, s, m) })
	}
}

func benchmark(b *testing.B, s *stats.Statistics, m quant.Method) {
	var w quant.Solver
	var e quant.Estimate
	o := quant.DefaultOptions()
	o.Method = m
	if err := w.Estimate(&e, s, o); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Estimate(&e, s, o); err != nil {
			b.Fatal(err)
		}
	}
}

// problem returns C and p of the unweighted statistics.
func problem(s *stats.Statistics, z int) (c, p []float64) {
	t := s.SoftPair
	if z == s.K {
		t = s.Soft
	}
	c = make([]float64, len(t.N))
	for i, n := range t.N {
		c[i] = n / s.ClassN[i%s.K]
	}
	return c, t.P
}
