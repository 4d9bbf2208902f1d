package quant_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gqlstream/quant"
)

// The products of two influences must be the covariance G_a Cov G_b' where there are columns enough, and
// never more of a variance where there are not, but then at least what the intercept of the class
// has to itself.
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
		fa, fb := quant.Influence(k, cov, a), quant.Influence(k, cov, b)
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

// Where the intervals of shares end at zero and one, the interval of their difference must end too, and
// what the labels made wrong in both must cancel.
func TestADifferenceEndsWhereSharesEnd(t *testing.T) {
	a := quant.Estimate{Community: "a", Method: "auto", Posterior: 1, Prevalence: []float64{.01, .99}, SE: []float64{.02, .02}, Low: []float64{0, .957}, High: []float64{.043, 1}, Influence: []float64{.01, -.01}}
	b := quant.Estimate{Community: "b", Method: "auto", Posterior: 1, Prevalence: []float64{.02, .98}, SE: []float64{.02, .02}, Low: []float64{0, .947}, High: []float64{.053, 1}, Influence: []float64{.01, -.01}}
	d, err := quant.Difference(&a, &b)
	if err != nil {
		t.Fatal(err)
	}
	if se := math.Sqrt(2*.02*.02 - 2*.01*.01); math.Abs(d.SE[0]-se) > 1e-12 || math.Abs(d.SE[1]-se) > 1e-12 {
		t.Errorf("errors %v, want %v", d.SE, se)
	}
	if d.Low[0] < -.053-1e-12 || d.High[0] > .043+1e-12 || math.Abs(d.Low[0]+d.High[1]) > 1e-12 || math.Abs(d.High[0]+d.Low[1]) > 1e-12 {
		t.Errorf("interval %v to %v", d.Low, d.High)
	}
}
