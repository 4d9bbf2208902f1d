package tally

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A sum must not depend on the order of its terms, and taking every term back
// must leave exactly zero, over all magnitudes a kernel mass can have.
func TestSumIsExactAndOrderFree(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		terms := make([]float64, 1+r.IntN(200))
		for i := range terms {
			terms[i] = math.Ldexp(r.Float64(), r.IntN(130)-90)
		}
		var forward, shuffled Sum
		for _, x := range terms {
			forward.Add(x, 1)
		}
		for _, i := range r.Perm(len(terms)) {
			shuffled.Add(terms[i], 1)
		}
		if forward != shuffled {
			t.Fatalf("seed %d: %v in order, %v shuffled", seed, forward, shuffled)
		}
		for _, i := range r.Perm(len(terms)) {
			shuffled.Add(terms[i], -1)
		}
		if (shuffled != Sum{}) {
			t.Fatalf("seed %d: taking all terms back left %v", seed, shuffled)
		}
	}
}

// A sum must equal the sum of its terms in arbitrary precision, each cut to a
// multiple of 2^-80.
func TestSumEqualsBigArithmetic(t *testing.T) {
	unit := new(big.Float).SetMantExp(big.NewFloat(1), -sumUnitBits)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var got Sum
		want := new(big.Int)
		for range 100 {
			x := math.Ldexp(r.Float64(), r.IntN(130)-90)
			got.Add(x, 1)
			term, _ := new(big.Float).SetPrec(300).Quo(big.NewFloat(x), unit).Int(nil)
			want.Add(want, term)
		}
		have := new(big.Int).SetUint64(got.hi)
		have.Lsh(have, 64).Or(have, new(big.Int).SetUint64(got.lo))
		if have.Cmp(want) != 0 {
			t.Fatalf("seed %d: sum %v, want %v", seed, have, want)
		}
		exact, _ := new(big.Float).Mul(new(big.Float).SetInt(want), unit).Float64()
		if f := got.Float(); math.Abs(f-exact) > 1e-15*exact {
			t.Fatalf("seed %d: float %v, want %v", seed, f, exact)
		}
	}
}

// A term that is no mass adds nothing, and a term that is too large is cut.
func TestSumOfHopelessTerms(t *testing.T) {
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(-1), 5e-324, 1e-40} {
		var s Sum
		s.Add(x, 1)
		if (s != Sum{}) {
			t.Errorf("adding %v gave %v, want nothing", x, s)
		}
	}
	var s Sum
	s.Add(math.Inf(1), 1)
	if got := s.Float(); got < sumMax*(1-1e-15) || got > sumMax {
		t.Errorf("adding +Inf gave %v, want just under %v", got, float64(sumMax))
	}
}
