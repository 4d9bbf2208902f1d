package quant

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Responsibilities of two classes must add up to the same bits as those of any number.
func TestTwoClassesAddUpAsAnyNumberDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 61))
	for round := range 200 {
		var u members
		u.load([]float64{0.5, 0.5}, func(visit func(uint32, float64, []float64)) {
			for v := range 1 + r.Uint32N(300) {
				p := r.Float64()
				visit(v, float64(1+r.IntN(3)), []float64{p, 1 - p})
			}
		})
		u.factor[0], u.factor[1] = r.ExpFloat64(), r.ExpFloat64()
		u.respondAll()
		want := slices.Clone(u.next)
		if u.respondTwo(); !slices.Equal(u.next, want) {
			t.Fatalf("round %d: %v, want %v", round, u.next, want)
		}
	}
}

func BenchmarkRespond(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 62))
	var u members
	u.load([]float64{0.5, 0.5}, func(visit func(uint32, float64, []float64)) {
		for v := range uint32(1100) {
			p := r.Float64()
			visit(v, 1, []float64{p, 1 - p})
		}
	})
	u.factor[0], u.factor[1] = 1.5, 0.5
	b.Run("any", func(b *testing.B) {
		for b.Loop() {
			u.respondAll()
		}
	})
	b.Run("two", func(b *testing.B) {
		for b.Loop() {
			u.respondTwo()
		}
	})
}
