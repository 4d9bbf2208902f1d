package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// crowd returns the posteriors of n members, most of them sure of one class, and their
// multiplicities.
func crowd(seed uint64, n, k int) *Posterior {
	r := rand.New(rand.NewPCG(seed, 5))
	pi, m := make([]float64, n*k), make([]float64, n)
	noise := 0.1 + 0.4*r.Float64()
	for l := range n {
		m[l] = float64(1 + r.IntN(3)/2)
		row := pi[l*k : (l+1)*k]
		class := r.IntN(k)
		for i := range row {
			row[i] = math.Exp(noise * r.NormFloat64())
		}
		row[class] *= math.Exp(6 * r.Float64()) // some are sure of a class, some of none
		scaleTo(row, 1/sum(row), row)
	}
	prior := make([]float64, k)
	for i := range prior {
		prior[i] = 0.2 + r.Float64()
	}
	scaleTo(prior, 1/sum(prior), prior)
	return &Posterior{Prior: prior, Distinct: float64(n), Members: func(visit func(uint32, float64, []float64)) {
		for l := range n {
			visit(uint32(l), m[l], pi[l*k:(l+1)*k])
		}
	}}
}

// What a large community's summary moves must be within the bound that is said of it: the
// mean of R at any shares, and the tempered shares themselves.
func TestSummaryMovesNoMoreThanItsBound(t *testing.T) {
	worst, used := 0.0, 0
	for seed := range uint64(60) {
		k := []int{2, 3, 5, 10, 20}[seed%5]
		p := crowd(seed, 3000, k)
		gamma := []float64{1, 0.9, 0.4}[seed%3]
		var whole, short members
		short.load(p, true)
		whole.load(p, false)
		if len(whole.m) != 3000 || len(short.m) > summaryGroupsMax {
			t.Fatalf("seed %d: %d members, %d groups", seed, len(whole.m), len(short.m))
		}
		exact, near, bound := make([]float64, k), make([]float64, k), make([]float64, k)
		whole.tempered(exact, p.Prior, gamma)
		short.tempered(near, p.Prior, gamma)
		here := append([]float64(nil), exact...)
		short.step(here, p.Prior, gamma)
		short.bound(bound)
		for i := range k {
			if off := math.Abs(here[i] - exact[i]); off > bound[i]+2*temperedTolerance {
				t.Errorf("seed %d, %d classes, class %d: the mean of R is off by %g, bound %g", seed, k, i, off, bound[i])
			}
		}
		a, s, j := make([]float64, k*k), make([]float64, k*k), make([]float64, k*k)
		short.temper(near, p.Prior, gamma)
		short.bound(bound)
		short.noise(a, s)
		pseudoInverse(j, near, s, gamma)
		most := short.lost(bound, j)
		if most > summaryErrorMax {
			continue // auto reads every member
		}
		used++
		for i, lost := range bound {
			off := math.Abs(near[i] - exact[i])
			worst = max(worst, off/summaryErrorMax)
			if off > 1.1*lost+1e-5 {
				t.Errorf("seed %d, %d classes, class %d: the share is off by %g, bound %g", seed, k, i, off, lost)
			}
		}
	}
	t.Logf("%d of 60 were summarised, the worst share was off by %g of what is allowed", used, worst)
	if used < 20 {
		t.Errorf("only %d of 60 could be summarised", used)
	}
}

func BenchmarkTempered(b *testing.B) {
	for _, k := range []int{2, 10, 20} {
		for _, n := range []int{100, 2000, 3000, 100_000} {
			b.Run(fmt.Sprintf("K=%d/n=%d", k, n), func(b *testing.B) {
				p, q := crowd(1, n, k), make([]float64, k)
				var u members
				for b.Loop() {
					u.load(p, n > summaryMembersMin)
					u.tempered(q, p.Prior, 1)
					u.tempered(q, p.Prior, 0.9)
				}
				b.ReportMetric(float64(len(u.m)), "entries")
			})
		}
	}
}
