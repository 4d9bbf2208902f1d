package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// summed returns the crowd of the members of p under the factors of a reading.
func summed(p *Posterior, r *CrowdReading) *Crowd {
	k, c := len(p.Prior), &Crowd{Read: r}
	for i := range c.Mean {
		c.Mean[i] = make([]float64, k)
	}
	p.Members(func(_ uint32, m float64, pi []float64) {
		c.All, c.Squares = c.All+m, c.Squares+m*m
		axpy(c.Mean[0], m, pi)
		for i, f := range r.Factors {
			total := floats.Dot(pi, f)
			for j, x := range pi {
				c.Mean[i+1][j] += m * x * f[j] / total
			}
		}
	})
	for _, mean := range c.Mean {
		scaleTo(mean, 1/c.All, mean)
	}
	return c
}

// changedCrowd returns p with another posterior for a share of its members.
func changedCrowd(p *Posterior, r *rand.Rand, share float64) *Posterior {
	next, k := *p, len(p.Prior)
	var pi, m []float64
	p.Members(func(_ uint32, x float64, old []float64) {
		row := slices.Clone(old)
		if r.Float64() < share {
			for i := range row {
				row[i] *= math.Exp(r.NormFloat64() + 0.5*float64(i%2))
			}
			scaleTo(row, 1/sum(row), row)
		}
		pi, m = append(pi, row...), append(m, x)
	})
	next.Members = func(visit func(uint32, float64, []float64)) {
		for l := range m {
			visit(uint32(l), m[l], pi[l*k:(l+1)*k])
		}
	}
	return &next
}

// What follows from sums over many members must be what all of them say, within the bound that crowdFar
// gives, and nothing may follow where shares have gone farther.
func TestCrowdsSayWhatTheirMembersSay(t *testing.T) {
	worst, followed := 0.0, 0
	for seed := range uint64(120) {
		k := []int{2, 3, 5, 10, 20}[seed%5]
		r := rand.New(rand.NewPCG(seed, 81))
		p := crowd(seed, []int{2500, 9000}[seed%2], k)
		gamma := []float64{0, 0.4, 0.9}[seed%3]
		p.Gamma, p.Crowd = &gamma, &Crowd{}
		var x automatic
		x.members.load(len(p.Prior), p.Members)
		x.read(p)
		reading := p.Crowd.Fresh
		next := changedCrowd(p, r, []float64{0, 0.002, 0.01, 0.03, 0.1}[seed/5%5])
		moved := gamma + 0.005*float64(seed%2)
		next.Gamma, next.Crowd = &moved, summed(next, reading)
		got, exact := next.follow(), make([]float64, k)
		var whole members
		whole.load(k, next.Members)
		for i, solved := range []float64{1, moved} {
			exactly(&whole, exact, p.Prior, solved)
			from := [][]float64{reading.likely, reading.tempered}[i]
			far := 0.0
			for j, w := range exact {
				far += math.Abs(w - from[j])
			}
			if got == nil {
				continue
			}
			for j, w := range exact {
				off := math.Abs([][]float64{got.likely, got.tempered}[i][j] - w)
				if worst = max(worst, off); off > modelError/[]float64{5, 10}[i] {
					t.Errorf("seed %d, %d classes, gamma %v, share %d: off by %g after %g", seed, k, solved, j, off, far)
				}
			}
		}
		if got != nil {
			followed++
		}
	}
	t.Logf("%d followed, the worst share is off by %g", followed, worst)
	if followed < 40 || followed == 120 {
		t.Errorf("%d of 120 followed", followed)
	}
}

func BenchmarkCrowd(b *testing.B) {
	for _, k := range []int{2, 10, 20, 50} {
		b.Run(fmt.Sprintf("K=%d", k), func(b *testing.B) {
			p, gamma := crowd(1, 100_000, k), 0.9
			p.Gamma, p.Crowd = &gamma, &Crowd{}
			var x automatic
			x.members.load(len(p.Prior), p.Members)
			x.read(p)
			p = changedCrowd(p, rand.New(rand.NewPCG(1, 82)), 0.001)
			p.Crowd = summed(p, p.Crowd.Fresh)
			for b.Loop() {
				if p.follow() == nil {
					b.Fatal("nothing follows")
				}
			}
		})
	}
}
