package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
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

// The shares of many members must be those that all of them have, however few are read to
// begin with, and the noise that is computed of those few about that of all.
func TestManyMembersAreSolvedLikeFew(t *testing.T) {
	worst := 0.0
	for seed := range uint64(40) {
		k := []int{2, 3, 5, 10, 20, 50}[seed%6]
		p := crowd(seed, 8000, k)
		gamma := []float64{0, 0.4, 0.9}[seed%3]
		p.Gamma = &gamma
		var x automatic
		exact := make([]float64, k)
		x.members.load(len(p.Prior), p.Members)
		read := x.read(p)
		if len(x.few.m) != 1000 {
			t.Fatalf("seed %d: starts from %d members", seed, len(x.few.m))
		}
		var whole members
		whole.load(k, p.Members)
		for _, solved := range []struct {
			q     []float64
			gamma float64
		}{{read.likely, 1}, {read.tempered, gamma}} {
			exactly(&whole, exact, p.Prior, solved.gamma)
			for i := range k {
				off := math.Abs(solved.q[i] - exact[i])
				worst = max(worst, off)
				if off > 5e-5 {
					t.Errorf("seed %d, %d classes, class %d, gamma %v: %v, all members have %v", seed, k, i, solved.gamma, solved.q[i], exact[i])
				}
			}
		}
		whole.temper(exact, p.Prior, gamma)
		noise, r := 0.0, make([]float64, k)
		for l, m := range whole.m {
			respond(r, whole.x[l*k:(l+1)*k], whole.factor)
			noise += m * m * (1 - floats.Dot(r, r))
		}
		if ratio := trace(read.a, k) * whole.all * whole.all / noise; ratio < 0.9 || ratio > 1.1 {
			t.Errorf("seed %d, %d classes: the noise is %v of that of all members", seed, k, ratio)
		}
	}
	t.Logf("the worst share is off by %g", worst)
}

// exactly writes q(gamma) of all members to q.
func exactly(u *members, q, prior []float64, gamma float64) {
	if copy(q, u.mean); gamma > 0 {
		u.maximise(q, prior, gamma, shareLeast, 1e-12, &u.mixture)
	}
}

func BenchmarkTempered(b *testing.B) {
	for _, k := range []int{2, 10, 20} {
		for _, n := range []int{100, 2000, 3000, 100_000} {
			b.Run(fmt.Sprintf("K=%d/n=%d", k, n), func(b *testing.B) {
				p, gamma := crowd(1, n, k), 0.9
				p.Gamma = &gamma
				var x automatic
				for b.Loop() {
					x.members.load(len(p.Prior), p.Members)
					x.read(p)
				}
			})
		}
	}
}
