package incremental

import (
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/quant"
)

// Rounded shares must be multiples of the unit that still sum to one, each less than a unit from
// what it was, and the interval must still hold what it held.
func TestRoundedSharesSumToOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		k, unit := 2+r.IntN(6), []float64{0.25, 0.05, 0.01, 0.001}[r.IntN(4)]
		e := quant.Estimate{}
		sum := 0.0
		for range k {
			x := r.ExpFloat64()
			e.Prevalence, sum = append(e.Prevalence, x), sum+x
		}
		for i := range e.Prevalence {
			e.Prevalence[i] /= sum
			e.Low = append(e.Low, e.Prevalence[i]*0.9)
			e.High = append(e.High, min(1, e.Prevalence[i]*1.1))
		}
		was := quant.Estimate{
			Prevalence: append([]float64{}, e.Prevalence...), Low: append([]float64{}, e.Low...),
			High: append([]float64{}, e.High...),
		}
		round(&e, unit)
		sum = 0
		for i, x := range e.Prevalence {
			sum += x
			if math.Abs(x/unit-math.Round(x/unit)) > 1e-6 || math.Abs(x-was.Prevalence[i]) >= unit {
				t.Fatalf("%v became %v, unit %v", was.Prevalence[i], x, unit)
			}
			if e.Low[i] > was.Low[i] || e.High[i] < was.High[i]-1e-12 {
				t.Fatalf("interval %v to %v became %v to %v", was.Low[i], was.High[i], e.Low[i], e.High[i])
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("shares sum to %v", sum)
		}
	}
}
