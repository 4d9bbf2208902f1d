package auto

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The product of two influences must be the covariance G_a Cov G_b' if there are enough columns. If
// not, the product of an influence with itself must be a part of the variance: more than nothing,
// and never more than all of it.
func TestInfluencesAreTheSharedCovariance(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		k := []int{2, 2, 5, 10, 20}[seed%5]
		size := 10 + k
		root, cov := make([]float64, size*size), make([]float64, size*size)
		for i := range root {
			root[i] = r.NormFloat64() / 10
		}
		for i := range size {
			for j := range size {
				for l := range size {
					cov[i*size+j] += root[i*size+l] * root[j*size+l]
				}
			}
		}
		draw := func() []float64 {
			g := make([]float64, k*size)
			for i := range g {
				g[i] = r.NormFloat64()
			}
			return g
		}
		a, b := draw(), draw()
		fa, fb := influence(k, cov, a), influence(k, cov, b)
		if len(fa) > 32 || len(fa)%k != 0 {
			t.Fatalf("seed %d: %d numbers of %d classes", seed, len(fa), k)
		}
		for class := range k {
			shared, got, all, some := 0.0, 0.0, 0.0, 0.0
			for i := range size {
				for j := range size {
					shared += a[class*size+i] * cov[i*size+j] * b[class*size+j]
					all += a[class*size+i] * cov[i*size+j] * a[class*size+j]
				}
			}
			for c := class; c < len(fa); c += k {
				got, some = got+fa[c]*fb[c], some+fa[c]*fa[c]
			}
			if k == 2 && math.Abs(got-shared) > 1e-9*all {
				t.Errorf("seed %d: class %d shares %v, want %v", seed, class, got, shared)
			}
			if some > all*(1+1e-9) || some <= 0 {
				t.Errorf("seed %d: class %d has %v of a variance of %v", seed, class, some, all)
			}
		}
	}
}
