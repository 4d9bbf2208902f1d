package event

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// genDistribution draws K non-negative numbers that sum to one within tolerance.
func genDistribution(t *rapid.T) []float64 {
	k := rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(60, 70)).Draw(t, "K")
	p := make([]float64, k)
	sum := 0.0
	for i := range p {
		p[i] = rapid.OneOf(
			rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.25, 1e-12, 1e-300, 1}),
		).Draw(t, "p")
		sum += p[i]
	}
	if sum < 1e-200 { // the scale below must be finite
		p[0], sum = 1, 1
	}
	scale := rapid.Float64Range(0.9991, 1.0009).Draw(t, "sum") / sum
	for i := range p {
		p[i] *= scale
	}
	return p
}

// The units of a distribution sum to exactly One, each is the exact share rounded
// down or up, and no class that went down had a larger remainder than one that
// went up. The shares are taken in exact arithmetic.
func TestUnitsAreLargestRemainders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genDistribution(t)
		units := make([]uint32, len(p))
		if err := Quantise(units, p); err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		sum, total := uint64(0), new(big.Float).SetPrec(2000)
		for i := range p {
			sum += uint64(units[i])
			total.Add(total, big.NewFloat(p[i]))
		}
		if sum != One {
			t.Fatalf("units of %v sum to %d", p, sum)
		}
		down, up := 0.0, 1.0 // the largest remainder kept down, the smallest put up
		for i := range p {
			share := new(big.Float).SetPrec(2000).SetFloat64(p[i])
			share.Mul(share, big.NewFloat(One)).Quo(share, total)
			floor, _ := share.Int(nil)
			left, _ := share.Sub(share, new(big.Float).SetInt(floor)).Float64()
			switch int64(units[i]) - floor.Int64() {
			case 0:
				down = max(down, left)
			case 1:
				up = min(up, left)
			default: // the float64 share fell on the other side of an integer
				if left > 1e-6 && left < 1-1e-6 {
					t.Fatalf(
						"class %d of %v has %d units, its share is %v + %v", i, p, units[i], floor,
						left,
					)
				}
			}
		}
		const rounding = 1e-6 // of a share in float64, which is below 2^30
		if down > up+rounding {
			t.Fatalf("remainder %v went down and %v up: %v to %v", down, up, p, units)
		}
	})
}

// Units that are read back as probabilities are the same units.
func TestUnitsAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genDistribution(t)
		once, twice := make([]uint32, len(p)), make([]uint32, len(p))
		if err := Quantise(once, p); err != nil {
			t.Fatal(err)
		}
		for i, u := range once {
			p[i] = float64(u) / One
		}
		if err := Quantise(twice, p); err != nil || !slices.Equal(once, twice) {
			t.Fatalf("%v became %v (%v)", once, twice, err)
		}
	})
}

// Equal remainders go to the lowest index, and numbers that are no distribution are refused
// with the reason.
func TestQuantiseCases(t *testing.T) {
	third := uint32(One / 3)
	for _, c := range []struct {
		p      []float64
		want   []uint32
		reason Reason
	}{
		{p: []float64{1}, want: []uint32{One}},
		{p: []float64{0.9995}, want: []uint32{One}},
		{p: []float64{0, 1, 0}, want: []uint32{0, One, 0}},
		{p: []float64{0.5, 0.5}, want: []uint32{One / 2, One / 2}},
		{p: []float64{1. / 3, 1. / 3, 1. / 3}, want: []uint32{third + 1, third, third}},
		{p: []float64{math.Copysign(0, -1), 1}, want: []uint32{0, One}},
		{p: []float64{0.5, math.NaN()}, reason: NotFinite},
		{p: []float64{0.5, math.Inf(1)}, reason: NotFinite},
		{p: []float64{1.1, -0.1}, reason: NotNormal},
		{p: []float64{0, 0}, reason: NotNormal},
		{p: []float64{0.5, 0.498}, reason: NotNormal},
		{p: []float64{0.5, 0.502}, reason: NotNormal},
		{p: []float64{math.MaxFloat64, math.MaxFloat64}, reason: NotNormal},
	} {
		units := make([]uint32, len(c.p))
		err := Quantise(units, c.p)
		if c.reason != "" {
			var p *Problem
			if !errors.As(err, &p) || p.Reason != c.reason {
				t.Errorf("%v: %v, want %s", c.p, err, c.reason)
			}
		} else if err != nil || !slices.Equal(units, c.want) {
			t.Errorf("%v: %v (%v), want %v", c.p, units, err, c.want)
		}
	}
}

// Quantise keeps the shares and the sum.
func ExampleQuantise() {
	units := make([]uint32, 3)
	if err := Quantise(units, []float64{0.7, 0.2, 0.1}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(units, units[0]+units[1]+units[2] == One)
	// Output: [751619277 214748365 107374182] true
}

func BenchmarkQuantise(b *testing.B) {
	for _, k := range []int{2, 10, 100} {
		b.Run(fmt.Sprintf("k%d", k), func(b *testing.B) {
			p, units := make([]float64, k), make([]uint32, k)
			for i := range p {
				p[i] = float64(i+1) * 2 / float64(k*(k+1))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := Quantise(units, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
