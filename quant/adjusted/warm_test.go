package adjusted

import (
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// drawCells returns statistics of random tallies on K^2 cells, some of them nearly
// without mass, as sharp classifiers leave them.
func drawCells(rng *rand.Rand, k int) *stats.Statistics {
	z := k * k
	c := &stats.Cells{
		Z:  z,
		P:  make([]float64, z),
		N:  make([]float64, z*k),
		A1: make([]float64, z*k),
		A2: make([]float64, z*k),
	}
	s := &stats.Statistics{
		K: k, Members: 500, Profiled: 500, KernelSum: 500, Anchored: make([]float64, k),
		SoftPair: c,
		ClassN:   make([]float64, k), ClassA1: make([]float64, k), ClassA2: make([]float64, k),
	}
	total := 0.0
	for i := range c.P {
		c.P[i] = math.Pow(rng.Float64(), 1+8*rng.Float64())
		total += c.P[i]
	}
	solve.ScaleTo(c.P, 1/total, c.P)
	for class := range k {
		for range 30 {
			a, at := rng.ExpFloat64(), rng.IntN(z)
			s.ClassN[class]++
			s.ClassA1[class] += a
			s.ClassA2[class] += a * a
			for i := range z { // most of the profile on one cell
				phi := 0.1 / float64(z)
				if i == at%(k*(class+1)) {
					phi += 0.9
				}
				c.N[i*k+class] += phi
				c.A1[i*k+class] += a * phi
				c.A2[i*k+class] += a * a * phi
			}
		}
	}
	return s
}

// Each lambda of ml, started near where the last ones ended, must reach the maximum
// that a start from afar reaches, and leave the same moments.
func TestWarmLikelihoodEqualsCold(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		s := drawCells(rng, 2+int(seed%7))
		at := s.Reach()
		grid, _ := likelihoods(s)
		for i, l := range lambdas(at.LambdaMax(mixtureFloor)) {
			weights := at.Weigh(stats.Density, l, s.KernelSum)
			one, near := onPairs.solve(s, weights, nil), grid[i]
			if d := math.Abs(one.logLikelihood - near.logLikelihood); d > 2e-11*s.Profiled {
				t.Errorf(
					"seed %d lambda %g: log-likelihoods %v and %v", seed, l, near.logLikelihood,
					one.logLikelihood,
				)
			}
			for a, x := range one.Share {
				if math.Abs(x-near.Share[a]) > 1e-7 || math.Abs(one.V[a]-near.V[a]) > 1e-7 {
					t.Fatalf("seed %d lambda %g: warm %v, cold %v", seed, l, near.Share, one.Share)
				}
			}
		}
	}
}
