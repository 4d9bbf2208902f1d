package auto

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// cellsOfMembers returns a histogram of n members over eight cells a class. Some cells are sure of
// a class, others of none.
func cellsOfMembers(seed uint64, n, k int) *stats.Posterior {
	r := rand.New(rand.NewPCG(seed, 5))
	cells := 8 * max(k, 2)
	p := &stats.Posterior{Version: 1, LabelGate: 1, Counts: make([]float64, cells)}
	noise := 0.1 + 0.4*r.Float64()
	for z := range cells {
		row := make([]float64, k)
		for i := range row {
			row[i] = math.Exp(noise * r.NormFloat64())
		}
		row[z%k] *= math.Exp(6 * r.Float64())
		solve.ScaleTo(row, 1/solve.Sum(row), row)
		p.Means = append(p.Means, row...)
	}
	for range n {
		p.Counts[r.IntN(cells)]++
	}
	p.Squares, p.Distinct = float64(n), float64(n)
	for range k {
		p.Prior = append(p.Prior, 0.2+r.Float64())
	}
	solve.ScaleTo(p.Prior, 1/solve.Sum(p.Prior), p.Prior)
	return p
}

// Where a solve starts, the shares that it ends with are the same, and they are those of a much
// finer tolerance.
func TestSolvesEndWhereverTheyStart(t *testing.T) {
	worst := 0.0
	for seed := range uint64(60) {
		k, n := []int{2, 3, 5, 10, 20, 50}[seed%6], []int{40, 400, 4000}[seed%3]
		p, other := cellsOfMembers(seed, n, k), cellsOfMembers(seed+1000, n, k)
		gamma, before := []float64{0, 0.3, 0.9, 1}[seed%4], []float64{0, 0.6, 1}[seed%3]
		other.Gamma, p.Gamma = &before, &gamma
		var u histogram
		last := &stats.Memory{Posterior: 1, Gamma: before, Likely: u.read(other, nil).likely}
		want, got := u.read(p, nil), u.read(p, last)
		exact := append([]float64(nil), want.mean...)
		if gamma > 0 {
			u.Maximise(exact, p.Prior, gamma, shareLeast, 1e-12, &u.Mixture)
		}
		for i := range k {
			off := max(
				math.Abs(got.tempered[i]-want.tempered[i]),
				math.Abs(exact[i]-want.tempered[i]),
			)
			worst = max(worst, off)
			if off > 2e-4 || gamma == 0 && off > 0 {
				t.Errorf(
					"seed %d, %d of %d classes, gamma %v, class %d: %v from the last estimate, "+
						"else %v, exactly %v",
					seed,
					n,
					k,
					gamma,
					i,
					got.tempered[i],
					want.tempered[i],
					exact[i],
				)
			}
		}
	}
	t.Logf("shares differ by %g at most", worst)
}

func BenchmarkReadHistogram(b *testing.B) {
	for _, k := range []int{2, 10, 20} {
		for _, n := range []int{50, 2500, 100_000} {
			b.Run(fmt.Sprintf("K=%d/n=%d", k, n), func(b *testing.B) {
				p, gamma := cellsOfMembers(1, n, k), 0.5
				p.Gamma = &gamma
				var u histogram
				for b.Loop() {
					u.read(p, nil)
				}
			})
		}
	}
}
