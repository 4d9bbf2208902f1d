package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawCells returns statistics of random tallies on K^2 cells, some of them nearly
// without mass, as sharp classifiers leave them.
func drawCells(rng *rand.Rand, k int) *Statistics {
	z := k * k
	c := &Cells{Z: z, P: make([]float64, z), N: make([]float64, z*k), A1: make([]float64, z*k), A2: make([]float64, z*k)}
	s := &Statistics{
		K: k, Members: 500, Profiled: 500, KernelSum: 500, Anchored: make([]float64, k), SoftPair: c,
		ClassN: make([]float64, k), ClassA1: make([]float64, k), ClassA2: make([]float64, k),
	}
	total := 0.0
	for i := range c.P {
		c.P[i] = math.Pow(rng.Float64(), 1+8*rng.Float64())
		total += c.P[i]
	}
	scaleTo(c.P, 1/total, c.P)
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
	o := DefaultOptions()
	o.Method = ML
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		s := drawCells(rng, 2+int(seed%7))
		var warm, cold Solver
		var e Estimate
		if err := warm.Estimate(&e, s, o); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := cold.Estimate(&e, s, o); err != nil { // for the shares of the labels
			t.Fatal(err)
		}
		at := s.reach()
		r := recipe{family: familyML, pair: true, likelihood: true}
		grid, _ := warm.grid(s, r, at)
		for i, l := range lambdas(at.lambdaMax(mixtureFloor)) {
			one, near := cold.adjusted(s, r, at.weigh(Density, l, s.KernelSum), nil), grid[i]
			if d := math.Abs(one.logLikelihood - near.logLikelihood); d > 2*gapTolerance*s.Profiled {
				t.Errorf("seed %d lambda %g: log-likelihoods %v and %v", seed, l, near.logLikelihood, one.logLikelihood)
			}
			for a, x := range one.Share {
				if math.Abs(x-near.Share[a]) > 1e-7 || math.Abs(one.v[a]-near.v[a]) > 1e-7 {
					t.Fatalf("seed %d lambda %g: warm %v, cold %v", seed, l, near.Share, one.Share)
				}
			}
		}
	}
}
