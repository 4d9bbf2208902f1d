package quant

import (
	"math"
	"testing"
)

// Where a solve starts, the shares that it ends with are the same.
func TestSolvesEndWhereverTheyStart(t *testing.T) {
	worst := 0.0
	for seed := range uint64(60) {
		k, n := []int{2, 3, 5, 10, 20}[seed%5], []int{40, 400, 4000}[seed%3]
		p, other := crowd(seed, n, k), crowd(seed+1000, n, k)
		gamma, before := []float64{0, 0.3, 0.9, 1}[seed%4], []float64{0, 0.6, 1}[seed%3]
		var x, y automatic
		other.Gamma, p.Gamma = &before, &gamma
		x.members.load(k, other.Members)
		r := x.read(other)
		last := &Snapshot{Tangent: Tangent{Gamma: before, Tempered: r.tempered, Likely: r.likely, Apart: make([]float64, k)}}
		axpy(last.Apart, 1, r.likely)
		axpy(last.Apart, -1, r.mean)

		y.members.load(k, p.Members)
		want := y.read(p)
		p.Last = last
		got := y.read(p)
		for i := range k {
			off := math.Abs(got.tempered[i] - want.tempered[i])
			worst = max(worst, off)
			if off > 2e-4 || gamma == 0 && off > 0 {
				t.Errorf("seed %d, %d of %d classes, gamma %v, class %d: %v from the last estimate, else %v", seed, n, k, gamma, i, got.tempered[i], want.tempered[i])
			}
		}
	}
	t.Logf("shares differ by %g at most", worst)
}
