package posterior

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Both must agree with package math within the bounds of their comments, over the whole
// range.
func TestLogarithmsAndExponentials(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := math.Exp(1400*random.Float64() - 700)
		if random.IntN(2) == 0 {
			x = 0.5 + random.Float64()
		}
		if got, want := logarithm(x), math.Log(x); math.Abs(got-want) > 2e-12*max(
			1,
			math.Abs(want),
		) {
			t.Fatalf("the logarithm of %v is %v, want %v", x, got, want)
		}
		y := -708 * random.Float64() * random.Float64()
		if got, want := exponential(y), math.Exp(y); math.Abs(got-want) > 1e-12*want {
			t.Fatalf("the exponential of %v is %v, want %v", y, got, want)
		}
	}
	for x, want := range map[float64]float64{0: 1, -710: 0, -1e30: 0} {
		if got := exponential(x); got != want {
			t.Errorf("the exponential of %v is %v, want %v", x, got, want)
		}
	}
}
